package main

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// New verb: a decider in projection, its file here (parse, call, print), its
// line in newRoot, a scenario under testdata, examples in its help.

// run is the program: it returns the exit code.
func run(args []string, out, errw io.Writer) int {
	a := &app{out: out, errw: errw}
	root := newRoot(a, plainVerb(args))
	root.SetArgs(args)
	return a.complain(root.Execute())
}

// newRoot makes the command tree, with one verb only unless only is empty.
func newRoot(a *app, only string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kanlog",
		Short: "A durable task board and dispatcher for worker processes",
		Long: `kanlog keeps cards on a board, starts a worker process for each, watches it,
and books how it ended. Every change is an event in an append-only log: a kill
at any moment loses nothing and runs nothing twice.`,
		Example: `  kanlog create "fix the build" --assignee coder
  kanlog dispatch
  kanlog list
  kanlog events t_1a2b`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.HasParent() || cmd.Name() == cobra.ShellCompRequestCmd {
				return nil // help, an unknown verb, a Tab: no board is needed
			}
			return a.start()
		},
	}
	asGroup(root)
	root.SetOut(a.out)
	root.SetErr(a.errw)
	a.commonFlags(root.PersistentFlags())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var u *usageError
		if errors.As(err, &u) {
			return err
		}
		return usage("%v (kanlog help%s)", err, strings.TrimPrefix(" "+verbOf(cmd), " kanlog"))
	})
	root.SetHelpCommand(helpCmd())
	for name, verb := range verbs {
		// Making the commands with their flags is a good part of a short call:
		// only the one that is called is made, where it is plain which.
		if only == "" || only == name {
			root.AddCommand(verb(a))
		}
	}
	root.SetHelpFunc(helpText)
	if only == "" {
		addCompletionCmd(root)
		root.Version = version()
		a.addCompletions(root)
	} else {
		root.CompletionOptions.DisableDefaultCmd = true
	}
	refuseEmpty(root)
	return root
}

// commonFlags are those that every verb has.
func (a *app) commonFlags(f *pflag.FlagSet) {
	f.StringVar(&a.home, "home", "", "where boards live (KANLOG_HOME, else $XDG_DATA_HOME/kanlog)")
	f.StringVar(&a.slug, "board", "", "which board (KANLOG_BOARD, else the current one: kanlog boards)")
	f.BoolVar(&a.asJSON, "json", false, "print JSON and nothing else on stdout")
}

// emptyFlags are the flags that may be given and be empty, with a verb before them
// or in whatever verb: those where that says something which leaving them out does
// not, and texts without which the call does the same. A worker does not lose its
// answer because it has no words for it.
var emptyFlags = []string{
	"list --assignee", "--body",
	"--summary", "--result", "--note", "defer --reason",
}

// refuseEmpty makes a verb, and those that it has, refuse a flag that was given and is
// empty: what a script makes of a variable that is not set. Taken as not given it would
// widen what the call does without a word: dispatch --id "" would start every card,
// and --home "" act on another home.
func refuseEmpty(verb *cobra.Command) {
	check := verb.Args
	verb.Args = func(cmd *cobra.Command, args []string) error {
		if err := emptyGiven(cmd); err != nil || check == nil {
			return err
		}
		return check(cmd, args)
	}
	for _, c := range verb.Commands() {
		refuseEmpty(c)
	}
}

// emptyGiven refuses the first flag, by name, that is empty and may not be.
func emptyGiven(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		may := slices.Contains(emptyFlags, "--"+f.Name) || slices.Contains(emptyFlags, verbOf(cmd)+" --"+f.Name)
		if err == nil && !may && isEmpty(f.Value) {
			err = usage("--%s is empty; leave it out if there is none (kanlog help%s)", f.Name, strings.TrimPrefix(" "+verbOf(cmd), " kanlog"))
		}
	})
	return err
}

// isEmpty tells whether a text, or one of several, is empty. Numbers and durations
// refuse an empty word when they are read.
func isEmpty(v pflag.Value) bool {
	if list, ok := v.(pflag.SliceValue); ok {
		return len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
	}
	return v.Type() == "string" && v.String() == ""
}

// verbs are the commands by name.
var verbs = map[string]func(*app) *cobra.Command{
	"apply": applyCmd, "context": contextCmd,
	"init": initCmd, "create": createCmd, "list": listCmd, "show": showCmd,
	"claim": claimCmd, "work": workCmd, "heartbeat": heartbeatCmd, "complete": completeCmd, "block": blockCmd, "fail": failCmd,
	"defer": deferCmd, "comment": commentCmd, "unblock": unblockCmd, "assign": assignCmd, "reclaim": reclaimCmd,
	"cancel": cancelCmd, "archive": archiveCmd, "promote": promoteCmd, "reopen": reopenCmd, "edit": editCmd,
	"link": linkCmd, "unlink": unlinkCmd,
	"request-review": requestReviewCmd, "approve": approveCmd, "request-changes": requestChangesCmd,
	"ps": psCmd, "watch": watchCmd, "stats": statsCmd,
	"dispatch": dispatchCmd, "daemon": daemonCmd, "stop": haltCmd, "pause": pauseCmd, "resume": resumeCmd, "drain": drainCmd,
	"runs": runsCmd, "logs": logsCmd, "events": eventsCmd, "why": whyCmd,
	"replay": replayCmd, "history": historyCmd, "export": exportCmd, "import": importCmd, "scenario": scenarioCmd,
	"scenario-worker": scenarioWorkerCmd, "verify": verifyCmd, "rebuild": rebuildCmd, "boards": boardsCmd, "doctor": doctorCmd,
	"gc": gcCmd, "head": headCmd, "backup": backupCmd, "restore": restoreCmd, "compact": compactCmd,
}

// plainVerb is the verb of a call that has nothing but common flags before it, ""
// of any other.
func plainVerb(args []string) string {
	before := pflag.NewFlagSet("", pflag.ContinueOnError)
	before.SetInterspersed(false)
	before.Usage = func() {}
	new(app).commonFlags(before)
	if before.Parse(args) != nil || before.ArgsLenAtDash() >= 0 || verbs[before.Arg(0)] == nil {
		return ""
	}
	return before.Arg(0)
}

// helpCmd is help for a verb; a verb that is not there is a wrong call.
func helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "help [VERB...]",
		Short:   "Show the help of a verb",
		Example: "  kanlog help create\n  kanlog help boards rename",
		// Whatever is wrong with the environment or the current board.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return usage("help: %v (kanlog help lists all)", err)
			case len(rest) > 0 && !verb.HasAvailableSubCommands():
				return usage("help: %s has no verbs of its own, so no %q (kanlog help %s)", verbOf(verb), rest[0], verbOf(verb))
			case len(rest) > 0:
				return unknownVerb(verb, rest[0])
			}
			return verb.Help()
		},
	}
}

// verbOf is how a verb is called: "list", "boards list".
func verbOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// exactly and between check the number of arguments in our words.
func exactly(n int, what string) cobra.PositionalArgs { return between(n, n, what) }

func between(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most && most >= 0 {
			return usage("%s takes %s; got %d argument(s) (kanlog help %s)", verbOf(cmd), what, len(args), verbOf(cmd))
		}
		return nil
	}
}
