package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestUnitOf(t *testing.T) {
	for _, c := range []struct {
		cgroup, unit string
		user         bool
	}{
		{"", "", false},
		{"0::/\n", "", false},
		{"0::/system.slice/kanlog.service\n", "kanlog.service", false},
		{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/kanlog.service\n", "kanlog.service", true},
		{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-term-1.scope\n", "", false},
		{"0::/user.slice/user-1000.slice/session-2.scope\n", "", false},
		{"0::/user.slice/user-1000.slice/user@1000.service\n", "", false},
		{"12:pids:/system.slice/other.service\n1:name=systemd:/system.slice/cron.service\n0::/\n", "cron.service", false},
		{"0::/system.slice/docker-1a2b.scope\n", "", false},
		{"nonsense\n0:\n", "", false},
	} {
		if unit, user := unitOf(c.cgroup); unit != c.unit || user != c.user {
			t.Errorf("%q: %q %v", c.cgroup, unit, user)
		}
	}
}

func TestUnitWarning(t *testing.T) {
	for _, c := range []struct {
		mode string
		err  error
		want string
	}{
		{"process", nil, ""},
		{"none", nil, ""},
		{"control-group", nil, "with KillMode=control-group: stopping the unit ends the workers too; KillMode=process"},
		{"mixed", nil, "with KillMode=mixed"},
		{"", nil, "does not say its KillMode"},
		{"", errors.New("no systemctl"), "does not say its KillMode"},
	} {
		if got := unitWarning("k.service", c.mode, c.err); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q %v: %q", c.mode, c.err, got)
		}
	}
}

// A daemon that is late keeps the whole process from saying that it is at work.
func TestWatchdog(t *testing.T) {
	now := time.Unix(1000, 0)
	w, a, b := &watchdog{}, &daemon{}, &daemon{}
	if !w.atWork(now) {
		t.Error("without a daemon nothing hangs")
	}
	w.add(a)
	w.add(b)
	a.due.Store(now.Add(time.Second).UnixNano())
	b.due.Store(now.Add(time.Minute).UnixNano())
	if !w.atWork(now) || w.atWork(now.Add(2*time.Second)) {
		t.Error("who is late is told wrong")
	}
	w.remove(a)
	if !w.atWork(now.Add(2 * time.Second)) {
		t.Error("one that has ended still counts")
	}
}
