package main

import (
	"errors"
	"fmt"
	"sort"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// stuckAfter is how long a blocked card may lie without a word.
const stuckAfter = 24 * time.Hour

// blockedCard is what there is to say of a blocked card.
type blockedCard struct {
	card    *projection.Task
	quiet   time.Duration      // since the last event of the card, comments too
	spent   *projection.Budget // the budget that is used up, nil if none
	waiting []string           // the cards that wait for it
}

// chains finds what waits for what.
type chains struct {
	set     *settings
	now     eventlog.Time
	blocked map[string]*blockedCard
	stuck   projection.Stuck
}

// checkCards goes through all cards once: those that are blocked, and those that
// wait for one that is.
func (d *doctor) checkCards() ([]finding, error) {
	c := &chains{&d.set, d.a.now, map[string]*blockedCard{}, projection.Stuck{}}
	for after, n := "", listBatch; n == listBatch; {
		err := d.file.View(func(tx *eventlog.Tx) error {
			v := projection.NewView(tx)
			cards, err := v.TasksAfter(after, listBatch)
			n = len(cards)
			for _, t := range cards {
				after = t.ID
				if err == nil {
					err = c.add(tx, v, t)
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var list []finding
	for _, b := range c.blocked {
		if f, bad := b.finding(d); bad {
			list = append(list, f)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Message < list[j].Message })
	return list, nil
}

// add weighs one card, and the blocked one that it waits for.
func (c *chains) add(tx *eventlog.Tx, v projection.View, t *projection.Task) error {
	if t.Status != projection.Blocked && t.Status != projection.Todo {
		return nil
	}
	root, err := c.root(v, t)
	if err != nil || root == "" {
		return err
	}
	b := c.blocked[root]
	if b == nil {
		if b, err = c.weigh(tx, v, root); err != nil {
			return err
		}
		c.blocked[root] = b
	}
	if root != t.ID {
		b.waiting = append(b.waiting, t.ID)
	}
	return nil
}

// root is the first blocked card that holds t up, t itself among them, "" if there
// is none.
func (c *chains) root(v projection.View, t *projection.Task) (string, error) {
	roots, err := c.stuck.Roots(v, t)
	for _, id := range roots {
		if err != nil {
			break
		}
		var at *projection.Task
		if at, err = v.MustTask(id); at != nil && at.Status == projection.Blocked {
			return id, nil
		}
	}
	return "", err
}

// weigh reads what there is to say of a blocked card.
func (c *chains) weigh(tx *eventlog.Tx, v projection.View, id string) (*blockedCard, error) {
	t, err := v.MustTask(id)
	if err != nil {
		return nil, err
	}
	b := &blockedCard{card: t}
	counts, err := v.CountsOf(t)
	if err != nil {
		return nil, err
	}
	for _, budget := range c.set.policy.Limits.Budgets(t, counts) {
		if budget.Used >= budget.Limit {
			b.spent = &budget
			break
		}
	}
	head, err := tx.Head()
	if err != nil {
		return nil, err
	}
	enough := errors.New("one is enough")
	err = tx.Read(lastCommit(v, id, head.Commit), func(last eventlog.Commit) error {
		b.quiet = c.now.Since(last.At)
		return enough
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return b, err
}

// lastCommit is the newest commit that concerns a card, up to the log's newest:
// found by halves, so that a long history costs a few looks more.
func lastCommit(v projection.View, id string, head uint64) uint64 {
	low, high := uint64(1), head // the answer lies in [low, high]
	for low < high {
		mid := low + (high-low+1)/2
		if len(v.TaskCommits(id, mid, 1)) > 0 {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// finding says what is wrong with a blocked card. One that was blocked today and
// keeps nobody waiting is as it should be.
func (b *blockedCard) finding(d *doctor) (finding, bool) {
	id, waits := b.card.ID, ""
	if n := len(b.waiting); n > 0 {
		waits = fmt.Sprintf("; %s for it: %s", plural(n, "card waits", "cards wait"), some(b.waiting, maxFindings))
	}
	fix := d.run("unblock", id)
	switch {
	case b.spent != nil:
		return found(sevWarning, id, fmt.Sprintf("%s is blocked: its budget is used up (%s: %d of %d): %s%s", id, b.spent.Name, b.spent.Used, b.spent.Limit, b.card.BlockReason, waits),
			"it is not tried again by itself; see first why it failed ("+d.run("show", id)+")", fix), true
	case b.quiet > stuckAfter:
		return found(sevWarning, id, fmt.Sprintf("%s is blocked, and nobody has said a word for %s: %s%s", id, brief(b.quiet), b.card.BlockReason, waits),
			"it waits for somebody; a comment says that it is not forgotten", fix), true
	case waits != "":
		return found(sevNote, id, fmt.Sprintf("%s is blocked: %s%s", id, b.card.BlockReason, waits), "what waits for it starts when it is done", fix), true
	}
	return finding{}, false
}
