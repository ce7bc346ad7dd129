package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"kanlog/eventlog"
)

func compactCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Give back the room that the store does not need",
		Long: `compact writes the store anew, its log byte for byte and its tables from the log,
and puts the new file in the place of the old one in one step: a kill at any moment
leaves the one or the other. No event is lost; what is given back are pages that
changes of the tables have left empty. The board may be at work: others wait for a
batch of reading at a time, and at the end while what came in meanwhile is copied
too. It needs room for a second store.`,
		Example: "  kanlog compact\n  kanlog compact --json | jq '.bytes_before - .bytes_after'",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if err := notInWorker("compact"); err != nil {
				return err
			}
			return a.compact()
		},
	}
}

func (a *app) compact() error {
	store, err := a.board()
	if err != nil {
		return err
	}
	if _, err := store.NewestCommit(); err != nil {
		return err
	}
	path := filepath.Join(a.boardDir, eventlog.StoreName)
	before, err := os.Stat(path)
	if err != nil {
		return err
	}
	// The new one is not larger than what the old one takes, but for little.
	if free, err := freeBytes(a.boardDir); err == nil && free < uint64(allocated(before)) {
		return fmt.Errorf("compact: %w: it needs %s beside the store, %s are free", eventlog.ErrDiskFull,
			sizeWords(allocated(before)), sizeWords(int64(free)))
	}
	rep, err := a.rebuild(store)
	if err != nil {
		return err
	}
	after, err := os.Stat(path)
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.json(map[string]any{
			"board": a.slug, "path": path, "bytes_before": before.Size(), "bytes_after": after.Size(),
			"disk_before": allocated(before), "disk_after": allocated(after), "commits": rep.Commits, "head": rep.Head,
		})
	}
	return a.printf("%s: %s before, %s after (%s); %s kept\n", path, sizeWords(before.Size()), sizeWords(after.Size()),
		gained(before.Size()-after.Size()), plural(int(rep.Commits), "commit", "commits"))
}

func gained(bytes int64) string {
	if bytes <= 0 {
		return "nothing to give back"
	}
	return sizeWords(bytes) + " given back"
}

// freeBytes is how much may be written to the file system of a directory.
func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}
