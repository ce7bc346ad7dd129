package projection

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"kanlog/eventlog"
)

// View asks the tables of one transaction. It must not be kept after it.
type View struct{ r Reader }

// NewView reads tables that somebody else holds open.
func NewView(r Reader) View { return View{r} }

// Task returns the card with this exact id, nil if there is none.
func (v View) Task(id string) (*Task, error) {
	if m, ok := v.r.(rowKeeper); ok {
		t := m.task(id)
		if t != nil {
			c := *t
			t = &c
		}
		return t, nil
	}
	b := v.r.Get(tabTasks, []byte(id))
	if b == nil {
		return nil, nil
	}
	t := new(Task)
	return t, decodeRow(b, t)
}

// MustTask returns the card or ErrNotFound.
func (v View) MustTask(id string) (*Task, error) {
	t, err := v.Task(id)
	if err == nil && t == nil {
		err = noSuchCard(id)
	}
	return t, err
}

// Resolve turns an id or a unique prefix of one into the id.
func (v View) Resolve(prefix string) (string, error) {
	if prefix == "" {
		return "", invalid("the id is empty")
	}
	var found []string
	v.scan(tabTasks, []byte(prefix), func(k, _ []byte) bool {
		found = append(found, string(k))
		return len(found) < 4 && found[0] != prefix
	})
	switch {
	case len(found) == 0:
		return "", noSuchCard(prefix)
	case len(found) == 1 || found[0] == prefix:
		return found[0], nil
	}
	more := ""
	if len(found) > 3 {
		found, more = found[:3], ", ..."
	}
	return "", &refusal{ErrNotFound, fmt.Sprintf("%q is the beginning of several ids (%s%s); give more of it", prefix, strings.Join(found, ", "), more)}
}

// scan is Scan for the keys that begin with prefix.
func (v View) scan(table string, prefix []byte, fn func(k, val []byte) bool) {
	v.r.Scan(table, prefix, func(k, val []byte) bool {
		return bytes.HasPrefix(k, prefix) && fn(k, val)
	})
}

// TasksAfter returns up to max cards whose ids follow after, in the order of
// ids: a board is read in such batches, since a long transaction keeps everybody
// waiting.
func (v View) TasksAfter(after string, max int) ([]*Task, error) {
	var list []*Task
	var err error
	v.r.Scan(tabTasks, append([]byte(after), 0), func(_, b []byte) bool {
		t := new(Task)
		if err = decodeRow(b, t); err != nil {
			return false
		}
		list = append(list, t)
		return len(list) < max
	})
	return list, err
}

// InOrder returns up to max cards that are not put away in the order of dispatch,
// whatever they are in, from a place on (nil: the first), and the place behind the
// last, nil if there is no more.
func (v View) InOrder(from []byte, max int) (list []*Task, next []byte, err error) {
	v.r.Scan(tabOrder, from, func(k, id []byte) bool {
		if len(list) == max {
			next = bytes.Clone(k)
			return false
		}
		var t *Task
		if t, err = v.MustTask(string(id)); err != nil {
			return false
		}
		list = append(list, t)
		return true
	})
	return list, next, err
}

// Body returns a card's body.
func (v View) Body(id string) string { return string(v.r.Get(tabBodies, []byte(id))) }

// Run returns a run, nil if there is none.
func (v View) Run(id uint64) (*Run, error) {
	if m, ok := v.r.(rowKeeper); ok {
		r := m.run(id)
		if r != nil {
			c := *r
			r = &c
		}
		return r, nil
	}
	b := v.r.Get(tabRuns, num(id))
	if b == nil {
		return nil, nil
	}
	r := new(Run)
	return r, decodeRow(b, r)
}

// runOf returns a run that a row says exists.
func (v View) runOf(id uint64) (*Run, error) {
	r, err := v.Run(id)
	if err == nil && r == nil {
		err = inconsistent("run %d is named but not there", id)
	}
	return r, err
}

// Runs returns all runs of a card, oldest first.
func (v View) Runs(task string) ([]*Run, error) { return v.runsAfter(task, 0) }

// runsAfter returns the runs of a card with a higher number, oldest first.
func (v View) runsAfter(task string, run uint64) ([]*Run, error) {
	var runs []*Run
	var err error
	prefix := under(task)
	v.r.Scan(tabTaskRuns, cat(prefix, num(run+1)), func(k, _ []byte) bool {
		if !bytes.HasPrefix(k, prefix) {
			return false
		}
		var r *Run
		if r, err = v.runOf(binary.BigEndian.Uint64(k[len(prefix):])); err != nil {
			return false
		}
		runs = append(runs, r)
		return true
	})
	return runs, err
}

// Comments returns all comments of a card, oldest first.
func (v View) Comments(task string) ([]*Comment, error) {
	var all []*Comment
	var err error
	v.scan(tabComments, under(task), func(_, b []byte) bool {
		c := new(Comment)
		if err = decodeRow(b, c); err != nil {
			return false
		}
		all = append(all, c)
		return true
	})
	return all, err
}

