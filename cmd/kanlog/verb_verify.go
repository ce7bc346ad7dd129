package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kanlog/projection"
)

func verifyCmd(a *app) *cobra.Command {
	var head string
	cmd := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Check the log, the tables, the invariants and the runs' files; name the first thing wrong",
		Long: `verify checks the hash chain and the numbering of the log, folds it anew, checks
the invariants (docs/invariants.md) after each event, compares the tables with the
fresh fold, and looks whether outputs and exit records belong to runs of the board
and say what it says. It changes nothing. Exit 6: something is wrong.

With --head it also looks for a commit that was noted before (kanlog head): if the
log contains it, nothing up to there was changed or cut off since. With FILE it
checks a backup.`,
		Example: `  kanlog verify
  kanlog verify --head 4711:9f86d081884c7d65
  kanlog verify backups/default-20260301T120000Z-4711.db
  kanlog verify --json`,
		Args: between(0, 1, "at most one backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var q projection.Checking
			if cmd.Flags().Changed("head") {
				var err error
				if q.Noted, err = projection.ParseNoted(head); err != nil {
					return usage("--head: %v", err)
				}
			}
			s, err := a.board()
			if err == nil && len(args) == 1 {
				o, err2 := a.options()
				s, err = projection.OpenCopy(args[0], o), err2
			}
			if err != nil {
				return err
			}
			var done func()
			q.Each, done = a.progress("verify", s)
			rep, err := s.VerifyWith(q)
			done()
			if err != nil {
				return err
			}
			form := verifyJSON{Report: rep}
			if len(args) == 0 {
				if form.Files, err = a.checkFiles(s); err != nil && rep.Problem == "" {
					return err
				}
			}
			return a.reportVerify(form)
		},
	}
	cmd.Flags().StringVar(&head, "head", "", "a head that was noted before: HASH or COMMIT:HASH, 12 digits of the hash at least")
	return cmd
}

// verifyJSON is what verify found.
type verifyJSON struct {
	projection.Report
	// Files is nil for a backup, and if the tables cannot be read.
	Files *filesReport `json:"files"`
}

func (a *app) reportVerify(f verifyJSON) error {
	whole := f.Problem == "" && (f.Files == nil || len(f.Files.Problems) == 0)
	var err error
	switch {
	case a.asJSON:
		err = a.json(f)
	case whole:
		err = a.printf("whole: %d commits, %d events, %d cards, %d runs; head %s\n", f.Commits, f.Events, f.Tasks, f.Runs, short(f.Head))
		if err == nil && f.Noted != nil {
			err = a.printf("commit %d is as it was noted; %s since\n", f.Noted.Commit, plural(int(f.Noted.Since), "commit", "commits"))
		}
	}
	if err != nil {
		return err
	}
	if f.Problem != "" {
		a.warn("verify: %s", f.Problem)
	}
	switch {
	case f.FirstBad != 0 && f.Trusted == 0:
		a.warn("the first commit that cannot be trusted is 1: nothing stands before it")
	case f.FirstBad != 0:
		a.warn("the first commit that cannot be trusted is %d; what stands before it can be trusted: commits 1 to %d", f.FirstBad, f.Trusted)
	case f.Problem != "" && (f.Noted == nil || f.Noted.Found):
		a.warn("the log is whole; what stands before it can be trusted: commits 1 to %d", f.Trusted)
	}
	if f.Files != nil {
		for _, p := range f.Files.Problems {
			a.warn("verify: %s", p)
		}
		for _, n := range f.Files.Notes {
			a.warn("note: %s", n)
		}
	}
	if !whole {
		return &codedError{exitStore}
	}
	return nil
}

func short(hash string) string {
	if len(hash) > 16 {
		return hash[:16]
	}
	return "-"
}

// Progress is shown to who watches a long log, and not more often than that.
const (
	progressFrom  = 20_000
	progressEvery = time.Second
)

// progress shows on a terminal how far a look at the log has come; done clears that.
func (a *app) progress(verb string, s *projection.Store) (each func(commit uint64), done func()) {
	nothing := func() {}
	if !onTerminal(a.errw) {
		return func(uint64) {}, nothing
	}
	head, err := s.NewestCommit()
	if err != nil || head.Commit < progressFrom {
		return func(uint64) {}, nothing
	}
	last, shown := time.Now(), false
	each = func(commit uint64) {
		if commit%1000 != 0 || time.Since(last) < progressEvery {
			return
		}
		last, shown = time.Now(), true
		fmt.Fprintf(a.errw, "\r%s: %d of %d commits (%d%%)", verb, commit, head.Commit, 100*commit/head.Commit)
	}
	return each, func() {
		if shown {
			shown = false
			fmt.Fprint(a.errw, "\r\x1b[K")
		}
	}
}
