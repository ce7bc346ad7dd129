package main

import (
	"errors"
	"testing"
	"time"

	"kanlog/tick"
)

// slowWorld starts nothing until it is let.
type slowWorld struct {
	tick.World
	let chan struct{}
}

func (w slowWorld) Start(tick.Launch, func(fork func() error) error) (tick.Started, error) {
	<-w.let
	return nil, errors.New("nothing is started")
}

// Each start that was begun is waited for, the failed ones too, and slow ones only for a
// moment.
func TestForksFirst(t *testing.T) {
	let := make(chan struct{})
	f := &forksFirst{World: slowWorld{let: let}, done: make(chan struct{}, maxForksAwaited)}
	f.wait() // none was begun
	over := make(chan struct{})
	for range 3 {
		f.begun++
		go func() {
			_, _ = f.Start(tick.Launch{}, nil)
			over <- struct{}{}
		}()
	}
	began := time.Now()
	f.wait()
	if took := time.Since(began); took < forkPatience {
		t.Errorf("three starts that hang were waited for %s, not the %s that they have", took, forkPatience)
	}
	close(let)
	for range 3 {
		<-over
	}
	if len(f.done) != 3 {
		t.Errorf("of three starts %d were told", len(f.done))
	}
	f.wait()
	if len(f.done) != 0 {
		t.Errorf("%d were not waited for", len(f.done))
	}
}
