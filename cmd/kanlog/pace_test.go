package main

import (
	"testing"
	"time"
)

// A burst is free, work without end gets a quarter of the time, and rest pays back.
func TestPace(t *testing.T) {
	now := time.Unix(1000, 0)
	var p pace
	for i := range 10 {
		if wait := p.spent(90*time.Millisecond, now); wait != 0 {
			t.Fatalf("tick %d of a burst waits %s", i, wait)
		}
		now = now.Add(90 * time.Millisecond)
	}
	var work, all time.Duration
	for all < time.Minute {
		wait := p.spent(100*time.Millisecond, now)
		work, all = work+100*time.Millisecond, all+100*time.Millisecond+wait
		now = now.Add(100*time.Millisecond + wait)
	}
	if share := float64(work) / float64(all); share < 0.2 || share > 0.27 {
		t.Errorf("ticks without end take %.2f of a processor", share)
	}
	now = now.Add(time.Minute)
	if wait := p.spent(500*time.Millisecond, now); wait != 0 {
		t.Errorf("after a rest a tick waits %s", wait)
	}
	if wait := new(pace).spent(time.Hour, now); wait != time.Minute {
		t.Errorf("after a tick of an hour the next one waits %s", wait)
	}
	if wait := p.spent(time.Millisecond, now.Add(-time.Hour)); wait != 0 {
		t.Errorf("a clock that went back: %s", wait)
	}
}
