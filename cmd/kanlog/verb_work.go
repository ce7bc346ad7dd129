package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kanlog/proc"
	"kanlog/projection"
)

func workCmd(a *app) *cobra.Command {
	o := workOptions{cleanExit: projection.CleanViolation}
	cmd := &cobra.Command{
		Use:   "work [ID] -- CMD...",
		Short: "Claim a card and run a command on it here, under supervision",
		Long: `work takes one card and runs the command on it as a dispatch would: in the card's
workspace, with KANLOG_TASK, KANLOG_CONTEXT and the rest, and with its answer or its
exit code booked. Which card: the one of the ID; with --assignee the one of theirs
that a dispatch would start first, reviews included; with neither one that nobody is
assigned to. No caps hold it, a pause of the board, a back-off and a due time do.

What the command prints is shown here and kept (kanlog logs); with --json it goes to
stderr, and the run is printed when it has ended. The command has no terminal: its
stdin is empty. A path like ./do.sh is the one seen from here, and {task}, {run},
{title}, {workspace} and {context} are replaced as in a profile. It inherits what a
profile of the card's assignee says (pass_env, env), else everything but what looks
like a secret.

Ctrl-C ends the command and gives the card back; that counts as no failure. work exits
with 0 if the command answered (complete, block, fail, ...) or exited with 0 and
--on-clean-exit takes that for an answer, else with 1: the loop below ends there. If there is no card it exits
with 3, or waits with --wait.`,
		Example: `  kanlog work --assignee ann -- ./do.sh
  kanlog work t_1a2b --on-clean-exit complete -- make -C /src test
  while kanlog work --assignee ann --wait -- ./agent.sh --task {task}; do :; done`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash < 0 || dash == len(args):
				return usage("work: which command? It comes behind --, as in kanlog work t_1a2b -- ./do.sh (kanlog help work)")
			case dash > 1:
				return usage("work takes one id; got %d: %s (kanlog help work)", dash, strings.Join(args[:dash], " "))
			case dash == 1 && cmd.Flags().Changed("assignee"):
				return usage("work takes an id or --assignee, not both")
			case dash == 1:
				o.id = args[0]
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if !slices.Contains([]string{projection.CleanViolation, projection.CleanComplete, projection.CleanReview}, o.cleanExit) {
				return usage("--on-clean-exit: %q is none of violation, complete, review", o.cleanExit)
			}
			if o.command, err = commandFromHere(args[cmd.ArgsLenAtDash():]); err != nil {
				return err
			}
			return a.work(o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.assignee, "assignee", "", "take a card of this assignee, or one that they review")
	f.BoolVar(&o.wait, "wait", false, "wait until there is a card that could start")
	f.StringVar(&o.cleanExit, "on-clean-exit", o.cleanExit, "what exit 0 without an answer means: violation, complete or review")
	return cmd
}

// workOptions are a call of work.
type workOptions struct {
	id        string // "": any of assignee
	assignee  string // "": of nobody
	wait      bool
	cleanExit string
	command   []string
}

// commandFromHere names a command that is given by a path as it is seen from here:
// it runs in the workspace, where nobody who types ./do.sh means it to be. One that
// is not there is a wrong call, and not the card's failure.
func commandFromHere(argv []string) ([]string, error) {
	argv = slices.Clone(argv)
	if strings.HasPrefix(argv[0], "{") {
		return argv, nil // a placeholder
	}
	if strings.Contains(argv[0], "/") {
		path, err := filepath.Abs(argv[0])
		if err != nil {
			return nil, err
		}
		argv[0] = path
	}
	if _, err := proc.FindCommand(argv[0], "/", os.Environ()); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = fmt.Errorf("%s: %w", path.Path, path.Err)
		}
		return nil, usage("work: the command cannot be run: %v", err)
	}
	return argv, nil
}
