package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

func unblockCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "unblock ID...",
		Short:   "Let blocked cards go on, with fresh budgets",
		Example: "  kanlog unblock t_1a2b",
		Args:    between(1, projection.MaxBulk, "one id or more"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.bulk(args, func(id string) error { return a.decide(id, "unblock", "unblocked", projection.Unblock) })
		},
	}
	return cmd
}

func assignCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "assign ID PROFILE|none",
		Short:   "Give a card to another profile",
		Example: "  kanlog assign t_1a2b coder\n  kanlog assign t_1a2b none",
		Args:    exactly(2, "an id and a profile (or none)"),
		RunE: func(_ *cobra.Command, args []string) error {
			to, done := args[1], "assigned to "+args[1]
			if to == "" {
				return usage("the profile is empty; none takes the assignee away")
			}
			if to == "none" {
				to, done = "", "assigned to nobody"
			}
			err := a.decide(args[0], "assign", done, func(id string, w projection.Writer) projection.Decider {
				return projection.Assign(id, to, w)
			})
			if err == nil {
				a.warnNoProfile(to)
			}
			return err
		},
	}
}

// warnNoProfile says that nothing will be started for an assignee: a typo, or a
// card for somebody who claims it.
func (a *app) warnNoProfile(assignee string) {
	if set, err := a.settings(); err == nil && assignee != "" {
		if _, known := set.policy.Profiles[assignee]; !known {
			a.warn("no profile %q in the settings: no dispatch starts this card; it waits to be claimed", assignee)
		}
	}
}

func claimCmd(a *app) *cobra.Command {
	var ttl duration
	var name string
	cmd := &cobra.Command{
		Use:   "claim ID",
		Short: "Claim a card by hand and print the run",
		Long: `claim takes a card for a person or a session that kanlog does not watch. Nothing
is started. When the claim runs out the card is blocked, not given to anybody
else: you may still be working on it.`,
		Example: "  run=$(kanlog claim t_1a2b --ttl 2h --as alice)\n  kanlog complete t_1a2b --run $run",
		Args:    exactly(1, "one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := a.settings()
			if err != nil {
				return err
			}
			c := projection.ClaimFor{Origin: projection.OriginManual, Holder: name, TTL: set.policy.Limits.ClaimTTL}
			if cmd.Flags().Changed("ttl") {
				c.TTL = ttl.std()
			}
			if c.Holder == "" {
				c.Holder = userName()
			}
			return a.claim(args[0], c)
		},
	}
	cmd.Flags().Var(&ttl, "ttl", "how long the claim lasts without a heartbeat (KANLOG_CLAIM_TTL)")
	cmd.Flags().StringVar(&name, "as", "", "who claims (default: you)")
	return cmd
}

func (a *app) claim(prefix string, c projection.ClaimFor) error {
	w, err := a.writer()
	if err != nil {
		return err
	}
	if c.Task, err = a.resolve(prefix); err != nil {
		return err
	}
	if !w.InWorker() {
		// A claim needs no run of its own to stand on; KANLOG_RUN of an outer
		// session must not be taken for one.
		w.Run = 0
	}
	var form *runJSON
	res, err := a.updateThen("claim", w, projection.Claim(c, w), func(v projection.View, res projection.Result) error {
		r, err := v.Run(res.Commit.Seq)
		if err == nil {
			form = a.newRunJSON(r)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case a.asJSON:
		return recorded(c.Task, a.json(form))
	}
	return recorded(c.Task, a.printf("%d\n", res.Commit.Seq))
}

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
			return a.reclaim(args[0], reason, force)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why (kept in the log)")
	cmd.Flags().BoolVar(&force, "force", false, "release it without proof that its processes ended")
	return cmd
}

func (a *app) reclaim(prefix, reason string, force bool) error {
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
	res, err := a.update("reclaim", w, projection.Reclaim(id, run, reason, evidence, force, w))
	if err != nil {
		return err
	}
	done := "reclaimed"
	if force {
		a.warn("%s was released without proof; its evidence was: %s", id, evidence)
	}
	asked := res.Note != ""
	for _, e := range res.Commit.Events {
		if _, ok := e.Data.(*eventlog.TerminationRequested); ok {
			asked = true
		}
	}
	if asked {
		// The wish is durable: now act on it, as every later tick will.
		rep, err := d.EndNow(run)
		if err != nil {
			return fmt.Errorf("the end of run %d is requested and the next dispatch sees to it; acting now failed: %w", run, err)
		}
		switch {
		case len(rep.Reclaimed) > 0 || len(rep.ReapedTerminalWorkers) > 0:
			// Its processes were gone already, and that is booked.
		case len(rep.Deferred) > 0:
			done = fmt.Sprintf("the end of run %d is requested, but its process can neither be proven nor ruled out: the card stays claimed (kanlog why %s; --force releases it)", run, id)
		default:
			done = fmt.Sprintf("the end of run %d is requested; the card is ready when its processes are gone", run)
		}
	}
	return a.written(id, res, done)
}
