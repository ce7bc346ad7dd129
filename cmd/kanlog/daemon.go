package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// daemon ticks on one board whenever there is something to do: the log moved, a
// worker ended, a time has come; and every interval all the same. Between ticks it
// holds nothing but the daemon lock and a spare supervisor. It keeps nothing that the
// board does not hold: it can be killed at any moment, and the next one goes on.
type daemon struct {
	a     *app
	actor string
	// forks is for this board alone, see tick.Dispatcher. Daemons of one process do not
	// share it: it is held while a store is waited for, and a board whose store somebody
	// does not let go would hold up all others. That a child of one has the locks of
	// another until it execs costs who waits for them that moment.
	forks *sync.Mutex
	// override is --interval, 0 for the setting.
	override time.Duration
	watchdog *watchdog
	say      func(format string, args ...any) // a line for people, or nothing

	state    daemonState
	events   *eventPrinter
	pace     pace
	starts   sync.WaitGroup           // of workers, beside the ticks
	ends     chan uint64              // runs whose supervisor ended
	watched  map[uint64]func()        // gives up the watch over a run
	again    map[uint64]time.Duration // after how long an end that was told is told again
	said     map[string]string        // what is wrong and was said, by what it is about
	due      atomic.Int64             // when it is late, for the watchdog
	own      ownBoard
	place    *eventlog.Lock
	settings string        // a stamp of their files
	cleaned  eventlog.Time // when gc ran last, see daily
	hostFull bool          // cards wait for other boards or for memory
	// startsBegun is how many workers the last pass has begun to start.
	startsBegun int
}

// afterStarts is how long a daemon leaves the processors and the store to what it has
// started: the supervisors register, which changes nothing that it waits for.
const afterStarts = 10 * time.Millisecond

// run ticks until ctx is done, or until the board cannot be used any more.
func (d *daemon) run(ctx context.Context) error {
	lock, err := d.lock()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	d.place = lock
	d.late(time.Now())
	d.watchdog.add(d)
	defer d.watchdog.remove(d)
	d.ends, d.watched, d.said = make(chan uint64), map[uint64]func(){}, map[string]string{}
	d.again = map[uint64]time.Duration{}
	defer func() {
		for _, stop := range d.watched {
			stop()
		}
	}()
	hint := d.a.watch()
	defer hint.stop()
	if hint.Err != nil {
		d.a.warn("the kernel does not say when files change (%v): board %s is looked at %d times a second", hint.Err, d.a.slug, time.Second/movedEvery)
	}
	// What was forked has to be seen to: a start that is broken off would be booked
	// by the next daemon only.
	defer d.starts.Wait()
	found, err := d.a.active()
	if err != nil {
		return err
	}
	more := wakes{ends: d.ends, other: d.settingsMoved, ended: func(run uint64) bool {
		d.heard(run)
		return d.holds(run)
	}}
	for ready := false; ; {
		began := cpuTime()
		was, next, err := d.tick(ctx)
		if err != nil {
			return err
		}
		d.a.spares.keep(d.startsBegun > 0, d.forks)
		d.daily(ctx)
		wait := d.pace.spent(cpuTime()-began, time.Now())
		d.late(next)
		if !ready {
			ready = true
			d.greet(found)
			notify(sd.SdNotifyReady)
		}
		d.state.tell(lock, d.a.clock(), eventlog.TimeOf(next.Add(d.a.offset())))
		if !sleep(ctx, wait) || !d.a.idle(ctx, hint.C, was, next, more) {
			return nil
		}
	}
}

// greet says what this daemon goes by, and what it found at work.
func (d *daemon) greet(found []*projection.Run) {
	if d.a.set == nil {
		return // settings that are wrong were said
	}
	p := d.a.set.dispatchPolicy()
	d.say("board %s: daemon, process %d; ticks when something happens, and every %s; at most %d workers here and %d on all boards; %d found at work",
		d.a.slug, d.state.PID, d.state.Interval, p.MaxInProgress, p.HostCap, len(found))
}

// late notes when the daemon is late: at the next tick it waits for the supervisors
// that it starts, or for another dispatch.
func (d *daemon) late(next time.Time) {
	d.due.Store(next.Add(d.state.Interval + silentAfter).UnixNano())
}

