package projection

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"

	"kanlog/eventlog"
)

// Report is what Verify found.
type Report struct {
	Commits uint64 `json:"commits"`
	Events  uint64 `json:"events"`
	Tasks   int    `json:"tasks"`
	Runs    int    `json:"runs"`
	Head    string `json:"head"` // hash of the last commit, hex
	// Problem is the first thing wrong, "" if there is none.
	Problem string `json:"problem"`
	// Trusted is the last commit before it.
	Trusted uint64 `json:"trusted_through_commit"`
	// FirstBad is the commit in which it is, or that cannot be read for it; 0 if it
	// is not in the log.
	FirstBad uint64 `json:"first_bad_commit"`
	// Noted is the head that was asked for.
	Noted *Noted `json:"noted,omitempty"`
}

// Checking is what Verify is told.
type Checking struct {
	// Noted is a head that the log must contain, nil for none.
	Noted *Noted
	// Each, if set, is called after each commit.
	Each func(commit uint64)
}

// Verify checks the chain and the numbering, folds the log anew, checks the
// invariants after each commit, and compares the result with the tables. The
// error says that it could not look; what it found is in the report.
//
// The log is read in batches, so that others do not wait for it; only what came
// in meanwhile and the comparison itself are one transaction.
func (s *Store) Verify() (Report, error) { return s.VerifyWith(Checking{}) }

// VerifyWith is Verify with more to look at.
func (s *Store) VerifyWith(q Checking) (Report, error) {
	rep := Report{Noted: q.Noted}
	uuid, err := s.UUID()
	if err != nil {
		return rep, err
	}
	fresh := eventlog.NewMem(uuid)
	a := auditor{fresh: fresh}
	if start, err := fresh.Head(); err == nil {
		rep.Head = fmt.Sprintf("%x", start.Hash) // an empty log has a head too
		if q.Noted != nil {
			q.Noted.see(start)
		}
	}
	each := func(c eventlog.Commit) error {
		if err := a.commit(c); err != nil {
			return err
		}
		rep.Commits, rep.Trusted = c.Number, c.Number
		rep.Events = c.Seq + uint64(len(c.Events)) - 1
		rep.Head = fmt.Sprintf("%x", c.Hash)
		if q.Noted != nil {
			q.Noted.see(eventlog.Head{Commit: c.Number, Seq: rep.Events, Hash: c.Hash})
		}
		if q.Each != nil {
			q.Each(c.Number)
		}
		return nil
	}
	inLog := true
	err = s.file.Read(1, each)
	if err == nil {
		err = s.viewTables(func(tx *eventlog.Tx, old bool) error {
			if err := tx.Read(rep.Commits+1, each); err != nil {
				return err
			}
			inLog = false
			if !old {
				if rep.Problem = compare(fresh, tx); rep.Problem != "" {
					return nil
				}
			}
			// Last, since what it finds is harder to read: nothing that was
			// looked at may stand where the next write goes.
			return tx.CheckPages()
		})
	}
	rep.Tasks, rep.Runs = a.tasks, a.runs
	if errors.Is(err, eventlog.ErrRefused) || errors.Is(err, ErrInconsistent) {
		rep.Problem, err = err.Error(), nil
		if inLog {
			rep.FirstBad = rep.Trusted + 1
		}
	}
	if err == nil && rep.Problem == "" && q.Noted != nil {
		rep.Problem = q.Noted.missing(rep.Commits)
	}
	return rep, err
}

// viewTables is view, but for the tables of a copy: those are never made anew, and
// old tells that they are of another format.
func (s *Store) viewTables(fn func(tx *eventlog.Tx, old bool) error) error {
	if !s.file.IsCopy() {
		return s.view(func(tx *eventlog.Tx) error { return fn(tx, false) })
	}
	return s.file.View(func(tx *eventlog.Tx) error { return fn(tx, checkTables(tx) != nil) })
}

// tableSet is tables that can be listed.
type tableSet interface {
	Reader
	Tables() []string
}

// compare names the first difference between fresh tables and those stored.
func compare(fresh, stored tableSet) string {
	names := map[string]bool{}
	for _, t := range append(fresh.Tables(), stored.Tables()...) {
		names[t] = true
	}
	var list []string
	for t := range names {
		list = append(list, t)
	}
	sort.Strings(list)
	for _, t := range list {
		want, got := dump(fresh, t), dump(stored, t)
		for i := range max(len(want), len(got)) {
			switch {
			case i >= len(got):
				return fmt.Sprintf("table %s lacks %q, which follows from the log; kanlog rebuild makes the tables anew", t, want[i].k)
			case i >= len(want):
				return fmt.Sprintf("table %s holds %q, which does not follow from the log; kanlog rebuild makes the tables anew", t, got[i].k)
			case !bytes.Equal(want[i].k, got[i].k):
				return fmt.Sprintf("table %s: %q stands where the log says %q; kanlog rebuild makes the tables anew", t, got[i].k, want[i].k)
			case !bytes.Equal(want[i].v, got[i].v):
				return fmt.Sprintf("table %s: the row of %q differs from what the log says; kanlog rebuild makes the tables anew", t, got[i].k)
			}
		}
	}
	return ""
}

type pair struct{ k, v []byte }

func dump(r Reader, table string) []pair {
	var all []pair
	r.Scan(table, nil, func(k, v []byte) bool {
		all = append(all, pair{bytes.Clone(k), bytes.Clone(v)})
		return true
	})
	return all
}

// auditor folds commits and checks after each what must never break.
type auditor struct {
	fresh *eventlog.Mem
	tasks int
	runs  int
}

