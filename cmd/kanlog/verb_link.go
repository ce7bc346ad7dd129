package main

import (
	"github.com/spf13/cobra"

	"kanlog/projection"
)

func linkCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "link PARENT CHILD",
		Short: "Let a card wait for another one",
		Long: `link makes CHILD wait until PARENT is done (or archived). A ready CHILD whose new
PARENT is open waits from then on. A running one is refused unless its own run
asks: it would have started too early.`,
		Example: "  kanlog link t_1a2b t_3c4d     # t_3c4d waits for t_1a2b",
		Args:    exactly(2, "the card that is waited for and the one that waits"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.edge(args, "link", "waits for ", projection.Link)
		},
	}
	a.runFlagOf(cmd)
	return cmd
}

func unlinkCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "unlink PARENT CHILD",
		Short:   "Let a card wait for another one no longer",
		Example: "  kanlog unlink t_1a2b t_3c4d",
		Args:    exactly(2, "the card that is waited for and the one that waits"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.edge(args, "unlink", "no longer waits for ", projection.Unlink)
		},
	}
	a.runFlagOf(cmd)
	return cmd
}

// edge changes what one card waits for and says what that made of it.
func (a *app) edge(args []string, verb, words string, decider func(parent, child string, w projection.Writer) projection.Decider) error {
	parent, err := a.resolve(args[0])
	if err != nil {
		return err
	}
	return a.decide(args[1], verb, words+parent, func(id string, w projection.Writer) projection.Decider {
		return decider(parent, id, w)
	})
}