// tick runs one, prints what happened since the last one, and says when the next
// one is due by time alone, and what the store's stamp is if nobody writes until
// then: "" if somebody else wrote meanwhile, and another tick has to look. Only what
// ends the daemon is an error.
func (d *daemon) tick(ctx context.Context) (was string, next time.Time, err error) {
	d.own.begin()
	err = d.pass(ctx)
	next = time.Now().Add(d.state.Interval)
	switch {
	case ctx.Err() != nil:
		return "", next, nil
	case errors.Is(err, fs.ErrNotExist): // it went while it was looked at
		err = fmt.Errorf("%w: %v", eventlog.ErrNoBoard, err)
		fallthrough
	case errors.Is(err, eventlog.ErrNoBoard):
		return "", next, fmt.Errorf("board %s: it is not there any more (renamed, archived or removed): %w", d.a.slug, err)
	case errors.Is(err, eventlog.ErrUnknownOutcome), errors.Is(err, eventlog.ErrRefused):
		// This process may not write any more, or must not.
		return "", next, err
	}
	if d.hostFull {
		next = earlier(next, time.Now().Add(hostEvery))
	}
	if d.hold("tick", err); err != nil {
		return d.a.store.Stamp(), next, nil
	}
	if d.startsBegun > 0 {
		sleep(ctx, afterStarts) // told to end, it still prints what it has done
	}
	// Before the look: what is written between the two makes the stamp another.
	was = d.a.store.Stamp()
	at, head, err := d.look()
	if d.hold("look", err); err == nil && at != 0 {
		next = earlier(next, at.Std().Add(-d.a.offset()))
	}
	if err == nil && !d.own.all(head) {
		was = ""
	}
	d.hold("print", d.print())
	if d.unread() {
		next = earlier(next, time.Now().Add(unreadEvery))
	}
	return was, next, nil
}

// unreadEvery is how often a daemon whose reader has stopped looks whether he reads again.
const unreadEvery = time.Second

// hostEvery is how often a daemon looks whether other boards or the machine have room
// again: what happens there moves nothing that it watches.
const hostEvery = time.Second

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// pass is one tick with the settings as they are now.
func (d *daemon) pass(ctx context.Context) error {
	// Another board may have come to the name, which this is not the daemon of.
	if ok, err := d.place.InPlace(); err != nil || !ok {
		return errors.Join(err, eventlog.ErrNoBoard)
	}
	d.a.set, d.settings, d.hostFull, d.startsBegun = nil, d.settingsStamp(), false, 0
	set, err := d.a.settings()
	if err != nil {
		return fmt.Errorf("%w; nothing is dispatched on this board until that is mended", err)
	}
	d.state.Interval = cmp.Or(d.override, set.interval)
	disp, err := d.a.newDispatcher(d.actor)
	if err != nil {
		return err
	}
	disp.Forks = d.forks
	d.own.Store = d.a.store
	disp.Board, disp.Beside = &d.own, d.a.store
	disp.Lock = func() (func(), error) { return d.a.waitDispatchLock(ctx, d.state.Interval) }
	first := &forksFirst{World: disp.World, done: make(chan struct{}, maxForksAwaited)}
	disp.World = first
	rep, err := disp.Tick(ctx, tick.Options{Max: -1, Detach: func(start func() (*tick.Report, error)) {
		first.begun++
		d.starts.Go(func() {
			rep, err := start()
			d.failures(rep)
			if err != nil && !errors.Is(err, context.Canceled) {
				d.a.warn("board %s: %v", d.a.slug, err)
			}
		})
	}})
	first.wait()
	d.startsBegun = first.begun
	d.hostFull = rep.HostFull
	d.failures(rep)
	d.broken(rep.Broken)
	if err == nil && rep.SkippedLocked {
		err = fmt.Errorf("another dispatch has held board %s for %s", d.a.slug, d.state.Interval)
	}
	return err
}

// broken says once of a profile that its command cannot be started, and once that it
// can again.
func (d *daemon) broken(by map[string]string) {
	var all map[string]string
	for name := range d.a.set.policy.Profiles {
		why, key := by[name], profileKey+name
		if why == "" && d.said[key] == "" {
			continue
		}
		if why == "" { // it may only have no card any more
			if all == nil {
				all = d.a.broken(d.a.set)
			}
			why = all[name]
		}
		var err error
		if why != "" {
			err = fmt.Errorf("the worker of %s cannot be started: %s", name, why)
		}
		d.hold(key, err)
	}
}

const profileKey = "profile "

func (d *daemon) failures(rep *tick.Report) {
	for _, f := range rep.Errors {
		d.a.warn("run %d of %s: %s", f.Run, f.Task, f.Error)
	}
}