// Parents returns the ids of the cards this one waits for.
func (v View) Parents(task string) []string { return v.tails(tabParents, task) }

// Children returns the ids of the cards that wait for this one.
func (v View) Children(task string) []string { return v.tails(tabChildren, task) }

func (v View) tails(table, task string) []string {
	var ids []string
	prefix := under(task)
	v.scan(table, prefix, func(k, _ []byte) bool {
		ids = append(ids, string(k[len(prefix):]))
		return true
	})
	return ids
}

// Active returns every run that is open or has a worker on record, oldest
// first. Its cost grows with what is active, not with the board.
func (v View) Active() ([]*Run, error) {
	var runs []*Run
	var err error
	v.r.Scan(tabActive, nil, func(k, _ []byte) bool {
		var r *Run
		if r, err = v.runOf(binary.BigEndian.Uint64(k)); err != nil {
			return false
		}
		runs = append(runs, r)
		return true
	})
	return runs, err
}

// Ready calls fn with the startable cards of one assignee in the order of
// dispatch (priority, then age) until it returns false.
func (v View) Ready(assignee string, fn func(*Task) bool) error {
	return v.lane(tabReady, assignee, fn)
}

// maxLevels bounds how many priorities OldestOfEach looks at.
const maxLevels = 64

// OldestOfEach calls fn with the oldest startable card of each priority of one
// assignee, however many cards stand between them.
func (v View) OldestOfEach(assignee string, fn func(*Task)) error {
	prefix, from := under(assignee), under(assignee)
	for range maxLevels {
		var id string
		v.r.Scan(tabReady, from, func(k, value []byte) bool {
			if level, ok := bytes.CutPrefix(k, prefix); ok {
				id = string(value)
				// Behind every card of that priority.
				from = cat(prefix, level[:8], bytes.Repeat([]byte{0xff}, 9))
			}
			return false
		})
		if id == "" {
			return nil
		}
		t, err := v.MustTask(id)
		if err != nil {
			return err
		}
		fn(t)
	}
	return nil
}

// InReview is Ready for the cards whose review one profile could start.
func (v View) InReview(reviewer string, fn func(*Task) bool) error {
	return v.lane(tabReview, reviewer, fn)
}

func (v View) lane(table, starter string, fn func(*Task) bool) error {
	var err error
	v.scan(table, under(starter), func(_, id []byte) bool {
		var t *Task
		if t, err = v.MustTask(string(id)); err != nil {
			return false
		}
		return fn(t)
	})
	return err
}

// ReadyAssignees returns the assignees that have startable cards, in order; ""
// stands for none.
func (v View) ReadyAssignees() []string { return v.heads(tabReady, nil) }

// Reviewers returns the profiles that have reviews to start, in order.
func (v View) Reviewers() []string { return v.heads(tabReview, nil) }

// heads returns the names that the keys of a table begin with behind prefix,
// each once, by skipping from one to the next.
func (v View) heads(table string, prefix []byte) []string {
	var names []string
	from := prefix
	for {
		found := false
		v.r.Scan(table, from, func(k, _ []byte) bool {
			if rest, ok := bytes.CutPrefix(k, prefix); ok {
				name, _, _ := bytes.Cut(rest, []byte{0})
				names = append(names, string(name))
				from = cat(prefix, name, []byte{1})
				found = true
			}
			return false
		})
		if !found {
			return names
		}
	}
}

// maxOver bounds how many cards of one assignee whose hold has run out one look
// returns. Behind a quota wall there may be thousands; those that became free
// first come first, and when they have started the next ones are seen.
const maxOver = 1000

// Held returns ready cards whose hold has run out by now (over) and, up to max,
// those still held (still). Of an assignee that is not wanted at most max are
// read in all. A hold from the future has run out: the clock went back, and
// nobody may wait for it to catch up.
func (v View) Held(now eventlog.Time, max int, wanted func(assignee string) bool) (over, still []*Task, err error) {
	seen := map[string]bool{}
	add := func(id []byte) bool {
		var t *Task
		if t, err = v.MustTask(string(id)); err != nil {
			return false
		}
		if !t.heldAt(now) {
			if !seen[t.ID] {
				seen[t.ID] = true
				over = append(over, t)
			}
			return true
		}
		if len(still) < max {
			still = append(still, t)
		}
		return len(still) < max
	}
	until := []byte{'u'}
	for _, name := range v.heads(tabHeld, until) {
		left := max
		if wanted(name) {
			left += maxOver
		}
		v.scan(tabHeld, cat(until, under(name)), func(_, id []byte) bool {
			left--
			return left >= 0 && add(id)
		})
		if err != nil {
			return nil, nil, err
		}
	}
	since := []byte{'s'}
	left := maxOver
	v.r.Scan(tabHeld, cat(since, timeKey(now.Add(ClockSlack)+1)), func(k, id []byte) bool {
		left--
		return k[0] == since[0] && left >= 0 && add(id)
	})
	return over, still, err
}

