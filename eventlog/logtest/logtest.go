// Package logtest holds the contract of eventlog.Log as a test. It may use
// nothing of a log but the interface. A new backend calls Run.
package logtest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"kanlog/eventlog"
)

// Reopener is a log whose Reopen forgets all it holds in memory and returns the
// same log as a fresh process finds it. Run then tests durability too.
type Reopener interface {
	Reopen(t *testing.T) eventlog.Log
}

// Run tests the contract. open returns a new, empty log each time.
func Run(t *testing.T, open func(t *testing.T) eventlog.Log) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, eventlog.Log)
	}{
		{"empty", empty},
		{"numbers without gaps", numbers},
		{"chain", chain},
		{"events come back as they were", content},
		{"conflict stores nothing", conflict},
		{"a commit needs events with payloads", refused},
		{"read from", readFrom},
		{"error of fn ends reading", readStops},
		{"use inside read", readInside},
		{"concurrent appenders lose nothing", concurrent},
		{"reopen", reopen},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// Note is a commit of n comments that tell who wrote them.
func Note(author string, n int) eventlog.Commit {
	c := eventlog.Commit{At: 1_700_000_000_000_000, Actor: "operator:" + author}
	for i := range n {
		c.Events = append(c.Events, eventlog.Event{
			Task: fmt.Sprintf("t_%08x", i), Data: &eventlog.Commented{Author: author, Text: fmt.Sprint("note ", i)},
		})
	}
	return c
}

// All reads a whole log.
func All(t *testing.T, l eventlog.Log) (all []eventlog.Commit) {
	t.Helper()
	if err := l.Read(1, func(c eventlog.Commit) error {
		all = append(all, c)
		return nil
	}); err != nil {
		t.Fatalf("read: %v", err)
	}
	return all
}

func head(t *testing.T, l eventlog.Log) eventlog.Head {
	t.Helper()
	h, err := l.Head()
	if err != nil {
		t.Fatalf("head: %v", err)
	}
	return h
}

func appendTo(t *testing.T, l eventlog.Log, c eventlog.Commit) eventlog.Commit {
	t.Helper()
	c, err := l.Append(head(t, l).Commit, c)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return c
}

func empty(t *testing.T, l eventlog.Log) {
	h := head(t, l)
	if h.Commit != 0 || h.Seq != 0 || h.Hash == [32]byte{} {
		t.Errorf("head of an empty log is %+v; want numbers 0 and the hash that starts the chain", h)
	}
	if all := All(t, l); len(all) != 0 {
		t.Errorf("an empty log has %d commits", len(all))
	}
}

func numbers(t *testing.T, l eventlog.Log) {
	seq := uint64(1)
	for i := range uint64(20) {
		n := int(i%3) + 1
		c := Note("ann", n)
		c.Number, c.Seq, c.Hash = 99, 99, [32]byte{9} // Append sets them
		got := appendTo(t, l, c)
		if got.Number != i+1 || got.Seq != seq {
			t.Fatalf("append %d: number %d seq %d, want %d and %d", i, got.Number, got.Seq, i+1, seq)
		}
		seq += uint64(n)
		if h := head(t, l); h.Commit != got.Number || h.Seq != seq-1 || h.Hash != got.Hash {
			t.Fatalf("head %+v after %v, want its end", h, got)
		}
	}
	for i, c := range All(t, l) {
		if c.Number != uint64(i)+1 {
			t.Errorf("commit %d is read as number %d", i+1, c.Number)
		}
	}
}

func chain(t *testing.T, l eventlog.Log) {
	seen := map[[32]byte]bool{head(t, l).Hash: true}
	for range 5 {
		// The same decision each time: only its place in the chain differs.
		if h := appendTo(t, l, Note("ann", 1)).Hash; seen[h] {
			t.Errorf("hash %x comes twice", h[:4])
		} else {
			seen[h] = true
		}
	}
	for _, c := range All(t, l) {
		if !seen[c.Hash] {
			t.Errorf("%v is read with another hash than Append returned", c)
		}
	}
}

func content(t *testing.T, l eventlog.Log) {
	zero := int64(0)
	c := eventlog.Commit{At: -5, Actor: "worker:t_1/2", Events: []eventlog.Event{
		{Task: "t_1", Run: 2, Data: &eventlog.Completed{Summary: "ü\x00", Metadata: []byte(`{"b": 1,  "a":[]}`), By: "answer", ExitCode: &zero}},
		{Task: "", Data: &eventlog.Crashed{End: eventlog.End{To: "ready"}, Final: true}},
	}}
	want := appendTo(t, l, c)
	got := All(t, l)
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
}

func conflict(t *testing.T, l eventlog.Log) {
	appendTo(t, l, Note("ann", 2))
	before := head(t, l)
	for _, after := range []uint64{0, 2, 1 << 60} {
		if _, err := l.Append(after, Note("bob", 1)); !errors.Is(err, eventlog.ErrConflict) {
			t.Errorf("append after %d: %v, want ErrConflict", after, err)
		}
	}
	if h := head(t, l); h != before {
		t.Errorf("head moved from %+v to %+v", before, h)
	}
	if all := All(t, l); len(all) != 1 {
		t.Errorf("%d commits, want the 1 that was accepted", len(all))
	}
}

func refused(t *testing.T, l eventlog.Log) {
	var none *eventlog.Commented
	for name, events := range map[string][]eventlog.Event{
		"no events":   nil,
		"nil payload": {{Task: "t_1"}},
		"typed nil":   {{Task: "t_1", Data: none}},
	} {
		if _, err := l.Append(0, eventlog.Commit{Actor: "operator:ann", Events: events}); err == nil || errors.Is(err, eventlog.ErrConflict) {
			t.Errorf("%s: %v, want an error of its own", name, err)
		}
	}
	if h := head(t, l); h.Commit != 0 {
		t.Errorf("head is %+v, want an empty log", h)
	}
}

func readFrom(t *testing.T, l eventlog.Log) {
	for range 9 {
		appendTo(t, l, Note("ann", 2))
	}
	for from, first := range map[uint64]uint64{0: 1, 1: 1, 2: 2, 9: 9, 10: 0, 1 << 63: 0} {
		want := first
		err := l.Read(from, func(c eventlog.Commit) error {
			if c.Number != want {
				t.Errorf("from %d: number %d, want %d", from, c.Number, want)
			}
			want++
			return nil
		})
		if err != nil {
			t.Errorf("from %d: %v", from, err)
		}
		if end := uint64(10); first > 0 && want != end || first == 0 && want != 0 {
			t.Errorf("from %d: read up to %d", from, want)
		}
	}
}

func readStops(t *testing.T, l eventlog.Log) {
	for range 3 {
		appendTo(t, l, Note("ann", 1))
	}
	stop, n := errors.New("stop"), 0
	err := l.Read(1, func(eventlog.Commit) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	})
	if err != stop || n != 2 {
		t.Errorf("read ended with %v after %d commits, want fn's own error after 2", err, n)
	}
}

