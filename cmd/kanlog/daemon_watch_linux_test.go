package main

import (
	"os/exec"
	"testing"
	"time"

	"kanlog/proc"
	"kanlog/projection"
)

// A supervisor that is gone while its run cannot be booked (a process of it is left,
// its record cannot be read) must not keep the daemon ticking for ever.
func TestGoneSupervisorIsToldLessAndLess(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	me := proc.Self()
	active := []*projection.Run{{ID: 2, Task: "t_1", HasWorker: true, PID: cmd.Process.Pid, Fingerprint: me.Fingerprint, Machine: me.Machine, PIDNS: me.PIDNS}}
	d := &daemon{
		a: &app{boardDir: t.TempDir()}, ends: make(chan uint64), watched: map[uint64]func(){}, again: map[uint64]time.Duration{},
		state: daemonState{Interval: 2 * againFirst},
	}
	for _, least := range []time.Duration{0, againFirst, 2 * againFirst, 2 * againFirst} {
		began := time.Now()
		d.watch(active)
		select {
		case run := <-d.ends:
			if took := time.Since(began); run != 2 || took < least {
				t.Errorf("the end of run %d told after %s, want 2 after at least %s", run, took, least)
			}
			d.heard(run)
		case <-time.After(10 * time.Second):
			t.Fatal("the end was not told")
		}
	}
	if d.watch(nil); len(d.again) != 0 || len(d.watched) != 0 {
		t.Errorf("a run that is over is remembered: %v, %d watched", d.again, len(d.watched))
	}
}
