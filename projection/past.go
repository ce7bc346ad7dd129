package projection

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/tidwall/btree"

	"kanlog/eventlog"
)

// Moment is a point of a log: behind an event, or at a time. One of the two is set.
type Moment struct {
	Seq uint64
	At  eventlog.Time
}

// Past is a board as it was: the fold of a beginning of its log, in memory. Nothing
// of it is written anywhere. It may be read by one goroutine at a time.
type Past struct {
	// Head is the last commit that belongs to it, At and Actor what that says; all
	// zero if it lies before the first one.
	Head  eventlog.Head
	At    eventlog.Time
	Actor string

	store  *Store
	tables *pastTables

	// What the log says about the settings by then.
	limits   Limits
	boardCap int
	caps     map[string]int  // of the assignees that a dispatcher has claimed for
	pulled   map[string]bool // those that pull workers have claimed for
}

// ErrAhead is a moment that the log has not reached.
var ErrAhead = errors.New("the log does not go as far")

// Past folds the log up to a moment. An event is followed by the rest of its commit,
// since nobody ever saw a part of one. A time is reached by the last commit that does
// not lie behind it: clocks go back, and what was written then is a part of what was
// known at the time. told, unless nil, is called with the number of each thousandth
// commit or so.
func (s *Store) Past(m Moment, told func(commit uint64)) (*Past, error) {
	last := uint64(0)
	if m.Seq == 0 {
		var err error
		if last, err = s.lastBy(m.At); err != nil {
			return nil, err
		}
	}
	p := s.Before()
	err := s.file.ReadAhead(1, func(c eventlog.Commit) error {
		if m.Seq == 0 && c.Number > last || m.Seq > 0 && c.Seq > m.Seq {
			return errOne
		}
		if told != nil && c.Number%1024 == 0 {
			told(c.Number)
		}
		return p.Apply(c)
	})
	if errors.Is(err, errOne) {
		err = nil
	}
	if err == nil && p.Head.Seq < m.Seq {
		err = fmt.Errorf("%w: the last event is %d", ErrAhead, p.Head.Seq)
	}
	return p, err
}

// Now is the board as it is at this moment: however long somebody looks at it, it stays
// that board, and nobody waits. It costs what the whole log costs.
func (s *Store) Now() (*Past, error) {
	head, err := s.file.Head()
	if err != nil || head.Commit == 0 {
		p := s.Before()
		p.Head, p.tables.head = head, head // its hash is that of the board's identity
		return p, err
	}
	p, err := s.Past(Moment{Seq: head.Seq}, nil)
	if errors.Is(err, ErrAhead) || err == nil && p.Head != head {
		err = eventlog.ErrReplaced
	}
	return p, err
}

// Before is the board before its first commit.
func (s *Store) Before() *Past {
	return &Past{store: s, tables: newPastTables(), limits: DefaultLimits(), caps: map[string]int{}, pulled: map[string]bool{}}
}

// Apply folds the next commit.
func (p *Past) Apply(c eventlog.Commit) error {
	if c.Number != p.Head.Commit+1 {
		return inconsistent("commit %d cannot follow on %d", c.Number, p.Head.Commit)
	}
	if err := Fold(p.tables, c); err != nil {
		return fmt.Errorf("commit %d: %w", c.Number, err)
	}
	p.Head = eventlog.Head{Commit: c.Number, Seq: c.Seq + uint64(len(c.Events)) - 1, Hash: c.Hash}
	p.At, p.Actor, p.tables.head = c.At, c.Actor, p.Head
	for _, e := range c.Events {
		p.limits, _ = p.limits.recorded(e.Data)
		switch d, _ := e.Data.(*eventlog.Claimed); {
		case d == nil:
		case d.Origin == OriginDispatch:
			p.boardCap, p.caps[d.Assignee] = d.BoardCap, d.AssigneeCap
		case d.Origin == OriginWork:
			p.pulled[d.Assignee] = true
		}
	}
	return nil
}

// Step is Apply event by event: before and after are called around each of them.
func (p *Past) Step(c eventlog.Commit, before, after func(i int) error) error {
	for i := range c.Events {
		if err := before(i); err != nil {
			return err
		}
		one := c
		one.Seq, one.Events = c.Seq+uint64(i), c.Events[i:i+1]
		if i > 0 {
			p.Head.Commit-- // the same commit goes on
		}
		if err := p.Apply(one); err != nil {
			return err
		}
		if err := after(i); err != nil {
			return err
		}
	}
	return nil
}

// Limits are those that the newest decision was taken by that names any, else the
// contract's.
func (p *Past) Limits() Limits { return p.limits }

// Admission is what the log alone tells of what a dispatcher could start: anybody's
// cards, since no profile is on record, but for those that only pull workers have
// claimed by then; under the caps that the claims name.
func (p *Past) Admission() Admission {
	w := Admission{Profiles: map[string]bool{}}
	p.tables.tasks.Scan(func(_ string, t *Task) bool {
		for _, name := range []string{t.Assignee, t.Reviewer} {
			if _, dispatched := p.caps[name]; name != "" && (dispatched || !p.pulled[name]) {
				w.Profiles[name] = true
			}
		}
		return true
	})
	w.Full = func(assignee string) string {
		u, err := View{p.tables}.usage(assignee)
		if err != nil {
			return err.Error()
		}
		return Caps{Board: p.boardCap, Profile: p.caps[assignee]}.Full(assignee, u, p.At)
	}
	return w
}