func readInside(t *testing.T, l eventlog.Log) {
	appendTo(t, l, Note("ann", 1))
	n := 0
	err := l.Read(1, func(c eventlog.Commit) error {
		if n++; n == 1 {
			if h := head(t, l); h.Commit != 1 {
				t.Errorf("head inside read: %+v", h)
			}
		}
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("read %d commits, %v", n, err)
	}
}

func concurrent(t *testing.T, l eventlog.Log) {
	const writers, each = 8, 10
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			name := fmt.Sprint("w", w)
			for range each {
				for {
					h, err := l.Head()
					if err == nil {
						_, err = l.Append(h.Commit, Note(name, 2))
					}
					if err == nil {
						break
					}
					if !errors.Is(err, eventlog.ErrConflict) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	count := map[string]int{}
	for _, c := range All(t, l) {
		count[c.Actor]++
	}
	for w := range writers {
		if got := count[fmt.Sprint("operator:w", w)]; got != each {
			t.Errorf("writer %d: %d commits in the log, %d acknowledged", w, got, each)
		}
	}
}

func reopen(t *testing.T, l eventlog.Log) {
	r, ok := l.(Reopener)
	if !ok {
		// A log in memory promises nothing here; what is left of the promise
		// is that reading twice gives the same.
		appendTo(t, l, Note("ann", 2))
		if a, b := All(t, l), All(t, l); !reflect.DeepEqual(a, b) {
			t.Errorf("read %+v, then %+v", a, b)
		}
		return
	}
	for range 5 {
		appendTo(t, l, Note("ann", 2))
	}
	want, h := All(t, l), head(t, l)
	again := r.Reopen(t)
	if got := All(t, again); !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	if got := head(t, again); got != h {
		t.Errorf("head %+v, want %+v", got, h)
	}
	if c := appendTo(t, again, Note("bob", 1)); c.Number != h.Commit+1 || c.Seq != h.Seq+1 {
		t.Errorf("%v does not follow on %+v", c, h)
	}
}