// look reads what to wait for: the moment at which time alone changes something,
// and the supervisors whose end is to be told.
func (d *daemon) look() (next eventlog.Time, head uint64, err error) {
	d.forks.Lock()
	defer d.forks.Unlock()
	var active []*projection.Run
	err = d.a.view(func(v projection.View) (err error) {
		if next, err = tick.Next(v, d.a.set.dispatchPolicy(), d.a.clock()); err != nil {
			return err
		}
		if head, err = v.Newest(); err != nil {
			return err
		}
		active, err = v.Active()
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	d.watch(active)
	return next, head, nil
}

// print prints what was appended since it was called last, as far as somebody reads it:
// the rest is in the log, and is printed when he reads again. It holds up nobody: what it
// prints was read before.
func (d *daemon) print() error {
	for !d.unread() {
		var list []eventlog.Commit
		d.forks.Lock()
		err := d.a.store.Commits(d.events.next, func(c eventlog.Commit) error {
			list = append(list, c)
			if len(list) == printedAtOnce {
				return errEnough
			}
			return nil
		})
		d.forks.Unlock()
		for _, c := range list {
			d.events.next = c.Number + 1
			if err := d.events.commit(c); err != nil {
				return err
			}
		}
		if !errors.Is(err, errEnough) {
			return errors.Join(err, d.unwritten())
		}
	}
	return nil
}

// printedAtOnce is how many commits are read into memory before they are printed.
const printedAtOnce = 100

// watch keeps an eye on the supervisors of the active runs, also on those that an
// earlier daemon started.
func (d *daemon) watch(active []*projection.Run) {
	here := map[uint64]bool{}
	w := world{a: d.a}
	for _, r := range active {
		here[r.ID] = true
		if _, known := d.watched[r.ID]; known || !r.HasWorker {
			continue
		}
		ended, stop := proc.Gone(w.identity(r))
		given := make(chan struct{})
		d.watched[r.ID] = func() { close(given); stop() }
		if ended == nil {
			continue // the interval sees to it
		}
		again := d.again[r.ID]
		go func() {
			select {
			case <-ended:
			case <-given:
				return
			}
			select {
			case <-time.After(again):
			case <-given:
				return
			}
			select {
			case d.ends <- r.ID:
			case <-given:
			}
		}()
	}
	for run, stop := range d.watched {
		if !here[run] {
			stop()
			delete(d.watched, run)
		}
	}
	for run := range d.again {
		if !here[run] {
			delete(d.again, run)
		}
	}
}

// heard takes note that the end of a supervisor was told. While something of its run is
// left, or its end cannot be booked, it is told once more at each look: later each time,
// or the daemon would do nothing else.
func (d *daemon) heard(run uint64) {
	delete(d.watched, run)
	d.again[run] = min(max(2*d.again[run], againFirst), d.state.Interval)
}

// againFirst is the first of these pauses.
const againFirst = 250 * time.Millisecond

// holds tells whether a run is still to be booked or seen to.
func (d *daemon) holds(run uint64) (yes bool) {
	d.forks.Lock()
	defer d.forks.Unlock()
	err := d.a.view(func(v projection.View) error {
		r, err := v.Run(run)
		yes = r != nil && (r.Open() || r.HasWorker)
		return err
	})
	return yes || err != nil
}

// hold says what is wrong once, and once more when it is over.
func (d *daemon) hold(what string, err error) {
	was, now := d.said[what], ""
	if err != nil {
		now = err.Error()
	}
	d.said[what] = now
	switch {
	case now != "" && now != was:
		d.a.warn("board %s: %v", d.a.slug, err)
	case now == "" && was != "":
		d.say("board %s: no longer so: %s", d.a.slug, was)
	}
}

// settingsMoved tells whether a file of settings is another than the tick read.
func (d *daemon) settingsMoved() bool { return d.settingsStamp() != d.settings }

func (d *daemon) settingsStamp() string {
	var b strings.Builder
	for _, dir := range []string{d.a.home, d.a.boardDir} {
		if fi, err := os.Stat(filepath.Join(dir, settingsName)); err == nil {
			fmt.Fprint(&b, fi.ModTime().UnixNano(), " ", fi.Size(), ";")
		} else {
			fmt.Fprint(&b, err, ";")
		}
	}
	return b.String()
}

// cpuTime is what this process has used of the processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// sleep waits; false if ctx was done before.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// ownBoard is the board as the ticks of a daemon use it: it counts what they write,
// so that the daemon is not woken by itself. A start beside them is somebody else: the
// slot that it gives back when it fails the tick may not have seen, and what it writes
// must not stand for a commit that nobody has seen.
type ownBoard struct {
	*projection.Store

	mu    sync.Mutex
	read  bool
	first uint64 // the newest commit when the tick began to read
	wrote uint64 // commits since then
}

func (b *ownBoard) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read, b.first, b.wrote = false, 0, 0
}

// all tells whether every commit up to head that came after the tick had begun to
// read is its own.
func (b *ownBoard) all(head uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read && head == b.first+b.wrote
}

func (b *ownBoard) View(fn func(projection.View) error) error {
	return b.Store.View(func(v projection.View) error {
		head, err := v.Newest()
		if err != nil {
			return err
		}
		b.mu.Lock()
		if !b.read {
			b.read, b.first = true, head
		}
		b.mu.Unlock()
		return fn(v)
	})
}

func (b *ownBoard) Update(actor string, now eventlog.Time, d projection.Decider) (projection.Result, error) {
	res, err := b.Store.Update(actor, now, d)
	if res.Commit.Number != 0 {
		b.mu.Lock()
		b.wrote++
		b.mu.Unlock()
	}
	return res, err
}
