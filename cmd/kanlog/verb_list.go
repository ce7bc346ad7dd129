package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kanlog/projection"
)

// sorts are the orders of list, each the way that people ask for first; a minus
// before the name turns it round. Ties are broken by age.
var sorts = map[string]func(x, y *listed) int{
	"priority":  func(x, y *listed) int { return cmp.Compare(y.Priority, x.Priority) },
	"created":   func(x, y *listed) int { return cmp.Compare(x.CreatedSeq, y.CreatedSeq) },
	"status":    func(x, y *listed) int { return cmp.Compare(statusOrder(x), statusOrder(y)) },
	"assignee":  func(x, y *listed) int { return strings.Compare(x.Assignee, y.Assignee) },
	"title":     func(x, y *listed) int { return strings.Compare(x.Title, y.Title) },
	"updated":   func(x, y *listed) int { return cmp.Compare(y.updated, x.updated) },
	"completed": func(x, y *listed) int { return cmp.Compare(y.CompletedAt, x.CompletedAt) },
}

// sortNames is what --sort takes, in the order of the help.
const sortNames = "priority, created, status, assignee, title, updated, completed"

// listBatch is how many cards are completed for printing in one transaction.
const listBatch = 500

// listed is a card on its way to be printed.
type listed struct {
	*projection.Task
	updated uint64   // the newest commit about it; only if they are sorted by it
	stuckOn []string // only with --stuck
	why     string   // only with --why
	form    any      // only with --json
}

func statusOrder(t *listed) int { return slices.Index(projection.Statuses, t.Status) }

// listing is one call of list.
type listing struct {
	status                []string
	assignee, tenant, tag *string // nil: any
	mine, archived        bool
	stuck, why            bool
	sort                  string
	limit                 int

	me    string
	roots projection.Stuck
}

func listCmd(a *app) *cobra.Command {
	var l listing
	var assignee, tenant, tag string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the cards, in the order of dispatch",
		Long: `list shows the cards of the board, the higher priority first and of equals the older
card: the order in which dispatch starts those that can start, but for one review,
which goes first.

--mine are the cards assigned to you: to $KANLOG_PROFILE if that is set, in a
worker to the assignee of its card, else to the name of your account.

--stuck are the cards that nothing but a person moves: those that are blocked, in
triage or in review by a person, and those that wait for such a card, through any number of others. It
names the cards at the root of it, and why (--why) each of them waits.`,
		Example: `  kanlog list
  kanlog list --status ready,running --assignee coder
  kanlog list --stuck
  kanlog list --archived --sort -created --limit 20
  kanlog list --json | jq -r '.[] | select(.status=="blocked").id'`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := func(name string, s *string) *string {
				if cmd.Flags().Changed(name) {
					return s
				}
				return nil
			}
			l.assignee, l.tenant, l.tag = given("assignee", &assignee), given("tenant", &tenant), given("tag", &tag)
			if err := l.check(); err != nil {
				return err
			}
			return a.list(&l)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&l.status, "status", nil, "only these, separated by commas: "+strings.Join(projection.Statuses, " "))
	f.StringVar(&assignee, "assignee", "", "only this assignee's (\"\": nobody's)")
	f.StringVar(&tenant, "tenant", "", "only this tenant's")
	f.StringVar(&tag, "tag", "", "only with this tag")
	f.BoolVar(&l.mine, "mine", false, "only those assigned to you")
	f.BoolVar(&l.archived, "archived", false, "archived ones too")
	f.BoolVar(&l.why, "why", false, "say of each why it does not run")
	f.BoolVar(&l.stuck, "stuck", false, "only those that cannot move by themselves, and because of which")
	f.StringVar(&l.sort, "sort", "priority", "by "+sortNames+"; -created and so on: the other way round")
	f.Var(&number[int]{&l.limit}, "limit", "at most this many (0: all)")
	return cmd
}

func (l *listing) check() error {
	for _, s := range l.status {
		if !slices.Contains(projection.Statuses, s) {
			return usage("--status %q is none of %s", s, strings.Join(projection.Statuses, ", "))
		}
	}
	if sorts[strings.TrimPrefix(l.sort, "-")] == nil {
		return usage("--sort %q is none of %s; with - before it the other way round", l.sort, sortNames)
	}
	if l.limit < 0 {
		return usage("--limit %d is negative", l.limit)
	}
	l.why = l.why || l.stuck
	l.roots = projection.Stuck{}
	return nil
}

func (l *listing) keeps(t *projection.Task) bool {
	is := func(want *string, have string) bool { return want == nil || *want == have }
	return (t.Status != projection.Archived || l.archived || slices.Contains(l.status, projection.Archived)) &&
		(len(l.status) == 0 || slices.Contains(l.status, t.Status)) &&
		is(l.assignee, t.Assignee) && is(l.tenant, t.Tenant) &&
		(l.tag == nil || slices.Contains(t.Tags, *l.tag)) &&
		(!l.mine || t.Assignee == l.me)
}

// narrowed tells whether some cards only were asked for.
func (l *listing) narrowed() bool {
	return len(l.status) > 0 || l.assignee != nil || l.tenant != nil || l.tag != nil || l.mine || l.stuck
}

