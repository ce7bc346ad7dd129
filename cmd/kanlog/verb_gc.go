package main

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func gcCmd(a *app) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove workspaces and outputs that nobody needs any more",
		Long: `gc cleans up after cards that are done or archived and to which nothing has happened
for a while (settings keep_workspaces, 7 days, and keep_output, 30 days; 0 keeps for
ever). It removes

  scratch   the card's own directory under workspaces/, once its children are over too
  worktree  the card's worktree, if everything in it is committed, nothing is half
            done (merge, rebase), and what was committed is pushed or in what the
            repository has checked out. Files that git ignores go with it; the branch
            and stashes stay
  output    what the runs printed and were told; how each ended stays on record

and says of every other workspace why it stays. Directories that you named (dir:, shared:) are
never touched, nor is anything behind a link or a mount. Killed at any moment it loses
nothing; the next one goes on. A daemon does it once a day.`,
		Example: "  kanlog gc --dry-run\n  kanlog gc\n  kanlog gc --json | jq '.kept[].reason'",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if err := notInWorker("gc"); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			rep, err := a.collect(ctx, func(fork func() error) error { return fork() }, dryRun)
			if rep == nil {
				return err
			}
			return a.reportGC(rep, err)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be removed, remove nothing")
	return cmd
}

// reportGC prints what a gc did, also one that was cut short by cause.
func (a *app) reportGC(rep *gcReport, cause error) error {
	if a.asJSON {
		if err := a.json(rep); err != nil {
			return err
		}
	} else if err := a.printf("%s", gcText(rep)); err != nil {
		return err
	}
	for _, i := range rep.Failed {
		a.warn("%s: %v", i.Path, i.Reason)
	}
	if cause == nil && len(rep.Failed) > 0 {
		cause = &codedError{exitFailed}
	}
	return cause
}

func gcText(rep *gcReport) string {
	var b strings.Builder
	word := "removed"
	if rep.DryRun {
		word = "would remove"
	}
	var outputs int64
	runs := 0
	for _, i := range rep.Removed {
		if i.Kind == gcOutput {
			// There may be thousands.
			runs, outputs = runs+1, outputs+i.Bytes
			continue
		}
		fmt.Fprintf(&b, "%s %s of %s: %s (%s)\n", word, i.Kind, i.Task, i.Path, sizeWords(i.Bytes))
	}
	if runs > 0 {
		fmt.Fprintf(&b, "%s the output of %s (%s)\n", word, plural(runs, "run", "runs"), sizeWords(outputs))
	}
	for _, i := range rep.Kept {
		fmt.Fprintf(&b, "kept %s of %s: %v\n", i.Kind, i.Task, i.Reason)
	}
	if len(rep.Removed) == 0 {
		fmt.Fprintf(&b, "nothing to remove\n")
	} else {
		fmt.Fprintf(&b, "%s %s in all\n", word, sizeWords(rep.size()))
	}
	return b.String()
}
