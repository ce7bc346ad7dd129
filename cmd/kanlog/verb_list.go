package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"kanlog/projection"
)

// sorts are the orders of list; ties are broken by age.
var sorts = map[string]func(x, y *projection.Task) bool{
	"priority":       func(x, y *projection.Task) bool { return x.Priority > y.Priority },
	"created":        func(x, y *projection.Task) bool { return x.CreatedSeq < y.CreatedSeq },
	"created-desc":   func(x, y *projection.Task) bool { return x.CreatedSeq > y.CreatedSeq },
	"status":         func(x, y *projection.Task) bool { return statusOrder(x) < statusOrder(y) },
	"assignee":       func(x, y *projection.Task) bool { return x.Assignee < y.Assignee },
	"title":          func(x, y *projection.Task) bool { return x.Title < y.Title },
	"completed-desc": func(x, y *projection.Task) bool { return x.CompletedAt > y.CompletedAt },
}

// listBatch is how many cards are completed for printing in one transaction.
const listBatch = 500

func statusOrder(t *projection.Task) int { return slices.Index(projection.Statuses, t.Status) }

func listCmd(a *app) *cobra.Command {
	var status []string
	var assignee, tenant, tag, order string
	var mine, archived bool
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the cards, in the order of dispatch",
		Example: `  kanlog list
  kanlog list --status ready,running --assignee coder
  kanlog list --json | jq -r '.[] | select(.status=="blocked").id'`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range status {
				if !slices.Contains(projection.Statuses, s) {
					return usage("--status %q is none of %s", s, strings.Join(projection.Statuses, ", "))
				}
			}
			less, ok := sorts[order]
			if !ok {
				var names []string
				for name := range sorts {
					names = append(names, name)
				}
				sort.Strings(names)
				return usage("--sort %q is none of %s", order, strings.Join(names, ", "))
			}
			if limit < 0 {
				return usage("--limit %d is negative", limit)
			}
			given := cmd.Flags().Changed
			return a.list(func(me string, t *projection.Task) bool {
				switch {
				case t.Status == projection.Archived && !archived && !slices.Contains(status, projection.Archived),
					len(status) > 0 && !slices.Contains(status, t.Status),
					given("assignee") && t.Assignee != assignee,
					given("tenant") && t.Tenant != tenant,
					given("tag") && !slices.Contains(t.Tags, tag),
					mine && t.Assignee != me:
					return false
				}
				return true
			}, less, limit)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&status, "status", nil, "only these, separated by commas: "+strings.Join(projection.Statuses, " "))
	f.StringVar(&assignee, "assignee", "", "only this assignee's (\"\": nobody's)")
	f.StringVar(&tenant, "tenant", "", "only this tenant's")
	f.StringVar(&tag, "tag", "", "only with this tag")
	f.BoolVar(&mine, "mine", false, "only those assigned to you (in a worker: to its card's assignee)")
	f.BoolVar(&archived, "archived", false, "archived ones too")
	f.StringVar(&order, "sort", "priority", "priority, created, created-desc, status, assignee, title or completed-desc")
	f.Var(&number[int]{&limit}, "limit", "at most this many (0: all)")
	return cmd
}

func (a *app) list(keep func(me string, t *projection.Task) bool, less func(x, y *projection.Task) bool, limit int) error {
	var cards []*projection.Task
	forms := []*taskJSON{}
	store, err := a.board()
	if err != nil {
		return err
	}
	me := userName()
	if own := os.Getenv("KANLOG_TASK"); own != "" {
		err := store.View(func(v projection.View) error {
			t, err := v.Task(own)
			if t != nil {
				me = t.Assignee
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	err = store.EachCard(func(v projection.View, t *projection.Task) error {
		if keep(me, t) {
			cards = append(cards, t)
		}
		return nil
	})
	if err != nil {
		return err
	}
	sort.Slice(cards, func(i, j int) bool {
		x, y := cards[i], cards[j]
		if less(x, y) != less(y, x) {
			return less(x, y)
		}
		return x.CreatedSeq < y.CreatedSeq
	})
	if limit > 0 && len(cards) > limit {
		cards = cards[:limit]
	}
	for left := cards; a.asJSON && len(left) > 0; {
		batch := left[:min(len(left), listBatch)]
		left = left[len(batch):]
		err := store.View(func(v projection.View) error {
			for _, t := range batch {
				j, err := newTaskJSON(v, t)
				if err != nil {
					return err
				}
				forms = append(forms, a.placed(j))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if a.asJSON {
		return a.json(forms)
	}
	if len(cards) == 0 {
		a.warn("no cards")
		return nil
	}
	return a.table(func(w io.Writer) {
		fmt.Fprintln(w, "ID\tSTATUS\tPRIO\tASSIGNEE\tAGE\tTITLE")
		for _, t := range cards {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", t.ID, t.Status, t.Priority, cell(t.Assignee), brief(a.now.Since(t.CreatedAt)), cell(t.Title))
		}
	})
}
