package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

// The verbs with which people take a card away from its worker. All ask for the
// worker's end and wait for proof; they differ in what becomes of the card.

func reclaimCmd(a *app) *cobra.Command {
	var reason string
	var force bool
	cmd := &cobra.Command{
		Use:   "reclaim ID --reason T",
		Short: "Take a card back from its run, ending the worker first",
		Long: `reclaim asks for the end of the card's worker. The card is ready again when every
process of the run is proven gone: the supervisor passes TERM on, kills what is
left after the kill grace, and each dispatch presses on until then.

--force releases the card without that proof, for a process that can neither be
proven nor ruled out. It may still be alive and go on writing beside the next
run, and nothing ends it any more: try it without --force first.`,
		Example: "  kanlog reclaim t_1a2b --reason 'wrong branch'",
		Args:    exactly(1, "one id"),
		RunE: func(_ *cobra.Command, args []string) error {
			if reason == "" {
				return usage("reclaim needs --reason")
			}
			return a.stop(args[0], stopping{
				verb: "reclaim", done: "reclaimed", then: "the card is ready when its processes are gone",
				decide: func(id string, run uint64, evidence string, w projection.Writer) projection.Decider {
					return projection.Reclaim(id, run, reason, evidence, force, w)
				},
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why (kept in the log)")
	cmd.Flags().BoolVar(&force, "force", false, "release it without proof that its processes ended")
	return cmd
}

func cancelCmd(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel ID...",
		Short: "Hold cards until somebody unblocks them, ending their workers first",
		Long: `cancel stops a card. Nothing starts it again before kanlog unblock. A worker is
asked to end: its supervisor passes TERM on, kills what is left after the kill
grace, and each dispatch presses on. Until every process of the run is proven
gone the card stays running. A worker that completes the card meanwhile wins; one
that answers with fail or defer does not undo the cancel.`,
		Example: "  kanlog cancel t_1a2b --reason 'not needed any more'",
		Args:    between(1, projection.MaxBulk, "one id or more"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.bulk(args, func(id string) error {
				return a.stop(id, stopping{
					verb: "cancel", done: "cancelled", then: "the card is held when its processes are gone",
					decide: func(id string, run uint64, evidence string, w projection.Writer) projection.Decider {
						return projection.Cancel(id, run, reason, evidence, w)
					},
				})
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why (kept in the log)")
	return cmd
}

func archiveCmd(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "archive ID...",
		Short: "Put cards away, ending their workers first",
		Long: `archive takes cards off the board. Nothing is deleted: kanlog list --archived shows
them, and their history stays. Cards that waited for an archived one wait no
longer. A card that runs is archived when its worker is proven gone.`,
		Example: "  kanlog archive t_1a2b\n  kanlog list --status done --json | jq -r '.[].id' | xargs -r kanlog archive",
		Args:    between(1, projection.MaxBulk, "one id or more"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.bulk(args, func(id string) error {
				return a.stop(id, stopping{
					verb: "archive", done: "archived", then: "the card is archived when its processes are gone",
					decide: func(id string, run uint64, evidence string, w projection.Writer) projection.Decider {
						return projection.Archive(id, run, reason, evidence, w)
					},
				})
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why (kept in the log)")
	return cmd
}

// stopping is one way to take a card from its worker.
type stopping struct {
	verb   string
	done   string // what became of a card that nothing runs any more
	then   string // what becomes of one that still runs
	decide func(id string, run uint64, evidence string, w projection.Writer) projection.Decider
}

func (a *app) stop(prefix string, s stopping) error {
	w, err := a.writer()
	if err != nil {
		return err
	}
	id, err := a.resolve(prefix)
	if err != nil {
		return err
	}
	d, err := a.newDispatcher("operator:" + userName())
	if err != nil {
		return err
	}
	// What is known of the worker goes into the event; the decision does not
	// depend on it.
	owner, evidence, err := a.evidence(d.World, id)
	if err != nil {
		return err
	}
	run := uint64(0)
	if owner != nil {
		run = owner.ID
	}
	res, err := a.update(s.verb, w, s.decide(id, run, evidence, w))
	if err != nil {
		return err
	}
	a.warnForced(id, owner, evidence, res)
	// The wish is durable: now act on it, as every later tick will. A repeated
	// call presses on too.
	if run != 0 {
		if _, err := d.EndNow(run); err != nil {
			a.warn("%s: acting on it at once failed, the next kanlog dispatch does: %v", id, err)
		}
	}
	done, err := a.stopped(id, run, s)
	switch {
	case err != nil:
		// It is recorded all the same.
		done = s.done
		a.warn("%s: what became of it could not be read: %v", id, err)
	case res.Note != "" && run == 0:
		done = res.Note
	}
	return a.written(id, res, done)
}

// stopped says what became of a card and of the run that had it, as they stand.
func (a *app) stopped(id string, run uint64, s stopping) (words string, err error) {
	err = a.view(func(v projection.View) error {
		t, err := v.MustTask(id)
		if err != nil {
			return err
		}
		words = s.done
		if s.verb == "reclaim" {
			words += "; the card is " + t.Status
		}
		if t.Owner() != run || run == 0 {
			return nil
		}
		r, err := v.Run(run)
		if err != nil || r == nil {
			return err
		}
		switch {
		case r.DeferredReason != "":
			words = fmt.Sprintf("the end of run %d is requested, but its process can neither be proven nor ruled out (%s): the card waits for it; kanlog reclaim %s --force --reason T releases it without proof", run, r.DeferredReason, id)
		case t.CurrentRun == run:
			words = fmt.Sprintf("the end of run %d is requested; %s", run, s.then)
		case s.verb == "reclaim":
			words = fmt.Sprintf("the process of run %d is being ended; the card is %s", run, t.Status)
		default:
			words += fmt.Sprintf("; the process of run %d is being ended", run)
		}
		return nil
	})
	return words, err
}

// warnForced says what a release without proof means, once it has happened.
func (a *app) warnForced(id string, owner *projection.Run, evidence string, res projection.Result) {
	for _, e := range res.Commit.Events {
		switch d := e.Data.(type) {
		case *eventlog.Reclaimed:
			if !d.Forced {
				continue
			}
		case *eventlog.Exited:
		default:
			continue
		}
		a.warn("%s was released without proof; what is known of its supervisor, process %d: %s", id, owner.PID, evidence)
		a.warn("if it lives, nothing ends it any more: that is up to you, before the card runs again beside it")
	}
}
