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

--force releases the card without that proof. A process may still be alive and
go on writing beside the next run.`,
		Example: "  kanlog reclaim t_1a2b --reason 'wrong branch'",
		Args:    exactly(1, "one id"),
		RunE: func(_ *cobra.Command, args []string) error {
			if reason == "" {
				return usage("reclaim needs --reason")
			}
			return a.stop(args[0], stopping{
				verb: "reclaim", done: "reclaimed", then: "the card is ready when its processes are gone", forced: force,
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
		Example: "  kanlog archive t_1a2b\n  kanlog list --status done --json | jq -r '.[].id' | xargs kanlog archive",
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
	verb string
	done string // said when nothing is left to wait for
	then string // what becomes of the card when something is
	// forced: released without proof.
	forced bool
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
	run, evidence, err := a.evidence(d.World, id)
	if err != nil {
		return err
	}
	res, err := a.update(s.verb, w, s.decide(id, run, evidence, w))
	if err != nil {
		return err
	}
	if s.forced {
		a.warn("%s was released without proof; its evidence was: %s", id, evidence)
	}
	done, asked := s.done, false
	for _, e := range res.Commit.Events {
		if _, ok := e.Data.(*eventlog.TerminationRequested); ok {
			asked = true
		}
	}
	if res.Note != "" {
		// Decided before; a repeated call presses on all the same.
		done, asked = res.Note, run != 0
	}
	if !asked {
		return a.written(id, res, done)
	}
	// The wish is durable: now act on it, as every later tick will.
	rep, err := d.EndNow(run)
	if err != nil {
		return fmt.Errorf("the end of run %d is requested and the next dispatch sees to it; acting now failed: %w", run, err)
	}
	switch {
	case len(rep.Reclaimed) > 0 || len(rep.ReapedTerminalWorkers) > 0:
		// Its processes were gone already, and that is booked.
		done = s.done
	case len(rep.Deferred) > 0:
		done = fmt.Sprintf("the end of run %d is requested, but its process can neither be proven nor ruled out: the card stays claimed (kanlog why %s; kanlog reclaim --force releases it)", run, id)
	default:
		done = fmt.Sprintf("the end of run %d is requested; %s", run, s.then)
	}
	return a.written(id, res, done)
}
