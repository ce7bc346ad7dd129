package projection

import (
	"fmt"
	"slices"
	"strings"

	"kanlog/eventlog"
)

// Link makes child wait for parent. A ready child whose new parent is open waits
// from here on, and says so; a running one is linked only by its own run, since for
// anybody else the edge would come too late.
func Link(parent, child string, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		p, err := v.MustTask(parent)
		if err != nil {
			return Decision{}, err
		}
		t, open, stop, err := fence(v, "link", child, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		parents := v.Parents(child)
		if slices.Contains(parents, parent) {
			return already(child, "linked before"), nil
		}
		if len(parents) >= MaxParents {
			return Decision{}, refuse(ErrState, child, "has %d parents already; it may have at most %d", len(parents), MaxParents)
		}
		if cycle := v.path(parent, child); cycle != nil {
			return Decision{}, refuse(ErrState, child, "cannot wait for %s: that closes the cycle %s", parent, nameCycle(cycle))
		}
		if open != nil && w.Run == 0 {
			return Decision{}, refuse(ErrState, child, "running (run %d): the link would come too late; give --run %d if you are that run, or reclaim it first", open.ID, open.ID)
		}
		d := &eventlog.Linked{Parent: parent}
		waits := p.Status != Done && p.Status != Archived
		switch t.Status {
		case Done, Archived:
			return Decision{}, refuse(ErrState, child, "%s: it waits for nothing any more; reopen it first", t.Status)
		case Review:
			if waits {
				return Decision{}, refuse(ErrState, child, "in review; approve it or request changes first")
			}
		case Ready, Scheduled:
			if waits {
				d.To = Todo
			}
		}
		return decided(child, event(child, w.Run, d)), nil
	}
}

// Unlink makes child wait for parent no longer. If that was all it waited for it
// goes on in the same commit.
func Unlink(parent, child string, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		t, open, stop, err := fence(v, "unlink", child, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		if open != nil && w.InWorker() {
			return Decision{}, refuse(ErrState, child, "a worker does not take away what its own card waits for")
		}
		if !slices.Contains(v.Parents(child), parent) {
			return Decision{}, refuse(ErrState, child, "does not wait for %s", parent)
		}
		d := &eventlog.Unlinked{Parent: parent}
		if t.Status == Todo {
			to, err := statusWithout(v, t, now, parent)
			if err != nil {
				return Decision{}, err
			}
			if to != Todo {
				d.To = to
			}
		}
		return decided(child, event(child, 0, d)), nil
	}
}

// path returns the cards on a way along which from waits for to, both included, nil
// if there is none. It reads the ancestors of from, each once, and no others.
func (v View) path(from, to string) []string {
	behind := map[string]string{from: ""} // a card -> who waits for it
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		id := queue[0]
		if id == to {
			var way []string
			for ; id != ""; id = behind[id] {
				way = append(way, id)
			}
			slices.Reverse(way)
			return way
		}
		for _, p := range v.Parents(id) {
			if _, seen := behind[p]; !seen {
				behind[p] = id
				queue = append(queue, p)
			}
		}
	}
	return nil
}

// nameCycle names the cards of a way that would be closed, a few of them.
func nameCycle(way []string) string {
	const most = 10
	if n := len(way) - most; n > 0 {
		way = slices.Concat(way[:most/2], []string{fmt.Sprintf("(%d more)", n)}, way[len(way)-most/2:])
	}
	return strings.Join(append(way, way[0]), " waits for ")
}

// nameParents names cards that are waited for, a few of them, with what holds them.
func nameParents(open []*Task) string {
	const most = 5
	var names []string
	for _, p := range open {
		if len(names) == most && len(open) > most {
			names = append(names, fmt.Sprintf("%d more", len(open)-most))
			break
		}
		names = append(names, p.ID+" ("+p.Status+colon(p.BlockReason)+")")
	}
	return strings.Join(names, ", ")
}
