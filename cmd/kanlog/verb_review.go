package main

import (
	"github.com/spf13/cobra"

	"kanlog/projection"
)

// The review lane: who worked on a card hands it in, and a reviewer (another
// profile, or a person) approves it or sends it back.

func requestReviewCmd(a *app) *cobra.Command {
	var given answerFlags
	var reviewer string
	cmd := &cobra.Command{
		Use:   "request-review [ID]",
		Short: "Hand in the work of a card; it is done when a reviewer approves it",
		Example: `  kanlog request-review --summary "fixed in 3f2a91c" --reviewer critic   # inside a worker
  kanlog request-review t_1a2b --summary "done by hand"                  # a person reviews it`,
		Args: between(0, 1, "at most one id"),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := a.idOrOwn("request-review", args)
			if err != nil {
				return err
			}
			set, err := a.settings()
			if err != nil {
				return err
			}
			byProfile := map[string]string{}
			for name, p := range set.policy.Profiles {
				byProfile[name] = p.Reviewer
			}
			err = a.decide(id, "request-review", "in review", func(id string, w projection.Writer) projection.Decider {
				return projection.RequestReview(id, given.answer(), reviewer, byProfile, w)
			})
			if err == nil {
				a.warnNoProfile(reviewer)
			}
			return err
		},
	}
	given.add(cmd)
	cmd.Flags().StringVar(&reviewer, "reviewer", "", "the profile that reviews it (default: who did before, or the profile's reviewer, or a person)")
	a.runFlagOf(cmd)
	return cmd
}

// ofRun is the flag that binds a verdict to the work that was looked at.
func ofRun(cmd *cobra.Command, seen *uint64) {
	cmd.Flags().Var(&number[uint64]{seen}, "of", "the run whose work was looked at; refused if other work is in review by now")
}

func approveCmd(a *app) *cobra.Command {
	var given answerFlags
	var seen uint64
	cmd := &cobra.Command{
		Use:   "approve [ID]",
		Short: "End a review: the card is done",
		Example: `  kanlog approve --summary "reads well"      # inside a reviewer: its own card
  kanlog approve t_1a2b --of 57              # only what run 57 handed in`,
		Args: between(0, 1, "at most one id"),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := a.idOrOwn("approve", args)
			if err != nil {
				return err
			}
			return a.decide(id, "approve", "approved, done", func(id string, w projection.Writer) projection.Decider {
				return projection.Approve(id, given.answer(), seen, w)
			})
		},
	}
	given.add(cmd)
	ofRun(cmd, &seen)
	a.runFlagOf(cmd)
	return cmd
}

func requestChangesCmd(a *app) *cobra.Command {
	var seen uint64
	cmd := &cobra.Command{
		Use:     "request-changes [ID] REASON",
		Short:   "End a review: the card goes back to who worked on it",
		Example: "  kanlog request-changes \"the error is swallowed in line 40\"   # inside a reviewer\n  kanlog request-changes t_1a2b \"no test\" --of 57",
		Args:    between(1, 2, "a reason, and an id outside of a worker"),
		RunE: func(_ *cobra.Command, args []string) error {
			id, reason, err := a.idAndReason("request-changes", "a reason", args)
			if err != nil {
				return err
			}
			set, err := a.settings()
			if err != nil {
				return err
			}
			return a.decide(id, "request-changes", "changes requested", func(id string, w projection.Writer) projection.Decider {
				return projection.RequestChanges(id, reason, seen, set.policy.Limits, w)
			})
		},
	}
	ofRun(cmd, &seen)
	a.runFlagOf(cmd)
	return cmd
}
