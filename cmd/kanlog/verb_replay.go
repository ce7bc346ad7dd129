package main

import (
	"bytes"
	"encoding/json"

	"github.com/spf13/cobra"

	"kanlog/projection"
)

// replaying is one call of replay.
type replaying struct {
	at, task   string
	stats      bool
	step, diff bool
	after      uint64
	limit      int
	decisions  bool
	set        []string
}

func replayCmd(a *app) *cobra.Command {
	var r replaying
	cmd := &cobra.Command{
		Use:   "replay [A B]",
		Short: "Show the board as it was, what changed, and what would be decided today",
		Long: `replay folds the log and shows what follows from it. Nothing is written.

--at shows the board as it was at a moment: its cards as list does, --task one of
them as show does, --stats the counts. A moment is
` + momentHelp + `.
An event is followed by the rest of its commit, since nobody ever saw a part of one.

--step goes through the log event by event (with --task those of one card) and says
of each what it changed. --diff A B says what changed between two moments.

--decisions takes every decision on record once more, as this program would today,
by the settings on its record, and prints those that would come out otherwise (exit 1
if there are any); --set puts another value in the place of a setting (exit 0). Each
is taken on the board as it really was by then: what would have followed from
another decision is not made up.`,
		Example: `  kanlog replay --at 1200
  kanlog replay --at 2h --task t_1a2b
  kanlog replay --at 2026-11-30T14:00:00Z --stats
  kanlog replay --step --task t_1a2b
  kanlog replay --diff 24h 1h
  kanlog replay --decisions --set failure_limit=5`,
		Args: between(0, 2, "two moments with --diff, else no arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			modes := 0
			for _, name := range []string{"at", "step", "diff", "decisions"} {
				if given(name) {
					modes++
				}
			}
			switch {
			case modes > 1:
				return usage("--at, --step, --diff and --decisions: give one of them")
			case r.diff != (len(args) == 2) || len(args) == 1:
				return usage("replay takes two moments with --diff (kanlog replay --diff 24h 1h), else no arguments")
			case given("set") && !r.decisions:
				return usage("--set goes with --decisions")
			case (given("after") || given("limit")) && !r.step:
				return usage("--after and --limit go with --step")
			case r.stats && (r.step || r.diff || r.decisions || r.task != ""):
				return usage("--stats goes with --at alone")
			case r.limit < 0:
				return usage("--limit %d is negative", r.limit)
			}
			if given("at") {
				// An empty word (a variable that is not set) is not the present.
				if _, err := a.momentOf(r.at); err != nil {
					return err
				}
			}
			switch {
			case r.step:
				return a.replaySteps(r)
			case r.diff:
				return a.replayDiff(args[0], args[1], r.task)
			case r.decisions:
				return a.replayDecisions(r)
			}
			return a.replayAt(r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.at, "at", "", "the moment: "+momentHelp+"; default: now")
	f.StringVar(&r.task, "task", "", "only this card")
	f.BoolVar(&r.stats, "stats", false, "the counts of that moment")
	f.BoolVar(&r.step, "step", false, "event by event, with what each changed")
	f.Var(&number[uint64]{&r.after}, "after", "with --step: only events with a higher number")
	f.Var(&number[int]{&r.limit}, "limit", "with --step: at most this many (0: all)")
	f.BoolVar(&r.diff, "diff", false, "what changed between two moments")
	f.BoolVar(&r.decisions, "decisions", false, "which decisions would come out otherwise today")
	f.StringArrayVar(&r.set, "set", nil, "with --decisions: by another value of a setting, as failure_limit=5 (repeatable)")
	return cmd
}

// replayAt shows the board of a moment, by the verbs that show it as it is.
func (a *app) replayAt(r replaying) error {
	store, err := a.board()
	if err != nil {
		return err
	}
	m := projection.Moment{}
	if r.at != "" {
		m, err = a.momentOf(r.at)
	} else {
		m.Seq, err = newestEvent(store)
	}
	if err != nil {
		return err
	}
	now := a.now
	if m != (projection.Moment{}) {
		err = a.goTo(m)
	} else {
		a.past = store.Before() // an empty log
	}
	if err != nil {
		return err
	}
	if r.at == "" {
		a.now = now
	}
	if r.task != "" {
		// Before anything is printed.
		if r.task, err = a.resolve(r.task); err != nil {
			return err
		}
	}
	at := newPastJSON(a.past)
	name, show := "tasks", func() error { return a.list(&listing{archived: true, sort: "priority", roots: projection.Stuck{}}) }
	switch {
	case r.task != "":
		name, show = "card", func() error { return a.show(r.task) }
	case r.stats:
		name, show = "stats", a.stats
	}
	if !a.asJSON {
		if err := a.printf("as of %s\n\n", clean(at.inWords(), false)); err != nil {
			return err
		}
		return show()
	}
	shown, err := a.captured(show)
	if err != nil {
		return err
	}
	return a.json(map[string]any{"moment": at, name: json.RawMessage(shown)})
}

// overLog is what a pass over the whole log begins with: the store, the one card that was
// asked for ("" for all), who is told of each commit, and what clears that.
func (a *app) overLog(prefix string) (store *projection.Store, task string, told func(commit uint64), done func(), err error) {
	if store, err = a.board(); err != nil {
		return nil, "", nil, nil, err
	}
	if prefix != "" {
		if task, err = a.resolve(prefix); err != nil {
			return nil, "", nil, nil, err
		}
	}
	told, done = a.progress("replay", store)
	return store, task, told, done, nil
}

// newestEvent is the number of the last event, 0 in an empty log.
func newestEvent(store *projection.Store) (uint64, error) {
	head, err := store.NewestCommit()
	return head.Seq, err
}

// captured is what a verb prints.
func (a *app) captured(verb func() error) ([]byte, error) {
	var b bytes.Buffer
	out := a.out
	a.out = &b
	defer func() { a.out = out }()
	err := verb()
	return b.Bytes(), err
}
