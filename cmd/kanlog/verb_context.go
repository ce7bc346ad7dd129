package main

import (
	"github.com/spf13/cobra"

	"kanlog/projection"
)

func contextCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "context ID",
		Short: "Print what a worker of the card is told ($KANLOG_CONTEXT)",
		Long: `context prints the text that the next worker of a card finds in the file that
$KANLOG_CONTEXT names: the card, earlier attempts, what its parents handed over,
comments. Nothing is written.`,
		Example: "  kanlog context t_1a2b",
		Args:    exactly(1, "one id"),
		RunE: func(_ *cobra.Command, args []string) error {
			var id string
			var text []byte
			err := a.view(func(v projection.View) (err error) {
				if id, err = v.Resolve(args[0]); err == nil {
					text, err = a.context(v, id)
				}
				return err
			})
			switch {
			case err != nil:
				return err
			case a.asJSON:
				return a.json(map[string]any{"task": id, "context": string(text)})
			}
			return a.write(text)
		},
	}
}