// Newest is the number of the newest commit that the view knows of.
func (v View) Newest() (uint64, error) {
	head, err := v.Head()
	return head.Commit, err
}

// ErrNoLog is what Head returns of a view that is none of a store's: a rehearsal's, for
// one.
var ErrNoLog = errors.New("this view has no log")

// Head is the end of the log that the view knows of.
func (v View) Head() (eventlog.Head, error) {
	log, ok := v.r.(interface{ Head() (eventlog.Head, error) })
	if !ok {
		return eventlog.Head{}, ErrNoLog
	}
	return log.Head()
}

// Due returns the scheduled cards whose time has come.
func (v View) Due(now eventlog.Time) ([]string, error) {
	var ids []string
	end := timeKey(now + 1)
	v.r.Scan(tabScheduled, nil, func(k, id []byte) bool {
		if bytes.Compare(k[:8], end) >= 0 {
			return false
		}
		ids = append(ids, string(id))
		return true
	})
	return ids, nil
}

// NextDue is the first moment after now at which a scheduled card is due or a hold
// runs out, 0 if there is none.
func (v View) NextDue(now eventlog.Time) (next eventlog.Time) {
	first := func(table string, prefix []byte) {
		v.r.Scan(table, cat(prefix, timeKey(now+1)), func(k, _ []byte) bool {
			if rest, ok := bytes.CutPrefix(k, prefix); ok {
				if t := eventlog.Time(binary.BigEndian.Uint64(rest)); next == 0 || t < next {
					next = t
				}
			}
			return false
		})
	}
	first(tabScheduled, nil)
	until := []byte{'u'}
	for _, name := range v.heads(tabHeld, until) {
		first(tabHeld, cat(until, under(name)))
	}
	return next
}

// Parked returns the cards that a plain gave_up holds under a smaller failure
// limit than the one given.
func (v View) Parked(limit int64) []string {
	var ids []string
	end := num(uint64(limit))
	v.r.Scan(tabParked, nil, func(k, id []byte) bool {
		if bytes.Compare(k[:8], end) >= 0 {
			return false
		}
		ids = append(ids, string(id))
		return true
	})
	return ids
}

// TaskCommits returns the numbers of the commits that concern a card, oldest
// first, from a commit number on.
func (v View) TaskCommits(task string, from uint64, max int) []uint64 {
	var list []uint64
	prefix := under(task)
	v.r.Scan(tabTaskLog, cat(prefix, num(from)), func(k, _ []byte) bool {
		if !bytes.HasPrefix(k, prefix) || len(list) == max {
			return false
		}
		list = append(list, binary.BigEndian.Uint64(k[len(prefix):]))
		return true
	})
	return list
}

// byKey returns the card that an idempotency key made, "" if none, and the hash of
// what was asked for then.
func (v View) byKey(key string) (id string, hash []byte) {
	b, hash, _ := bytes.Cut(v.r.Get(tabKeys, []byte(key)), []byte{0})
	return string(b), hash
}

// heldAt tells whether a back-off or cool-down keeps the card at this moment.
// One that was recorded in the future has run out; see ClockSlack.
func (t *Task) heldAt(now eventlog.Time) bool {
	return t.HoldUntil != 0 && t.HoldSince <= now.Add(ClockSlack) && now < t.HoldUntil
}

// Owner is the run that has the card: the open one, or a closed one whose
// process may still live; 0 if there is none.
func (t *Task) Owner() uint64 { return max(t.CurrentRun, t.Worker) }

// Over tells whether a card is done or was put away.
func (t *Task) Over() bool { return t.Status == Done || t.Status == Archived }

// Startable tells whether a claim by a dispatcher could succeed as far as the card
// itself goes.
func (t *Task) Startable(now eventlog.Time) bool {
	return t.inLane() && t.CurrentRun == 0 && t.Worker == 0 && !t.heldAt(now)
}

// inLane tells whether a dispatcher would start the card. A review without a
// reviewer is a person's.
func (t *Task) inLane() bool {
	return t.Status == Ready || t.Status == Review && t.Reviewer != ""
}

// Lane is the lane that the card's next run is in.
func (t *Task) Lane() string {
	if t.ReviewedRun != 0 {
		return LaneReview
	}
	return LaneReady
}

// Starter is the profile that the card's next run is for.
func (t *Task) Starter() string {
	if t.ReviewedRun != 0 {
		return t.Reviewer
	}
	return t.Assignee
}

// openParents returns the parents that are neither done nor archived; assume
// names one that counts as done already ("" for none).
func (v View) openParents(task, assume string) ([]*Task, error) {
	var open []*Task
	for _, id := range v.Parents(task) {
		if id == assume {
			continue
		}
		p, err := v.MustTask(id)
		if err != nil {
			return nil, err
		}
		if p.Status != Done && p.Status != Archived {
			open = append(open, p)
		}
	}
	return open, nil
}