func (a *auditor) commit(c eventlog.Commit) error {
	bad := func(i int, format string, args ...any) error {
		return inconsistent("commit %d, event %d: %s", c.Number, c.Seq+uint64(i), fmt.Sprintf(format, args...))
	}
	v := View{a.fresh}
	for i, e := range c.Events {
		if err := a.before(v, c, e); err != nil {
			return bad(i, "%v", err)
		}
		// Event by event, so that the next one is judged by what this one made.
		if err := Fold(a.fresh, eventlog.Commit{Number: c.Number, Seq: c.Seq + uint64(i), At: c.At, Actor: c.Actor, Events: c.Events[i : i+1]}); err != nil {
			return bad(i, "%v", err)
		}
		if err := a.after(v, e); err != nil {
			return bad(i, "%v", err)
		}
	}
	return nil
}

// boardEvent checks an event that is about no card.
func boardEvent(v View, e eventlog.Event) error {
	if e.Task != "" || e.Run != 0 {
		return inconsistent("%s is about the board, and names card %q and run %d", e.Kind(), e.Task, e.Run)
	}
	p, err := v.Paused()
	if _, resumed := e.Data.(*eventlog.Resumed); err == nil && resumed && p == nil {
		err = inconsistent("resumed, and the board was not paused")
	}
	return err
}

// before checks what must hold for an event to be allowed at all.
func (a *auditor) before(v View, c eventlog.Commit, e eventlog.Event) error {
	switch e.Data.(type) {
	case *eventlog.Created:
		a.tasks++
		return nil
	case *eventlog.Paused, *eventlog.Resumed:
		return boardEvent(v, e)
	case *eventlog.Claimed:
		a.runs++
	case *eventlog.Completed, *eventlog.ReviewRequested, *eventlog.ChangesRequested:
		if e.Run == 0 { // the answer to a card nobody claimed opens its own
			a.runs++
		}
	}
	t, err := v.Task(e.Task)
	if err != nil || t == nil {
		return inconsistent("card %q was never created", e.Task)
	}
	// I4: what a worker wrote about its card carries that card's open run.
	if own, run, ok := workerOf(c.Actor); ok && own == e.Task {
		switch e.Data.(type) {
		case *eventlog.Fenced, *eventlog.GaveUp, *eventlog.BlockLoop:
		default:
			if t.CurrentRun != run || e.Run != run {
				return inconsistent("%s by %s, but the open run of card %s is %d (I4)", e.Kind(), c.Actor, e.Task, t.CurrentRun)
			}
		}
	}
	if e.Run == 0 {
		return nil
	}
	r, err := v.Run(e.Run)
	if err != nil || r == nil {
		if _, fenced := e.Data.(*eventlog.Fenced); fenced {
			return nil
		}
		return inconsistent("run %d was never opened", e.Run)
	}
	switch e.Data.(type) {
	case *eventlog.Spawned:
		if !r.Open() || r.HasWorker || r.EndRequestedAt != 0 {
			return inconsistent("a supervisor registered for run %d, which is closed, has one, or was asked to end (I3)", r.ID)
		}
	case *eventlog.Exited, *eventlog.TerminalWorkerReaped:
		if r.Open() || !r.HasWorker {
			return inconsistent("%s for run %d, which is open or has no worker", e.Kind(), r.ID)
		}
	case *eventlog.Heartbeat, *eventlog.ClaimExtended:
		if !r.Open() {
			return inconsistent("%s for run %d, which has ended", e.Kind(), r.ID)
		}
	}
	return nil
}

// after checks the card and its run as the event left them.
func (a *auditor) after(v View, e eventlog.Event) error {
	if e.Task == "" {
		return nil // about the board
	}
	t, err := v.MustTask(e.Task)
	if err != nil {
		return err
	}
	if (t.Status == Running) != (t.CurrentRun != 0) {
		return inconsistent("card %s is %s with open run %d", t.ID, t.Status, t.CurrentRun)
	}
	if t.Status == Review && t.ReviewedRun == 0 || t.Status == Ready && t.ReviewedRun != 0 {
		return inconsistent("card %s is %s, and under review is run %d", t.ID, t.Status, t.ReviewedRun)
	}
	for _, id := range []uint64{t.CurrentRun, t.Worker} {
		if id == 0 {
			continue
		}
		r, err := v.runOf(id)
		if err != nil {
			return err
		}
		if r.Task != t.ID || id == t.CurrentRun && !r.Open() || id == t.Worker && !r.HasWorker {
			return inconsistent("card %s names run %d, which does not fit (I2)", t.ID, id)
		}
	}
	if t.CurrentRun != 0 && t.Worker != 0 && t.CurrentRun != t.Worker {
		return inconsistent("card %s has open run %d beside a worker of run %d (I2)", t.ID, t.CurrentRun, t.Worker)
	}
	return nil
}

// workerOf reads the actor worker:<task>/<run>.
func workerOf(actor string) (task string, run uint64, ok bool) {
	rest, ok := strings.CutPrefix(actor, "worker:")
	if !ok {
		return "", 0, false
	}
	task, n, ok := strings.Cut(rest, "/")
	if !ok {
		return "", 0, false
	}
	_, err := fmt.Sscan(n, &run)
	return task, run, err == nil
}

// Verify is Store.Verify.
func (s *MemStore) Verify() Report {
	var rep Report
	a := auditor{fresh: eventlog.NewMem(s.Mem.UUID())}
	err := s.Mem.Read(1, func(c eventlog.Commit) error {
		if err := a.commit(c); err != nil {
			return err
		}
		rep.Commits, rep.Trusted = c.Number, c.Number
		return nil
	})
	rep.Tasks, rep.Runs = a.tasks, a.runs
	if err != nil {
		rep.Problem = err.Error()
		return rep
	}
	rep.Problem = compare(a.fresh, s.Mem)
	return rep
}
