package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func initCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		Short:   "Create the board and print where it is",
		Example: "  kanlog init\n  kanlog --board website init",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			created, err := a.init()
			if err != nil {
				return err
			}
			already := ""
			if !created {
				already = "the board was there already; nothing changed"
			}
			return a.printBoard(already, map[string]any{"board": a.slug, "path": a.boardDir, "created": created})
		},
	}
}

// printBoard says where the board is after a verb that is done; already says in
// words that there was nothing to do.
func (a *app) printBoard(already string, form map[string]any) error {
	var err error
	if a.asJSON {
		err = a.json(form)
	} else {
		if already != "" {
			a.warn("%s", already)
		}
		err = a.printf("%s\n", form["path"])
	}
	if err != nil {
		return fmt.Errorf("board %s: recorded, but: %w", form["board"], err)
	}
	return nil
}

func verifyCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the log, the tables and the invariants; name the first thing wrong",
		Long: `verify checks the hash chain and the numbering of the log, folds it anew, checks
the invariants (docs/invariants.md) after each event, and compares the tables with the
fresh fold. It changes nothing. Exit 6: something is wrong.`,
		Example: "  kanlog verify\n  kanlog verify --json",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			s, err := a.board()
			if err != nil {
				return err
			}
			rep, err := s.Verify()
			if err != nil {
				return err
			}
			if a.asJSON {
				if err := a.json(rep); err != nil {
					return err
				}
			} else if rep.Problem == "" {
				if err := a.printf("whole: %d commits, %d events, %d cards, %d runs; head %s\n", rep.Commits, rep.Events, rep.Tasks, rep.Runs, short(rep.Head)); err != nil {
					return err
				}
			}
			if rep.Problem != "" {
				a.warn("verify: %s", rep.Problem)
				a.warn("what stands before it can be trusted: commits 1 to %d", rep.Trusted)
				return &codedError{exitStore}
			}
			return nil
		},
	}
}

func short(hash string) string {
	if len(hash) > 16 {
		return hash[:16]
	}
	return "-"
}

func rebuildCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rebuild",
		Short: "Drop the tables and fold the log anew",
		Long: `rebuild makes every table anew from the log. The log itself is copied byte for
byte after its chain was checked; the new store takes the old one's place by one
rename, so a kill at any moment leaves the one or the other.`,
		Example: "  kanlog rebuild && kanlog verify",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			s, err := a.board()
			if err != nil {
				return err
			}
			if err := s.Rebuild(); err != nil {
				return err
			}
			rep, err := s.Verify()
			if err != nil {
				return err
			}
			if rep.Problem != "" {
				return fmt.Errorf("the tables were rebuilt, but verify still says: %w", errors.New(rep.Problem))
			}
			if a.asJSON {
				return a.json(rep)
			}
			return a.printf("rebuilt from %d commits\n", rep.Commits)
		},
	}
}
