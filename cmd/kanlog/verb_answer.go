package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

// The verbs with which a worker, or an operator for it, writes to a card. Inside
// a worker the id defaults to its own card and the run to its own run.

func (a *app) runFlagOf(cmd *cobra.Command) {
	cmd.Flags().Func("run", "the run this is written for (KANLOG_RUN)", func(s string) (err error) {
		a.runFlag, err = runNumber(s)
		return err
	})
}

// decide runs one decider on one card and says what happened.
func (a *app) decide(id, verb, done string, decider func(id string, w projection.Writer) projection.Decider) error {
	return a.decideThen(id, verb, done, decider, func(projection.Result) {})
}

// decideThen is decide for who wants to look at what was recorded.
func (a *app) decideThen(id, verb, done string, decider func(id string, w projection.Writer) projection.Decider, then func(projection.Result)) error {
	w, err := a.writer()
	if err != nil {
		return err
	}
	res, err := a.update(verb, w, onCard(&id, w, decider))
	if err != nil {
		return err
	}
	then(res)
	if res.Note != "" {
		done = res.Note
	} else if became := becameOf(id, res.Commit.Events); became != "" {
		done += "; " + became
	}
	return a.written(id, res, done)
}

// becameOf says what else the commit made of a card, where that is not plain from
// the verb.
func becameOf(id string, events []eventlog.Event) string {
	said := ""
	for _, e := range events {
		if e.Task != id {
			continue
		}
		switch d := e.Data.(type) {
		case *eventlog.Linked:
			if d.To != "" {
				said = "it was ready and waits from now on (" + d.To + ")"
			}
		case *eventlog.Unlinked:
			if d.To != "" {
				said = "now " + d.To
			}
		case *eventlog.Blocked:
			if d.To != "" {
				said = "it goes on when what it waits for is done (" + d.To + ")"
			} else if d.RequestedKind != "" {
				said = "it waits for no open card, so somebody has to unblock it"
			}
		case *eventlog.BlockLoop:
			said = fmt.Sprintf("%d times in a row for this kind of reason (%s), so it is in triage; kanlog promote lets it go on", d.Times, d.BlockKind)
		case *eventlog.GaveUp:
			said = "blocked: " + d.Reason
		case *eventlog.Edited:
			if d.To != "" {
				said = "now " + d.To
			}
		case *eventlog.Promoted:
			said = "now " + d.To
		}
	}
	return said
}

// rehearse says whether a decider would be refused, and changes nothing.
func (a *app) rehearse(id, would string, decider func(id string, w projection.Writer) projection.Decider) error {
	w, err := a.writer()
	if err != nil {
		return err
	}
	err = a.view(func(v projection.View) error {
		d, err := onCard(&id, w, decider)(v, a.now)
		if d.Note != "" {
			would = d.Note
		}
		return cmp.Or(err, d.Refused)
	})
	switch {
	case err != nil:
		return err
	case a.asJSON:
		return a.said(doneJSON{Task: id, Done: would})
	}
	return a.printf("%s: %s\n", id, would)
}

// written prints what a verb did to a card.
func (a *app) written(id string, res projection.Result, done string) error {
	if !a.asJSON {
		return recorded(id, a.printf("%s: %s\n", id, done))
	}
	j := doneJSON{Task: id, Done: done}
	if res.Commit.Number != 0 {
		j.Changed, j.Seq = true, res.Commit.Seq
	}
	return recorded(id, a.said(j))
}

func heartbeatCmd(a *app) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:     "heartbeat [ID]",
		Short:   "Say that the run makes progress; keeps its claim",
		Example: "  kanlog heartbeat --note 'step 3 of 7'",
		Args:    between(0, 1, "at most one id"),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := a.idOrOwn("heartbeat", args)
			if err != nil {
				return err
			}
			set, err := a.settings()
			if err != nil {
				return err
			}
			return a.decide(id, "heartbeat", "alive", func(id string, w projection.Writer) projection.Decider {
				return projection.Beat(id, note, set.policy.Limits, w)
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what it is doing")
	a.runFlagOf(cmd)
	return cmd
}

func (a *app) idOrOwn(verb string, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	return a.ownCard(verb)
}

// answerFlags are what the verbs share that hand in work.
type answerFlags struct {
	projection.Answer
	metadata string
}

func (g *answerFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&g.Summary, "summary", "", "what was done, for people and for cards that build on it")
	f.StringVar(&g.Result, "result", "", "the result itself")
	f.StringVar(&g.metadata, "metadata", "", "one JSON value, kept byte for byte")
}

// answer is what they say.
func (g *answerFlags) answer() projection.Answer {
	g.Metadata = []byte(g.metadata)
	return g.Answer
}

