package main

import (
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"
)

func headCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "head",
		Short: "Print the end of the log: commit, hash and event",
		Long: `head prints COMMIT:HASH of the log's last commit, and the number of the last event.
Each hash covers everything before it: written down somewhere else, it proves later
that nothing of the log was changed or cut off since (kanlog verify --head). It is
read without looking at the rest of the log.`,
		Example: `  kanlog head | tee -a /mnt/elsewhere/heads
  kanlog verify --head "$(tail -n 1 /mnt/elsewhere/heads)"
  kanlog head --json | jq -r .hash`,
		Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			h, err := a.newestCommit()
			if err != nil {
				return err
			}
			hash := hex.EncodeToString(h.Hash[:])
			if a.asJSON {
				return a.json(map[string]any{"board": a.slug, "commit": h.Commit, "event": h.Seq, "hash": hash})
			}
			return a.printf("%s\n", fmt.Sprintf("%d:%s event %d", h.Commit, hash, h.Seq))
		},
	}
}
