package main

import (
	"encoding/json"
	"sync"
	"time"

	"kanlog/proc"
)

// spares keeps one supervisor started ahead, for a daemon: the next worker begins while
// another process would still be initialising itself. It is made when nothing was
// started for a moment, so that it is in nobody's way. nil has none.
type spares struct {
	mu    sync.Mutex
	one   *proc.Spare
	timer *time.Timer
	ended bool
}

// spareAfter is how long it is quiet before a spare is made.
const spareAfter = 50 * time.Millisecond

// keep has a spare made if there is none once nobody has called it for a moment. forks
// is held while it is forked, see [tick.Dispatcher].
func (s *spares) keep(forks *sync.Mutex) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.one != nil && !s.one.Gone() {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(spareAfter, func() {
		forks.Lock()
		defer forks.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ended || s.one != nil && !s.one.Gone() {
			return
		}
		// One that cannot be started is not missed: who starts a worker then says why.
		s.one, _ = proc.StartSpare([]string{"kanlog", superviseVerb}, []string{oneProcessor})
	})
}

// use makes the spare the supervisor of a run, nil if there is none.
func (s *spares) use(spec superviseSpec, env []string) *proc.Child {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	one := s.one
	s.one = nil
	s.mu.Unlock()
	if one == nil {
		return nil
	}
	spec.Env = env
	text, err := json.Marshal(spec)
	if err != nil {
		return nil
	}
	child, err := one.Use(text)
	if err != nil {
		return nil // it runs nothing; another is started
	}
	return child
}

// end ends the spare that is left.
func (s *spares) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.one != nil {
		s.one.End()
		s.one = nil
	}
}
