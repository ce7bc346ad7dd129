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
	begun int           // starts, by who waits
	done  chan struct{} // one for each that has forked or failed
}

const (
	forksMost   = 64 // starts that are waited for
	forksMoment = 20 * time.Millisecond
)

func (f *forksFirst) Start(l tick.Launch, begin func(fork func() error) error) (tick.Started, error) {
	defer f.tell()
	return f.World.Start(l, begin)
}

// tell says that one has forked or failed. To say it twice makes the wait shorter.
func (f *forksFirst) tell() {
	select {
	case f.done <- struct{}{}:
	default:
	}
}

func (f *forksFirst) wait() {
	if f.begun == 0 {
		return
	}
	moment := time.NewTimer(forksMoment)
	defer moment.Stop()
	for range min(f.begun, forksMost) {
		select {
		case <-f.done:
		case <-moment.C:
			return
		}
	}
}
