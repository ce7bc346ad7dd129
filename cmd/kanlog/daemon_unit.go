package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
)

// What a service manager is told, and what a daemon has to know of it. Without one
// (no NOTIFY_SOCKET, no unit) nothing here does anything.

// notify says a word of sd_notify; that nobody hears it is no error.
func notify(word string) { _, _ = sd.SdNotify(false, word) }

// watchdog tells the service manager that every daemon of this process is at work,
// for as long as that is so. One that hangs is started anew by the manager.
type watchdog struct {
	mu      sync.Mutex
	daemons []*daemon
}

func (w *watchdog) add(d *daemon) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.daemons = append(w.daemons, d)
}

func (w *watchdog) remove(d *daemon) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.daemons = slices.DeleteFunc(w.daemons, func(o *daemon) bool { return o == d })
}

func (w *watchdog) run(ctx context.Context) {
	every, err := sd.SdWatchdogEnabled(false)
	if err != nil || every <= 0 {
		return
	}
	for sleep(ctx, every/2) {
		if w.atWork(time.Now()) {
			notify(sd.SdNotifyWatchdog)
		}
	}
}

func (w *watchdog) atWork(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !slices.ContainsFunc(w.daemons, func(d *daemon) bool { return now.UnixNano() > d.due.Load() })
}

// warnUnit says that stopping the unit we run in would end the workers too.
func (a *app) warnUnit() {
	cgroup, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return
	}
	unit, user := unitOf(string(cgroup))
	if unit == "" {
		return
	}
	mode, err := killMode(unit, user)
	if w := unitWarning(unit, mode, err); w != "" {
		a.warn("%s", w)
	}
}

// unitOf is the service that a process with this /proc/self/cgroup belongs to, and
// whether it is one of a user's manager; "" if it belongs to none.
func unitOf(cgroup string) (unit string, user bool) {
	for line := range strings.Lines(cgroup) {
		hierarchy, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, place, ok := strings.Cut(rest, ":")
		if !ok || hierarchy != "0" && controllers != "name=systemd" {
			continue
		}
		// A scope (a login, a container) below a service is not the service.
		if base := path.Base(place); strings.HasSuffix(base, ".service") && !strings.HasPrefix(base, "user@") {
			return base, strings.Contains(place, "/user@")
		}
	}
	return "", false
}

func killMode(unit string, user bool) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	args := []string{"show", "--property=KillMode", "--value", unit}
	if user {
		args = append([]string{"--user"}, args...)
	}
	out, err := exec.CommandContext(ctx, "systemctl", args...).Output()
	return strings.TrimSpace(string(out)), err
}

func unitWarning(unit, mode string, err error) string {
	const mend = "KillMode=process in [Service] leaves them running, and the next start goes on with them"
	switch {
	case err != nil || mode == "":
		return fmt.Sprintf("this daemon runs in the unit %s, and systemctl does not say its KillMode: unless that is process, stopping the unit ends the workers too; %s", unit, mend)
	case mode == "process" || mode == "none":
		return ""
	}
	return fmt.Sprintf("this daemon runs in the unit %s with KillMode=%s: stopping the unit ends the workers too; %s", unit, mode, mend)
}
