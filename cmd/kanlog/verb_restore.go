package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

func restoreCmd(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make the board from a backup, or put a backup in its place",
		Long: `restore makes the chosen board from a backup. The backup is verified in full before
anything is touched. A board that is there is replaced only with --force, and only by
a backup of the same board; its store is kept beside the new one under a name that is
printed. It is refused while a daemon, a dispatch or a worker of the board is there.

What was running when the backup was made has ended since, nobody knows how: those
runs end as interrupted, which counts as no failure, and their cards start again. A
card that was claimed by hand is held until somebody unblocks it. No process is
signalled. Outputs of runs, workspaces and settings are in no backup: those that are
there stay, but for the files of runs that the backup does not know, which are put
beside them. Beside a board with the same id, or processes of one, the new board is
paused: its cards would be worked on twice.`,
		Example: `  kanlog restore --force backups/default-20260301T120000Z-4711.db
  kanlog --board copy restore default-20260301T120000Z-4711.db   # beside the other one`,
		Args: exactly(1, "one backup"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := notInWorker("restore"); err != nil {
				return err
			}
			return a.restore(args[0], force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace the board that is there; its store is kept")
	return cmd
}

func (a *app) restore(file string, force bool) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	from := projection.OpenCopy(file, o)
	rep, err := from.Verify()
	if err == nil && rep.Problem != "" {
		err = fmt.Errorf("%w: %s", projection.ErrDamaged, rep.Problem)
	}
	if err != nil {
		return fmt.Errorf("restore: nothing was touched: the backup %s: %w", file, err)
	}
	there, err := a.boardThere(a.slug)
	if err != nil {
		return err
	}
	if there && !force {
		return &refusedError{fmt.Sprintf("restore refused: the board %s is there; --force replaces it and keeps its store, --board NAME makes a board beside it", a.slug)}
	}
	r := &restoring{a: a, at: a.now.Std().Format(archivedTime)}
	if there {
		free, err := r.alone()
		defer free()
		if err != nil {
			return fmt.Errorf("restore refused, nothing was touched: %w", err)
		}
	}
	if err := os.MkdirAll(a.home, 0o700); err != nil {
		return err
	}
	lock, err := eventlog.LockHome(a.home, o.LockTimeout)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	paused := ""
	if !there { // under the lock: another restore may be making a board from the same backup
		if paused, err = r.others(from); err != nil {
			return err
		}
	}
	q := projection.Restoration{
		Actor: a.actor(projection.Writer{}), Now: a.now, Limits: a.set.policy.Limits, Ready: r.putAside, Keep: eventlog.StoreName + keptMark + r.at, Over: there, Paused: paused,
	}
	res, err := projection.Restore(a.home, a.slug, from, o, q)
	if err != nil {
		if r.moved > 0 {
			a.warn("files of runs that the backup does not know are in %s", r.aside())
		}
		if errors.Is(err, eventlog.ErrUnknownOutcome) {
			return fmt.Errorf("restore: the backup is in place, but a crash of the machine may take that back: %w", err)
		}
		if refused := new(eventlog.RefusedError); errors.As(err, &refused) && refused.Kind == eventlog.Foreign {
			err = fmt.Errorf("%w; --board NAME makes a board of its own from it", err)
		}
		return fmt.Errorf("restore: the board is as it was: %w", err)
	}
	a.fail.hit("restore.placed")
	return r.print(file, q, res)
}

// print says what became of the board.
func (r *restoring) print(file string, q projection.Restoration, res projection.Restored) error {
	a := r.a
	form := map[string]any{
		"board": a.slug, "path": a.boardDir, "from": file, "commit": res.From.Commit, "head": fmt.Sprintf("%x", res.Head.Hash), "head_commit": res.Head.Commit,
		"kept": nil, "commits_lost": nil, "interrupted": runList(res.Ended), "dropped": runList(res.Dropped), "files_put_aside": r.moved, "files_in": nil,
		"paused": text(q.Paused),
	}
	if res.Kept {
		form["kept"] = filepath.Join(a.boardDir, q.Keep)
	}
	if res.Lost >= 0 {
		form["commits_lost"] = res.Lost
	}
	if r.moved > 0 {
		form["files_in"] = r.aside()
	}
	if a.asJSON {
		return a.json(form)
	}
	words := fmt.Sprintf("restored: board %s to commit %d, from %s\n", a.slug, res.From.Commit, file)
	if res.Lost > 0 {
		words += fmt.Sprintf("left out: %s that came after it\n", plural(int(res.Lost), "commit", "commits"))
	}
	if res.Kept {
		words += fmt.Sprintf("the old store: %s\n", form["kept"])
	}
	for _, run := range res.Ended {
		words += fmt.Sprintf("interrupted: run %d of %s\n", run.ID, run.Task)
	}
	for _, run := range res.Dropped {
		words += fmt.Sprintf("worker dropped: run %d of %s\n", run.ID, run.Task)
	}
	if r.moved > 0 {
		words += fmt.Sprintf("put aside: %s of runs that the backup does not know, in %s\n", plural(r.moved, "file", "files"), r.aside())
	}
	if q.Paused != "" {
		words += fmt.Sprintf("paused: %s; kanlog --board %s resume lets its cards start\n", q.Paused, a.slug)
	}
	return a.printf("%s%d:%x\n", words, res.Head.Commit, res.Head.Hash)
}

func runList(runs []*projection.Run) []map[string]any {
	list := []map[string]any{}
	for _, r := range runs {
		list = append(list, map[string]any{"task": r.Task, "run": r.ID})
	}
	return list
}