// lastBy is the number of the last commit that is not later than a time, 0 if all are.
func (s *Store) lastBy(at eventlog.Time) (last uint64, err error) {
	err = s.file.ReadTimes(func(n uint64, then eventlog.Time) {
		if then <= at {
			last = n
		}
	})
	return last, err
}

// View reads the board as it was.
func (p *Past) View(fn func(View) error) error { return fn(View{p.tables}) }

// EachCard is Store.EachCard for the board as it was.
func (p *Past) EachCard(fn func(View, *Task) error) (err error) {
	p.tables.tasks.Scan(func(_ string, t *Task) bool {
		c := *t
		err = fn(View{p.tables}, &c)
		return err == nil
	})
	return err
}

// Cards are the ids of all cards, the oldest first.
func (p *Past) Cards() []string {
	list := make([]*Task, 0, p.tables.tasks.Len())
	p.tables.tasks.Scan(func(_ string, t *Task) bool {
		list = append(list, t)
		return true
	})
	sort.Slice(list, func(i, j int) bool { return list[i].CreatedSeq < list[j].CreatedSeq })
	ids := make([]string, len(list))
	for i, t := range list {
		ids[i] = t.ID
	}
	return ids
}

// Commits are those that belong to it, in order. eventlog.ErrReplaced: what fn has seen
// may be of another log.
func (p *Past) Commits(fn func(eventlog.Commit) error) error {
	if p.Head.Commit == 0 {
		return nil
	}
	// Asked before anything is read, so that hardly ever something of another log is
	// given to fn; but it may be replaced at any moment.
	if err := p.store.file.View(func(tx *eventlog.Tx) error { return tx.GoesOnFrom(p.Head) }); err != nil {
		return err
	}
	err := p.store.Commits(1, func(c eventlog.Commit) error {
		// Its hash covers all before it.
		if c.Number == p.Head.Commit && c.Hash != p.Head.Hash {
			return eventlog.ErrReplaced
		}
		if err := fn(c); err != nil || c.Number < p.Head.Commit {
			return err
		}
		return errOne
	})
	switch {
	case err == nil:
		return eventlog.ErrReplaced // it ends before
	case errors.Is(err, errOne):
		return nil
	}
	return err
}

// TaskCommits is Store.TaskCommits for the board as it was.
func (p *Past) TaskCommits(task string, from uint64, fn func(eventlog.Commit) error) error {
	return p.store.TaskCommitsUpTo(p.Head, task, from, fn)
}

// RecentRuns is Store.RecentRuns for the board as it was.
func (p *Past) RecentRuns(max int, fn func(*Run)) (all bool, err error) {
	all = true
	p.tables.runs.Reverse(func(_ uint64, r *Run) bool {
		if max--; max < 0 {
			all = false
			return false
		}
		c := *r
		fn(&c)
		return true
	})
	return all, nil
}

// pastTables are tables in memory that keep the rows of cards and runs as they are: a
// fold of a whole log decodes and encodes nothing, which is most of its work.
type pastTables struct {
	*eventlog.Mem // the other tables
	head          eventlog.Head
	tasks         btree.Map[string, *Task]
	runs          btree.Map[uint64, *Run]
}

// Head is the end of the log as far as it was folded.
func (p *pastTables) Head() (eventlog.Head, error) { return p.head, nil }

// Tables returns the names of the tables, ascending.
func (p *pastTables) Tables() []string {
	names := p.Mem.Tables()
	if p.tasks.Len() > 0 {
		names = append(names, tabTasks)
	}
	if p.runs.Len() > 0 {
		names = append(names, tabRuns)
	}
	sort.Strings(names)
	return names
}

func newPastTables() *pastTables { return &pastTables{Mem: eventlog.NewMem([16]byte{})} }

// rowKeeper is tables that keep rows as they are. What they give belongs to them.
type rowKeeper interface {
	task(id string) *Task
	run(id uint64) *Run
	setTask(t *Task)
	setRun(r *Run)
}

func (p *pastTables) task(id string) *Task {
	t, _ := p.tasks.Get(id)
	return t
}

func (p *pastTables) run(id uint64) *Run {
	r, _ := p.runs.Get(id)
	return r
}

func (p *pastTables) setTask(t *Task) { p.tasks.Set(t.ID, t) }
func (p *pastTables) setRun(r *Run)   { p.runs.Set(r.ID, r) }

func (p *pastTables) Get(table string, key []byte) []byte {
	switch table {
	case tabTasks:
		if t := p.task(string(key)); t != nil {
			return encodeRow(t)
		}
		return nil
	case tabRuns:
		if r := p.run(binary.BigEndian.Uint64(key)); r != nil {
			return encodeRow(r)
		}
		return nil
	}
	return p.Mem.Get(table, key)
}

func (p *pastTables) Scan(table string, from []byte, fn func(k, v []byte) bool) {
	switch table {
	case tabTasks:
		p.tasks.Ascend(string(from), func(id string, t *Task) bool { return fn([]byte(id), encodeRow(t)) })
	case tabRuns:
		first := uint64(0)
		if len(from) >= 8 {
			first = binary.BigEndian.Uint64(from)
		}
		p.runs.Ascend(first, func(id uint64, r *Run) bool {
			k := num(id)
			return bytes.Compare(k, from) < 0 || fn(k, encodeRow(r))
		})
	default:
		p.Mem.Scan(table, from, fn)
	}
}
