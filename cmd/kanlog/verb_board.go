package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kanlog/projection"
)

func initCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		Short:   "Create the board and print where it is",
		Example: "  kanlog init\n  kanlog --board website init",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if err := notInWorker("init"); err != nil {
				return err
			}
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

// notInWorker refuses to a worker what is done to a board as a whole.
func notInWorker(verb string) error {
	if own := os.Getenv("KANLOG_TASK"); own != "" {
		return &refusedError{fmt.Sprintf("%s refused: this process is a worker of %s", verb, own)}
	}
	return nil
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
			if err := notInWorker("rebuild"); err != nil {
				return err
			}
			s, err := a.board()
			if err != nil {
				return err
			}
			rep, err := a.rebuild(s)
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.json(rep)
			}
			return a.printf("rebuilt from %d commits\n", rep.Commits)
		},
	}
}

// rebuild writes the store anew and looks at what came of it.
func (a *app) rebuild(s *projection.Store) (projection.Report, error) {
	if err := s.Rebuild(); err != nil {
		return projection.Report{}, err
	}
	rep, err := s.Verify()
	if err == nil && rep.Problem != "" {
		err = fmt.Errorf("the store was written anew, but verify still finds it %w: %s", projection.ErrDamaged, rep.Problem)
	}
	return rep, err
}
