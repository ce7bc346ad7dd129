package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"kanlog/projection"
)

func applyCmd(a *app) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "apply FILE|-",
		Short: "Put a whole graph of cards on the board, all or nothing",
		Long: `apply reads cards from a file, YAML or JSON (- for stdin), puts them on the board in
one commit and prints which card has which id. Each card needs a name, which no other
card in the file has, and a title. It may have body, assignee, reviewer, parents,
priority, key, tenant, tags, max_runtime, max_retries, workspace, branch, not_before,
triage (true) and blocked (a reason); they mean what the flags of create mean. Parents
are names of cards in the file, in any order, or ids of cards on the board; where both
are meant by a word, the name wins.

A card with a key is created once: applied again it is left as it is. A card
without a key is created each time.`,
		Example: `  kanlog apply release.yaml --dry-run
  kanlog apply - <<END
  cards:
    - {name: build, title: build the release, assignee: coder, key: build-1.4}
    - {name: test, title: test it, assignee: tester, key: test-1.4, parents: [build]}
  END`,
		Args: exactly(1, "one file (- for stdin)"),
		RunE: func(_ *cobra.Command, args []string) error {
			g, err := a.readGraph(args[0])
			if err != nil {
				return err
			}
			return g.refused(a.apply(g.cards, dryRun))
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be created, create nothing")
	return cmd
}

// appliedJSON is one card of a graph; id is null where only a rehearsal made it.
type appliedJSON struct {
	Name    string `json:"name"`
	ID      any    `json:"id"`
	Status  string `json:"status"`
	Created bool   `json:"created"`
}

func (a *app) apply(cards []projection.Planned, dryRun bool) error {
	w, err := a.writer()
	if err != nil {
		return err
	}
	set, err := a.settings()
	if err != nil {
		return err
	}
	decide := set.policy.Limits.Bounded(w, projection.Apply(cards, w))
	if dryRun {
		res, err := a.rehearseOrInit(decide)
		if err != nil {
			return err
		}
		a.warnApplied(cards, res, nil)
		return a.printApplied(res, true)
	}
	var vain []string
	res, err := a.updateOrInit("apply", w, decide, func(v projection.View, res projection.Result) error {
		vain, err = vainParents(v, res.Applied)
		return err
	})
	if err != nil {
		return err
	}
	a.warnApplied(cards, res, vain)
	if err := a.printApplied(res, false); err != nil {
		return fmt.Errorf("the cards are recorded, but: %w", err)
	}
	return nil
}

// vainParents says which cards outside of a graph its new cards may wait for in
// vain.
func vainParents(v projection.View, applied []projection.Applied) ([]string, error) {
	made := map[string]bool{}
	for _, c := range applied {
		made[c.ID] = c.Created
	}
	var vain []string
	for _, c := range applied {
		if !c.Created {
			continue
		}
		outside := slices.DeleteFunc(v.Parents(c.ID), func(id string) bool { return made[id] })
		list, err := waitWarnings(v, outside)
		if err != nil {
			return nil, err
		}
		for _, why := range list {
			vain = append(vain, fmt.Sprintf("card %q: its parent %s", c.Name, why))
		}
	}
	return vain, nil
}

func (a *app) warnApplied(cards []projection.Planned, res projection.Result, vain []string) {
	said := map[string]bool{}
	for i, c := range res.Applied {
		if to := cards[i].Assignee; c.Created && !said[to] {
			said[to] = true
			a.warnNoProfile(to)
		}
		for _, note := range c.Notes {
			a.warn("card %q: %s", c.Name, note)
		}
	}
	for _, why := range vain {
		a.warn("%s", why)
	}
	if res.Note != "" {
		a.warn("%s; nothing was created", res.Note)
	}
}

func (a *app) printApplied(res projection.Result, dryRun bool) error {
	if a.asJSON {
		list := make([]appliedJSON, len(res.Applied))
		for i, c := range res.Applied {
			list[i] = appliedJSON{c.Name, c.ID, c.Status, c.Created}
			if dryRun && c.Created {
				list[i].ID = nil // another call draws another one
			}
		}
		return a.json(list)
	}
	for _, c := range res.Applied {
		id := c.ID
		switch {
		case !c.Created:
			id += " (there before, " + c.Status + ")"
		case dryRun:
			id = "would be created (" + c.Status + ")"
		}
		if err := a.printf("%s -> %s\n", clean(c.Name, false), id); err != nil {
			return err
		}
	}
	return nil
}
