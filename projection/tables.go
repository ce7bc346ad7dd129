package projection

import (
	"encoding/binary"
	"slices"

	"kanlog/eventlog"
)

// TablesFormat is raised whenever a row or an index changes; older tables are
// rebuilt from the log.
const TablesFormat = 4

// The tables. Keys of several parts end fixed-width or are cut by a zero byte,
// which no id or name may hold.
const (
	tabTasks     = "tasks"        // id -> Task
	tabBodies    = "bodies"       // id -> text
	tabRuns      = "runs"         // run -> Run
	tabTaskRuns  = "task_runs"    // id 0 run -> nothing
	tabTaskLog   = "task_commits" // id 0 commit -> nothing
	tabComments  = "comments"     // id 0 seq -> Comment
	tabParents   = "parents"      // child 0 parent -> nothing
	tabChildren  = "children"     // parent 0 child -> nothing
	tabKeys      = "keys"         // idempotency key -> id 0 hash of what was asked for
	tabActive    = "active"       // run -> id; open, or with a worker on record
	tabOrder     = "order"        // priority age -> id; every card that is not put away
	tabReady     = "ready"        // assignee 0 priority age -> id; startable now
	tabReview    = "review"       // reviewer 0 priority age -> id; its review is startable now
	tabHeld      = "held"         // 'u' starter 0 until id, 's' since id -> id; ready or in review, but not yet
	tabScheduled = "scheduled"    // not_before id -> id
	tabParked    = "parked"       // limit id -> id; blocked by a plain gave_up under the settings' limit
	tabFenced    = "fenced"       // id 0 run -> nothing; refusals already on record
	tabAlike     = "alike"        // assignee 0 -> Alike
	tabBoard     = "board"        // "pause" -> Pause
)

// Reader is a set of ordered tables. The slices it hands out are valid until
// the transaction ends.
type Reader interface {
	Get(table string, key []byte) []byte
	// Scan calls fn for each pair from the first key >= from, in order, until
	// fn returns false.
	Scan(table string, from []byte, fn func(k, v []byte) bool)
}

// Tables is a set of tables that may be changed.
type Tables interface {
	Reader
	Put(table string, key, value []byte)
	Delete(table string, key []byte)
}

func num(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func cat(parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	k := make([]byte, 0, n)
	for _, p := range parts {
		k = append(k, p...)
	}
	return k
}

// under is the prefix of everything that belongs to one id or name.
func under(name string) []byte { return append(append(make([]byte, 0, len(name)+1), name...), 0) }

// timeKey orders moments; times before 1970 do not occur in keys.
func timeKey(t eventlog.Time) []byte { return num(uint64(max(0, int64(t)))) }

// orderKey sorts higher priorities first, then older cards.
func orderKey(t *Task) []byte {
	return cat(num(^uint64(t.Priority)^(1<<63)), num(t.CreatedSeq))
}

type indexEntry struct {
	table string
	key   string
}

// indexOf lists the index entries of a card: a function of its row alone, so
// that a change of the row is a difference of two such lists.
func indexOf(t *Task) []indexEntry {
	if t == nil {
		return nil
	}
	entries := laneOf(t)
	if t.Status != Archived {
		entries = append(entries, indexEntry{tabOrder, string(orderKey(t))})
	}
	return entries
}

// laneOf lists the entries by which a tick finds the card.
func laneOf(t *Task) []indexEntry {
	free := t.inLane() && t.CurrentRun == 0 && t.Worker == 0
	switch {
	case free && t.HoldUntil == 0 && t.Status == Review:
		return []indexEntry{{tabReview, string(cat(under(t.Reviewer), orderKey(t)))}}
	case free && t.HoldUntil == 0:
		return []indexEntry{{tabReady, string(cat(under(t.Assignee), orderKey(t)))}}
	case free:
		return []indexEntry{
			{tabHeld, string(cat([]byte{'u'}, under(t.Starter()), timeKey(t.HoldUntil), []byte(t.ID)))},
			{tabHeld, string(cat([]byte{'s'}, timeKey(t.HoldSince), []byte(t.ID)))},
		}
	case t.Status == Scheduled:
		return []indexEntry{{tabScheduled, string(cat(timeKey(t.NotBefore), []byte(t.ID)))}}
	case t.Status == Blocked && t.ParkedLimit > 0 && t.MaxRetries == 0:
		// A card with a limit of its own is not freed by the settings: every
		// tick would look at it for nothing.
		return []indexEntry{{tabParked, string(cat(num(uint64(t.ParkedLimit)), []byte(t.ID)))}}
	}
	return nil
}

// putTask stores a card's row and moves its index entries; was is the row
// before, nil for a new card.
func putTask(w Tables, was, now *Task) {
	old, next := indexOf(was), indexOf(now)
	for _, e := range old {
		if !slices.Contains(next, e) {
			w.Delete(e.table, []byte(e.key))
		}
	}
	for _, e := range next {
		if !slices.Contains(old, e) {
			w.Put(e.table, []byte(e.key), []byte(now.ID))
		}
	}
	if m, ok := w.(rowKeeper); ok {
		m.setTask(now)
		return
	}
	w.Put(tabTasks, []byte(now.ID), encodeRow(now))
}

// putRun stores a run's row and keeps it in the active index while it is open
// or has a worker on record.
func putRun(w Tables, r *Run) {
	if r.Open() || r.HasWorker {
		w.Put(tabActive, num(r.ID), []byte(r.Task))
	} else {
		w.Delete(tabActive, num(r.ID))
	}
	if m, ok := w.(rowKeeper); ok {
		m.setRun(r)
		return
	}
	w.Put(tabRuns, num(r.ID), encodeRow(r))
}
