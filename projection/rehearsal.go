package projection

import (
	"sort"

	"kanlog/eventlog"
)

// Rehearsal is a board on which decisions take effect for its own eyes only: a
// dry run decides each thing on top of what it decided before, as a real tick
// does, and nothing is written. Others may write meanwhile; what was rehearsed
// hides that. It is not safe for concurrent use.
type Rehearsal struct {
	board interface{ View(func(View) error) error }
	// changed is table -> key -> value, nil for a key that was deleted.
	changed map[string]map[string][]byte
	next    uint64 // the number of the next commit and of its first event
}

// rehearsed numbers lie above every number that a log can reach.
const rehearsed = 1 << 52

// Rehearse returns a rehearsal that begins with the board as it is.
func Rehearse(board interface{ View(func(View) error) error }) *Rehearsal {
	return &Rehearsal{board: board, changed: map[string]map[string][]byte{}, next: rehearsed}
}

// View is Store.View, with what was rehearsed.
func (r *Rehearsal) View(fn func(View) error) error {
	return r.board.View(func(v View) error { return fn(View{overlay{v.r, r.changed}}) })
}

// Update is Store.Update, except that nothing is appended.
func (r *Rehearsal) Update(actor string, now eventlog.Time, decide Decider) (res Result, err error) {
	err = r.View(func(v View) error {
		d, err := decide(v, now)
		if err != nil {
			return err
		}
		res = d.Result()
		if d.Refused != nil || len(d.Events) == 0 {
			return d.Refused
		}
		res.Commit = eventlog.Commit{Number: r.next, Seq: r.next, At: now, Actor: actor, Events: d.Events}
		r.next += uint64(len(d.Events))
		return Fold(v.r.(overlay), res.Commit)
	})
	return res, err
}

// overlay is tables with changes that stay in memory.
type overlay struct {
	Reader
	changed map[string]map[string][]byte
}

func (o overlay) set(table string, key, value []byte) {
	if o.changed[table] == nil {
		o.changed[table] = map[string][]byte{}
	}
	o.changed[table][string(key)] = value
}

// Put keeps an empty value apart from a deleted one.
func (o overlay) Put(table string, key, value []byte) { o.set(table, key, append([]byte{}, value...)) }

func (o overlay) Delete(table string, key []byte) { o.set(table, key, nil) }

func (o overlay) Get(table string, key []byte) []byte {
	if value, ok := o.changed[table][string(key)]; ok {
		return value
	}
	return o.Reader.Get(table, key)
}

// Scan merges what is there with what was changed.
func (o overlay) Scan(table string, from []byte, fn func(k, v []byte) bool) {
	var mine []string
	for k := range o.changed[table] {
		if k >= string(from) {
			mine = append(mine, k)
		}
	}
	sort.Strings(mine)
	first := func() bool {
		k := mine[0]
		mine = mine[1:]
		value := o.changed[table][k]
		return value == nil || fn([]byte(k), value)
	}
	on := true
	o.Reader.Scan(table, from, func(k, v []byte) bool {
		for on && len(mine) > 0 && mine[0] < string(k) {
			on = first()
		}
		switch {
		case !on:
		case len(mine) > 0 && mine[0] == string(k):
			on = first()
		default:
			on = fn(k, v)
		}
		return on
	})
	for on && len(mine) > 0 {
		on = first()
	}
}