func (l *listing) order(cards []*listed) []*listed {
	name, back := strings.CutPrefix(l.sort, "-")
	slices.SortFunc(cards, func(x, y *listed) int {
		n := sorts[name](x, y)
		if back {
			n = -n
		}
		return cmp.Or(n, cmp.Compare(x.CreatedSeq, y.CreatedSeq))
	})
	if l.limit > 0 && len(cards) > l.limit {
		cards = cards[:l.limit]
	}
	return cards
}

// profileName is whose cards are the caller's.
func (a *app) profileName(store reading) (me string, err error) {
	if me = os.Getenv("KANLOG_PROFILE"); me != "" {
		return me, nil
	}
	me = userName()
	if own := os.Getenv("KANLOG_TASK"); own != "" {
		err = store.View(func(v projection.View) error {
			t, err := v.Task(own)
			if t != nil {
				me = t.Assignee
			}
			return err
		})
	}
	return me, err
}

func (a *app) list(l *listing) error {
	store, err := a.reads()
	if err != nil {
		return err
	}
	if l.mine {
		if l.me, err = a.profileName(store); err != nil {
			return err
		}
	}
	var cards []*listed
	err = l.each(store, func(v projection.View, t *projection.Task) error {
		if !l.keeps(t) {
			return nil
		}
		c := &listed{Task: t}
		if l.stuck {
			roots, err := l.roots.Roots(v, t)
			if err != nil || len(roots) == 0 {
				return err
			}
			c.stuckOn = roots
		}
		if strings.HasSuffix(l.sort, "updated") {
			c.updated = v.LastCommit(t.ID)
		}
		if cards = append(cards, c); len(cards) == l.limit && l.first() {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	cards = l.order(cards)
	if err := a.readListed(store, l, cards); err != nil {
		return err
	}
	switch {
	case a.asJSON:
		forms := make([]any, len(cards))
		for i, c := range cards {
			forms[i] = c.form
		}
		return a.json(forms)
	case len(cards) == 0:
		if l.narrowed() {
			a.warn("no cards that fit")
		} else if a.past != nil {
			a.warn("no cards yet")
		} else {
			a.warn("no cards (kanlog create makes one)")
		}
		return nil
	}
	return a.table(func(w io.Writer) { a.listTable(w, l, cards) })
}

// first tells whether the first cards that are kept are the ones to show: they come
// in the order of dispatch.
func (l *listing) first() bool {
	return l.sort == "priority" && !l.archived && !slices.Contains(l.status, projection.Archived)
}

// each reads the cards. Where the first ones are enough the board may be as big as
// it likes; it is read in batches, since a long transaction keeps everybody waiting.
func (l *listing) each(store reading, fn func(v projection.View, t *projection.Task) error) error {
	if l.limit == 0 || !l.first() {
		return store.EachCard(fn)
	}
	var from []byte
	for {
		err := store.View(func(v projection.View) error {
			cards, next, err := v.InOrder(from, min(max(l.limit, 64), listBatch))
			if err != nil {
				return err
			}
			for _, t := range cards {
				if err := fn(v, t); err != nil {
					return err
				}
			}
			from = next
			return nil
		})
		if err != nil || from == nil {
			return err
		}
	}
}

// listedJSON is a task with what the flags of list asked for beside it.
type listedJSON struct {
	*taskJSON
	Why     any      `json:"why"`
	StuckOn []string `json:"stuck_on,omitempty"`
}

// readListed reads what is printed of each card beside its row.
func (a *app) readListed(store reading, l *listing, cards []*listed) error {
	if !a.asJSON && !l.why {
		return nil
	}
	set, err := a.reasons()
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(cards, listBatch) {
		err := store.View(func(v projection.View) error {
			w, err := set.waiting(v, a.now)
			if err != nil {
				return err
			}
			for _, c := range batch {
				if err := a.readCard(v, l, c, w); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) readCard(v projection.View, l *listing, c *listed, w projection.Admission) (err error) {
	if l.why {
		if c.why, err = v.Why(c.Task, a.now, w); err != nil {
			return err
		}
	}
	if !a.asJSON {
		return nil
	}
	j, err := newTaskJSON(v, c.Task)
	if err != nil {
		return err
	}
	j = a.placed(j)
	c.form = j
	if l.why {
		c.form = &listedJSON{j, text(c.why), c.stuckOn}
	}
	return nil
}

func (a *app) listTable(w io.Writer, l *listing, cards []*listed) {
	heads := "ID\tSTATUS\tPRIO\tASSIGNEE\tAGE\tTITLE"
	if l.stuck {
		heads += "\tSTUCK ON"
	}
	if l.why {
		heads += "\tWHY"
	}
	fmt.Fprintln(w, heads)
	for _, c := range cards {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s", c.ID, c.Status, c.Priority, cell(c.Assignee), brief(a.now.Since(c.CreatedAt)), cell(c.Title))
		if l.stuck {
			fmt.Fprintf(w, "\t%s", cell(stuckOn(c)))
		}
		if l.why {
			fmt.Fprintf(w, "\t%s", cell(c.why))
		}
		fmt.Fprintln(w)
	}
}

// stuckOn names the roots; a card that is its own says nothing by naming itself.
func stuckOn(c *listed) string {
	if len(c.stuckOn) == 1 && c.stuckOn[0] == c.ID {
		return ""
	}
	return strings.Join(c.stuckOn, " ")
}
