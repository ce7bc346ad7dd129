package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
)

func boardsCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "boards",
		Short: "List, make, choose, rename and archive boards",
		Long: `A home holds any number of boards that know nothing of each other: each has its
own cards, keys, settings, caps and locks. A call acts on the board that --board
names, else KANLOG_BOARD, else the current one (boards switch), else "default".
A worker has its board in KANLOG_BOARD.`,
		Example: `  kanlog boards list
  kanlog boards create website --switch
  kanlog boards rename website shop`,
		// Not by the root's: what is wrong with the current board is mended here.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("board") {
				return usage("boards: --board has no meaning here; the board is named behind the verb (kanlog help %s)", verbOf(cmd))
			}
			own := os.Getenv("KANLOG_TASK")
			if own != "" && cmd.Name() != "list" && cmd.HasParent() && cmd.Parent().Name() == "boards" {
				return &refusedError{fmt.Sprintf("%s refused: this process is a worker of %s; boards are for operators (boards list is open to it)", verbOf(cmd), own)}
			}
			return a.ambient()
		},
	}
	asGroup(cmd)
	cmd.AddCommand(boardsListCmd(a), boardsCreateCmd(a), boardsSwitchCmd(a), boardsRenameCmd(a), boardsArchiveCmd(a))
	return cmd
}

func boardsListCmd(a *app) *cobra.Command {
	archived := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the boards: how many cards, where, which one is current",
		Long: `list shows every board with the number of its cards: OPEN are those neither done
nor archived, RUNNING those with a run at work. The one marked with * is the one
that a call from here acts on if it names none. A board that cannot be read is
shown with the reason.`,
		Example: "  kanlog boards list\n  kanlog boards list --json | jq -r '.[] | select(.current).slug'",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			list, err := a.listBoards(archived)
			if err != nil {
				return err
			}
			return a.printBoards(list, archived)
		},
	}
	cmd.Flags().BoolVar(&archived, "archived", false, "archived ones too")
	return cmd
}

func boardsCreateCmd(a *app) *cobra.Command {
	choose := false
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Make a board and print where it is; again: no change",
		Example: "  kanlog boards create website\n  kanlog boards create website --switch",
		Args:    exactly(1, "one name"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.use(args[0]); err != nil {
				return err
			}
			created, err := a.init()
			if err != nil {
				return err
			}
			already := ""
			if !created {
				already = "the board was there already"
			}
			if choose {
				changed, err := a.switchBoard()
				if err != nil {
					return fmt.Errorf("board %s: it is there, but it could not be made the current one: %w", a.slug, err)
				}
				if changed {
					already = ""
				}
			}
			return a.printBoard(already, map[string]any{"board": a.slug, "path": a.boardDir, "created": created, "current": a.isCurrent()})
		},
	}
	cmd.Flags().BoolVar(&choose, "switch", false, "make it the current board")
	return cmd
}

func boardsSwitchCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "switch SLUG",
		Short: "Choose the board of calls that name none",
		Long: `switch writes the name into the file current in the home. Calls without --board
and without KANLOG_BOARD act on that board from then on, also those of other
terminals and of timers. Workers keep to the board of their card.`,
		Example: "  kanlog boards switch website",
		Args:    exactly(1, "one name"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.use(args[0]); err != nil {
				return err
			}
			changed, err := a.switchBoard()
			if err != nil {
				return err
			}
			already := ""
			if !changed {
				already = "it was the current board already; nothing changed"
			}
			return a.printBoard(already, map[string]any{"board": a.slug, "path": a.boardDir, "changed": changed, "current": a.isCurrent()})
		},
	}
}

// switchBoard makes the chosen board the current one.
func (a *app) switchBoard() (changed bool, err error) {
	err = a.inHome(func() error {
		if was, wrong := a.pointer(); wrong == nil && was == a.slug {
			return nil
		}
		changed = true
		return a.setPointer(a.slug)
	})
	if env := os.Getenv("KANLOG_BOARD"); err == nil && env != "" && env != a.slug {
		a.warn("calls from here still act on the board %q: KANLOG_BOARD says so and goes before", env)
	}
	return changed, err
}

// isCurrent tells whether a call that names no board acts on the chosen one.
func (a *app) isCurrent() bool {
	slug, err := a.unnamed()
	return err == nil && slug == a.slug
}

// unnamed is the board that a call from here acts on if it names none.
func (a *app) unnamed() (string, error) {
	if env := os.Getenv("KANLOG_BOARD"); env != "" {
		return env, nil
	}
	return a.current()
}

func boardsRenameCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rename OLD NEW",
		Short: "Give a board another name",
		Long: `rename moves the board's directory. It is refused while a run is active: its worker
has the old name in its environment. Calls that named no board and went to it go on
to do so. Whoever names the old one (a timer, KANLOG_BOARD in a shell) must be told.`,
		Example: "  kanlog boards rename website shop",
		Args:    exactly(2, "the old and the new name"),
		RunE: func(_ *cobra.Command, args []string) error {
			was, to := args[0], args[1]
			if err := eventlog.CheckSlug(to); err != nil {
				return usage("%v", err)
			}
			if err := a.use(was); err != nil {
				return err
			}
			if err := a.renameBoard(to); err != nil {
				return err
			}
			if err := a.use(to); err != nil {
				return err
			}
			return a.printBoard("", map[string]any{"board": to, "was": was, "path": a.boardDir, "current": a.isCurrent()})
		},
	}
}

func boardsArchiveCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "archive SLUG",
		Short: "Put a board away; nothing is deleted",
		Long: `archive moves the board's directory to boards/_archived/SLUG-TIME and prints where
it is. It is refused while a run is active. No verb acts on an archived board;
boards list --archived counts its cards. To have it back, move the directory:
mv HOME/boards/_archived/SLUG-TIME HOME/boards/SLUG, where no board is called so.
If it was the current board, calls that name none act on "default" again.`,
		Example: "  kanlog boards archive website\n  kanlog boards list --archived",
		Args:    exactly(1, "one name"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.use(args[0]); err != nil {
				return err
			}
			wasCurrent := a.isCurrent()
			dir, err := a.archiveBoard()
			if err != nil {
				return err
			}
			if wasCurrent {
				a.sayNext()
			}
			return a.printBoard("", map[string]any{"board": a.slug, "path": dir, "archived": true})
		},
	}
}

// sayNext says where calls go after the board that they went to was archived.
func (a *app) sayNext() {
	slug, err := a.unnamed()
	if err != nil {
		a.warn("%v", err)
		return
	}
	if there, err := a.boardThere(slug); err != nil || !there {
		a.warnNotThere(slug)
		return
	}
	a.warn("calls that name no board go to %q now", slug)
}

func (a *app) warnNotThere(slug string) {
	if os.Getenv("KANLOG_BOARD") != "" {
		a.warn("calls from here go to the board %q, which is not there: KANLOG_BOARD says so", slug)
		return
	}
	a.warn("calls that name no board go to %q, which is not there: kanlog boards switch SLUG chooses another", slug)
}
