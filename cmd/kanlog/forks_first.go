package main

import (
	"time"

	"kanlog/tick"
)

// forksFirst lets the starts that a tick has begun come to their fork before the daemon
// goes on: what it would read next takes the same locks, and a worker is waited for
// while a look at the board is not. Only for a moment, since a start may take long.
type forksFirst struct {
	tick.World
	begun int           // starts in this pass; counted and awaited by who ticks
	done  chan struct{} // one for each that has forked or failed
}

const (
	maxForksAwaited = 64
	forkPatience    = 20 * time.Millisecond // for all of them
)

func (f *forksFirst) Start(l tick.Launch, begin func(fork func() error) error) (tick.Started, error) {
	defer func() {
		select {
		case f.done <- struct{}{}:
		default: // more than are awaited
		}
	}()
	return f.World.Start(l, begin)
}

func (f *forksFirst) wait() {
	if f.begun == 0 {
		return
	}
	moment := time.NewTimer(forkPatience)
	defer moment.Stop()
	for range min(f.begun, maxForksAwaited) {
		select {
		case <-f.done:
		case <-moment.C:
			return
		}
	}
}