func completeCmd(a *app) *cobra.Command {
	var given answerFlags
	cmd := &cobra.Command{
		Use:   "complete [ID...]",
		Short: "Close cards as done",
		Long: `complete closes cards as done, and lets go on what waited for them alone. Of several
ids each is a completion of its own: --result goes to all of them, --summary and
--metadata are said of one card.`,
		Example: `  kanlog complete --summary "fixed in 3f2a91c"          # inside a worker: its own card
  kanlog complete t_1a2b --result "42" --metadata '{"tokens": 1200}'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && (cmd.Flags().Changed("summary") || cmd.Flags().Changed("metadata")) {
				return usage("complete of several ids takes no --summary and no --metadata, which are said of one card; --result goes to each")
			}
			if len(args) == 0 {
				id, err := a.ownCard("complete")
				if err != nil {
					return err
				}
				args = []string{id}
			}
			return a.bulk(args, func(id string) error {
				return a.decide(id, "complete", "done", func(id string, w projection.Writer) projection.Decider {
					return projection.Complete(id, given.answer(), w)
				})
			})
		},
	}
	given.add(cmd)
	a.runFlagOf(cmd)
	return cmd
}

// idAndReason splits [ID] REASON: inside a worker one argument is the reason.
func (a *app) idAndReason(verb, what string, args []string) (id, reason string, err error) {
	if len(args) == 2 {
		return args[0], args[1], nil
	}
	if id, err = a.ownCard(verb); err != nil {
		return "", "", usage("%s takes an id and %s", verb, what)
	}
	return id, args[0], nil
}

func blockCmd(a *app) *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:   "block [ID] REASON",
		Short: "Hold a card until somebody unblocks it",
		Example: `  kanlog block "which of the two keys?" --kind needs_input
  kanlog block t_1a2b "waits for the new server" --kind capability`,
		Args: between(1, 2, "a reason, and an id outside of a worker"),
		RunE: func(_ *cobra.Command, args []string) error {
			id, reason, err := a.idAndReason("block", "a reason", args)
			if err != nil {
				return err
			}
			set, err := a.settings()
			if err != nil {
				return err
			}
			return a.decide(id, "block", "blocked", func(id string, w projection.Writer) projection.Decider {
				return projection.Block(id, reason, kind, set.policy.Limits, w)
			})
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "needs_input (default), capability, transient or dependency")
	a.runFlagOf(cmd)
	return cmd
}

func failCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "fail [ID] REASON",
		Short:   "Say that this attempt failed; it counts, and the card is tried again",
		Example: `  kanlog fail "the tests do not compile"`,
		Args:    between(1, 2, "a reason, and an id outside of a worker"),
		RunE: func(_ *cobra.Command, args []string) error {
			id, reason, err := a.idAndReason("fail", "a reason", args)
			if err != nil {
				return err
			}
			set, err := a.settings()
			if err != nil {
				return err
			}
			return a.decide(id, "fail", "failed", func(id string, w projection.Writer) projection.Decider {
				return projection.Fail(id, reason, set.policy.Limits, w)
			})
		},
	}
	a.runFlagOf(cmd)
	return cmd
}

func deferCmd(a *app) *cobra.Command {
	var wait duration
	var reason string
	cmd := &cobra.Command{
		Use:   "defer [ID] --for D",
		Short: "Say that the card should be tried again later; never counts as a failure",
		Example: `  kanlog defer --for 30m --reason "quota until noon"   # inside a worker
  kanlog defer t_1a2b --for 2d                         # a card that nobody runs`,
		Args: between(0, 1, "at most one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("for") {
				return usage("defer needs --for, for example --for 30m")
			}
			id, err := a.idOrOwn("defer", args)
			if err != nil {
				return err
			}
			set, err := a.settings()
			if err != nil {
				return err
			}
			return a.decide(id, "defer", "deferred", func(id string, w projection.Writer) projection.Decider {
				return projection.Defer(id, wait.std(), reason, set.policy.Limits, w)
			})
		},
	}
	cmd.Flags().Var(&wait, "for", "how long (90, 30m, 2h, 1d)")
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	a.runFlagOf(cmd)
	return cmd
}

func commentCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "comment [ID] TEXT",
		Short:   "Leave a note on a card",
		Example: `  kanlog comment t_1a2b "use the staging key"`,
		Args:    between(1, 2, "a text, and an id outside of a worker"),
		RunE: func(_ *cobra.Command, args []string) error {
			id, note, err := a.idAndReason("comment", "a text", args)
			if err != nil {
				return err
			}
			return a.decide(id, "comment", "commented", func(id string, w projection.Writer) projection.Decider {
				return projection.AddComment(id, a.actor(w), note, w)
			})
		},
	}
	a.runFlagOf(cmd)
	return cmd
}
