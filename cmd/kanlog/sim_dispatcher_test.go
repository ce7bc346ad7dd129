package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"kanlog/eventlog"
	"kanlog/projection"
	"kanlog/tick"
)

// simDispatcher is one process that runs one tick.
type simDispatcher struct {
	s    *sim
	n    int
	proc *simProc
	dead bool
	over bool
	die  chan struct{}
	// starts are the goroutines that start a worker, and for which run; starting
	// says that there are any, since asking which one this is takes time.
	starts   sync.Map
	starting atomic.Bool
}

func (d *simDispatcher) tick() {
	defer func() { d.over = true }()
	dis := &tick.Dispatcher{
		Board: simBoard{d}, World: simWorld{d}, Policy: d.s.policy, Actor: fmt.Sprintf("dispatcher:host/%d", d.n),
		Clock: func() eventlog.Time { d.yield("clock"); return d.s.now() },
		Lock:  d.lock, Hook: func(point string) { d.yield(point) },
	}
	_, err := dis.Tick(context.Background(), tick.Options{Max: -1})
	if d.dead {
		return
	}
	if err != nil {
		d.s.note("dispatch %d: %v", d.n, err)
	}
	d.s.m.end(d.proc)
}

// lock is the dispatch lock. Safety does not rest on it: now and then two ticks
// go on beside each other.
func (d *simDispatcher) lock() (func(), error) {
	for _, o := range d.s.dispatchers {
		if o != d && !o.over && !o.dead && !d.s.may(bySecondTick, 300) {
			return nil, eventlog.ErrBusy
		}
	}
	return func() {}, nil
}

// simRequest is somebody who wants to go on.
type simRequest struct {
	d    *simDispatcher
	what string
	goOn chan bool
}

// yield is a moment at which everybody else may act, and at which this process
// may be killed.
func (d *simDispatcher) yield(what string) {
	// Several starts of one tick may wait at the same place; which of them goes
	// on must not hang on which of them came first.
	if d.starting.Load() {
		if run, ok := d.starts.Load(goroutine()); ok {
			what = fmt.Sprintf("%s of run %d", what, run)
		}
	}
	r := &simRequest{d, what, make(chan bool)}
	d.s.reqMu.Lock()
	d.s.requests = append(d.s.requests, r)
	d.s.reqMu.Unlock()
	select {
	case <-r.goOn:
	case <-d.die:
		runtimeGoexit()
	}
}

// goroutine is the number of the one that asks, as a stack trace begins with it.
func goroutine() string {
	var b [32]byte
	number, _, _ := strings.Cut(strings.TrimPrefix(string(b[:runtime.Stack(b[:], false)]), "goroutine "), " ")
	return number
}

// release lets one dispatcher go on.
func (s *sim) release() bool {
	var able []*simRequest
	for _, r := range s.requests {
		if !r.d.proc.stopped && !r.d.dead {
			able = append(able, r)
		}
	}
	if len(able) == 0 {
		return false
	}
	// Goroutines of one tick arrive in any order; a seed means one.
	slices.SortStableFunc(able, func(a, b *simRequest) int {
		if a.d.n != b.d.n {
			return a.d.n - b.d.n
		}
		return strings.Compare(a.what, b.what)
	})
	r := able[s.r.IntN(len(able))]
	s.requests = slices.DeleteFunc(s.requests, func(o *simRequest) bool { return o == r })
	close(r.goOn)
	return true
}

// kill ends a dispatcher where it stands.
func (s *sim) kill(d *simDispatcher) {
	if d.dead || d.over {
		return
	}
	d.dead = true
	s.requests = slices.DeleteFunc(s.requests, func(o *simRequest) bool { return o.d == d })
	close(d.die)
	s.m.end(d.proc)
}

// update is every write of the history.
func (s *sim) update(actor string, now eventlog.Time, decide projection.Decider) (projection.Result, error) {
	before, _ := s.store.Mem.Head()
	res, err := s.store.Update(actor, now, decide)
	// From the log, since a refusal may leave a trace too.
	_ = s.store.Mem.Read(before.Commit+1, func(c eventlog.Commit) error {
		for i, e := range c.Events {
			run := c.RunOf(i)
			s.note("  %s/%d %s by %s: %s", e.Task, run, e.Kind(), actor, describe(e.Data))
			s.audited(e, run, actor)
			s.ruled(e, run, c.At, actor)
		}
		return nil
	})
	return res, err
}
