package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
	"kanlog/tick"
)

// What the machine and the other boards of the home leave room for.

// hostLock is held from the count of the other boards' runs to the last claim.
func (a *app) hostLock() string { return filepath.Join(a.home, "host.lock") }

// hostWait is how long a dispatcher waits for others that are between count and claim.
const hostWait = 3 * time.Second

// Host counts under the home's host lock, so that two boards that are dispatched at
// once do not both take the last place.
func (w *world) Host(dry bool) (h tick.Host, release func(), err error) {
	release = func() {}
	if !dry && w.a.othersThere() {
		lock, err := eventlog.LockWait(w.a.hostLock(), min(hostWait, w.set.lockTimeout))
		switch {
		case errors.Is(err, eventlog.ErrBusy):
			// Who holds it so long is stopped. It must not keep the other boards
			// from starting anything; that it goes on and passes the cap with what
			// it had picked is the lesser evil.
		case err != nil:
			return h, release, fmt.Errorf("host lock: %w", err)
		default:
			release = lock.Unlock
		}
	}
	return w.a.host(w.set), release, nil
}

// host is the same for who only wants to know.
func (a *app) host(set *settings) tick.Host {
	return tick.Host{Others: a.othersActive(), Short: memoryShort("/", set.minFreeMemory), Broken: a.broken(set)}
}

// reasons are the settings, with what the reason function has to know of the host.
// Not inside a transaction: the other boards are opened. Of a board as it was they are
// what its log says about them, and nothing else: today's may be others.
func (a *app) reasons() (*settings, error) {
	if a.past != nil {
		s := defaults()
		s.policy.Limits, s.past = a.past.Limits(), a.past
		return &s, nil
	}
	set, err := a.settings()
	if err == nil {
		set.host = a.host(set)
	}
	return set, err
}

func (a *app) othersThere() bool {
	slugs, err := a.slugs()
	return err != nil || len(slugs) > 1 || len(slugs) == 1 && slugs[0] != a.slug
}

// othersActive counts the active runs of the other boards. A board that cannot be
// read counts as idle: it is dispatched by nobody either. Nor is one waited for whose
// store somebody holds and does not let go (a stopped process): the host's lock is held
// meanwhile, and every board of the home would start nothing.
func (a *app) othersActive() (n int) {
	slugs, _ := a.slugs()
	for _, slug := range slugs {
		if slug == a.slug {
			continue
		}
		b := *a
		if b.use(slug) != nil {
			continue
		}
		o, err := b.options()
		if err != nil {
			continue
		}
		o.LockTimeout = min(o.LockTimeout, busyWait)
		b.store = projection.Open(b.boardDir, o)
		_ = b.view(func(v projection.View) error {
			active, err := v.Active()
			n += len(active)
			return err
		})
	}
	return n
}

// memoryShort says that less than least bytes are free, on the machine or in the
// control group that we are in with whatever we start; "" if not, or if it cannot be
// told. root is "/" but in tests.
func memoryShort(root string, least int64) string {
	if least <= 0 {
		return ""
	}
	if text, err := os.ReadFile(filepath.Join(root, "proc/meminfo")); err == nil {
		if free, ok := memAvailable(string(text)); ok && free < least {
			return fmt.Sprintf("memory is short: %s free on this machine, of at least %s", sizeWords(max(0, free)), sizeWords(least))
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		place, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		// A limit above ours is ours too.
		for ; place != "/" && place != "." && place != ""; place = path.Dir(place) {
			if free, ok := groupFree(filepath.Join(root, "sys/fs/cgroup", place)); ok && free < least {
				return fmt.Sprintf("memory is short: %s free in the control group %s, of at least %s", sizeWords(max(0, free)), place, sizeWords(least))
			}
		}
	}
	return ""
}

func memAvailable(meminfo string) (bytes int64, ok bool) {
	for line := range strings.Lines(meminfo) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemAvailable:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			return kb << 10, err == nil
		}
	}
	return 0, false
}

// groupFree is what a control group may use beside what it does; what the kernel
// would give back first (inactive files) counts as free.
func groupFree(dir string) (bytes int64, ok bool) {
	number := func(name string) (int64, bool) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return 0, false
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no limit
		return n, err == nil
	}
	most, ok := number("memory.max")
	if !ok {
		return 0, false
	}
	used, ok := number("memory.current")
	if !ok {
		return 0, false
	}
	stat, _ := os.ReadFile(filepath.Join(dir, "memory.stat"))
	for line := range strings.Lines(string(stat)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "inactive_file" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				used -= n
			}
		}
	}
	return most - used, true
}
