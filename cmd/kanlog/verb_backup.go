package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

func backupCmd(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Write a verified copy of the board's log and tables",
		Long: `backup copies the board as it is now, reads the copy back, checks its chain, folds it
anew and compares, and only then gives it its name, in one step. Others go on
meanwhile; what they write after the start is not in it. A damaged board is refused
and nothing is left.

The copy goes to backups/ in the home, named by board, time and last commit, or to
the directory or file that FILE names. A whole copy with the same last commit in
the same directory is enough: then nothing is written. It holds cards, runs and the
log; outputs of runs, workspaces and settings are not in it.

The first line printed is the path, the second COMMIT:HASH, for kanlog verify --head.`,
		Example: `  kanlog backup
  kanlog backup /mnt/usb/
  kanlog backup board-before-the-move.db
  0 * * * *  kanlog backup >/dev/null    # in a crontab: says nothing unless it fails`,
		Args: between(0, 1, "at most one file or directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			to := ""
			if len(args) == 1 {
				if to = args[0]; to == "" {
					return usage("backup: FILE is empty")
				}
			}
			return a.backup(to, force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE if it is there")
	return cmd
}

// backupJSON is what a backup did.
type backupJSON struct {
	Board   string `json:"board"`
	Path    string `json:"path"`
	Written bool   `json:"written"`
	Bytes   int64  `json:"bytes"`
	projection.Report
}

func (a *app) backup(to string, force bool) error {
	store, err := a.board()
	if err != nil {
		return err
	}
	head, err := store.NewestCommit()
	if err != nil {
		return err
	}
	b := a.backups(filepath.Join(a.home, backupsName))
	file := ""
	switch info, err := os.Stat(to); {
	case to == "":
		// Else a crash may take the directory, and with it a backup that is called safe.
		if err := eventlog.MakeDir(b.dir); err != nil {
			return err
		}
	case err == nil && info.IsDir():
		b.dir = to
	default:
		b.dir, file = filepath.Dir(to), to
		if filepath.Base(to) == "." || to[len(to)-1] == filepath.Separator {
			return usage("backup: the directory %s is not there", to)
		}
	}
	if err := a.outsideBoards(b.dir); err != nil {
		return err
	}
	// One at a time: the next one finds what this one wrote, and what is begun and
	// not finished is nobody's.
	set, err := a.settings()
	if err != nil {
		return err
	}
	l, err := eventlog.LockWait(a.files().backupLock(), set.lockTimeout)
	unlock, err := a.inPlace(l, err)
	if err != nil {
		return err
	}
	defer unlock()
	return a.backupInto(b, file, head, force)
}

func (a *app) backupInto(b backups, file string, head eventlog.Head, force bool) error {
	if err := b.tidy(); err != nil {
		return err
	}
	var path string
	var there *backupFile
	var err error
	if file == "" {
		path = filepath.Join(b.dir, b.name(a.now, head.Commit))
		there, err = b.newest(&head)
	} else {
		path = file
		if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
			return notPlain(path)
		}
		there = b.open(path)
	}
	if err != nil {
		return err
	}
	if there != nil && there.head == head {
		rep, err := there.store.Verify()
		switch {
		case err != nil:
			return err
		case rep.Problem == "":
			a.warn("a whole copy with this last commit is there; nothing was written")
			return a.printBackup(b, there.path, false, rep)
		}
		a.warn("%s is damaged and is no copy any more: %s", there.path, rep.Problem)
	}
	// The lock above is this board's; another one may have a backup at the same place.
	free, err := lockAside(path, b.options.LockTimeout)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer free()
	a.fail.hit("backup.begun")
	rep, err := a.store.Backup(asideOf(path), path, force)
	switch {
	case errors.Is(err, fs.ErrExist):
		return &refusedError{fmt.Sprintf("backup refused: %s is there already; --force replaces it", path)}
	case errors.Is(err, eventlog.ErrNotPlain):
		return notPlain(path)
	case errors.Is(err, eventlog.ErrNotSynced):
		return fmt.Errorf("backup: %s: %w", path, err)
	case errors.Is(err, projection.ErrDamaged):
		return fmt.Errorf("backup refused, nothing is left: the board is not whole: %w", err)
	case err != nil:
		return fmt.Errorf("backup: nothing is left: %w", err)
	}
	a.fail.hit("backup.placed")
	return a.printBackup(b, path, true, rep)
}

func (a *app) printBackup(b backups, path string, written bool, rep projection.Report) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.json(backupJSON{Board: a.slug, Path: path, Written: written, Bytes: info.Size(), Report: rep})
	}
	head, err := projection.OpenCopy(path, b.options).NewestCommit()
	if err != nil {
		return err
	}
	return a.printf("%s\n%d:%x\n", path, head.Commit, head.Hash)
}
