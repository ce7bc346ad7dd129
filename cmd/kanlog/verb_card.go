package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

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

func promoteCmd(a *app) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "promote ID...",
		Short: "Let cards start at once that wait for a time, in triage or blocked",
		Long: `promote makes cards ready, with fresh budgets and without their due time. What a
card was built on has to be done all the same.`,
		Example: "  kanlog promote t_1a2b\n  kanlog promote t_1a2b --dry-run",
		Args:    between(1, projection.MaxBulk, "one id or more"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.bulk(args, func(id string) error {
				if dryRun {
					return a.rehearse(id, "would be promoted", projection.Promote)
				}
				return a.decide(id, "promote", "promoted", projection.Promote)
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say whether it could be")
	return cmd
}

func reopenCmd(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "reopen ID --reason T",
		Short: "Take back that a card is done, and what was built on it",
		Long: `reopen lets a card that is done (or in review) be done again, with fresh budgets.
Cards that were built on it wait again: those that are ready, scheduled, in review or
done go to todo, those that run are ended first. Their runs and results stay on record.`,
		Example: "  kanlog reopen t_1a2b --reason \"it was the wrong branch\"",
		Args:    exactly(1, "one id"),
		RunE: func(_ *cobra.Command, args []string) error {
			var retracted []string
			err := a.decideThen(args[0], "reopen", "reopened", func(id string, w projection.Writer) projection.Decider {
				return projection.Reopen(id, reason, w)
			}, func(res projection.Result) {
				for _, e := range res.Commit.Events[min(1, len(res.Commit.Events)):] {
					if !slices.Contains(retracted, e.Task) {
						retracted = append(retracted, e.Task)
					}
				}
			})
			if err == nil && len(retracted) > 0 {
				a.warn("built on it, and waiting again: %s", strings.Join(retracted, " "))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the next attempt and the record")
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
			a.warn("no profile %q in the settings: no dispatch starts this card; it waits for kanlog work or kanlog claim", assignee)
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
	if !w.InWorker() {
		// A claim needs no run of its own to stand on; KANLOG_RUN of an outer
		// session must not be taken for one.
		w.Run = 0
	}
	var form *runJSON
	c.Task = prefix
	decide := onCard(&c.Task, w, func(_ string, w projection.Writer) projection.Decider { return projection.Claim(c, w) })
	res, err := a.updateThen("claim", w, decide, func(v projection.View, res projection.Result) error {
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
