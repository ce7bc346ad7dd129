package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"kanlog/eventlog"
)

func daemonCmd(a *app) *cobra.Command {
	var interval duration
	var all bool
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "Tick for ever: at once when something happens, and every interval",
		Long: `daemon does what dispatch does, at once when the log moves, a worker ends or a
time has come, and every interval as a safety net. It prints what happens on the
board (--json: one event per line). Ctrl-C or SIGTERM ends it and leaves the
workers running; the next daemon or dispatch goes on with them. A board has one
daemon at a time. Beside it runs a spare kanlog supervise, for the next worker.`,
		Example: "  kanlog daemon\n  kanlog daemon --interval 10s\n  kanlog daemon --all-boards\n  kanlog daemon --json >>board.jsonl",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("interval") && interval.std() < time.Second {
				return usage("--interval %s is less than 1s", interval.std())
			}
			if all && cmd.Flags().Changed("board") {
				return usage("--all-boards and --board: give one of them")
			}
			return a.daemon(interval.std(), all)
		},
	}
	cmd.Flags().Var(&interval, "interval", "time between two ticks at most (default: the setting interval, 60s)")
	cmd.Flags().BoolVar(&all, "all-boards", false, "every board of the home, also those that are made later")
	return cmd
}

// daemon runs the daemon of the chosen board, or of all, until it is told to end.
func (a *app) daemon(interval time.Duration, all bool) error {
	if own := os.Getenv("KANLOG_TASK"); own != "" {
		// What it started would be ended with the worker, see dispatch.
		return &refusedError{fmt.Sprintf("daemon refused: this process is a worker of %s; what it started would be ended with it", own)}
	}
	out, errw := newAsyncWriter(a.out, 0), newAsyncWriter(a.errw, behindAt)
	a.out, a.errw = out, errw
	// A reader that goes away is no reason to end; a write that fails is told once.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	err := a.dispatchForEver(interval, all)
	// Through the same writer: who starts this daemon anew must not wait for a reader.
	code := a.complain(err)
	out.finish(lastWords)
	errw.finish(lastWords)
	if err != nil {
		return &codedError{code}
	}
	return nil
}

func (a *app) dispatchForEver(interval time.Duration, all bool) error {
	ctx, stop := untilTold()
	defer stop()
	context.AfterFunc(ctx, func() {
		notify(sd.SdNotifyStopping)
		stop() // a second signal ends it as signals do
	})
	a.warnUnit()
	a.spares = &spareKeeper{}
	defer a.spares.end()
	w := &watchdog{}
	go w.run(ctx)
	if all {
		notify(sd.SdNotifyReady)
		return (&fleet{a: a, interval: interval, watchdog: w}).run(ctx)
	}
	d, err := a.newDaemon(interval, w)
	if err != nil {
		return err
	}
	if err := d.run(ctx); err != nil {
		return err
	}
	d.farewell()
	return nil
}

// untilTold is done when somebody tells the daemon to end: by Ctrl-C, SIGTERM, or with
// its terminal, unless it was started to outlive that (nohup).
func untilTold() (context.Context, context.CancelFunc) {
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), ends...)
}

// lastWords is how long a daemon that ends waits for those who read what it printed.
const lastWords = 2 * time.Second

func (a *app) newDaemon(interval time.Duration, w *watchdog) (*daemon, error) {
	head, err := a.newestCommit()
	if err != nil {
		return nil, err
	}
	d := &daemon{
		a: a, actor: dispatcherActor(), forks: new(sync.Mutex), override: interval, watchdog: w, state: newDaemonState(a.clock()),
		events: &eventPrinter{a: a, next: head.Commit + 1, skip: quietKinds},
		say:    func(format string, args ...any) {},
	}
	d.state.Interval = cmp.Or(interval, defaults().interval) // until the settings were read
	if !a.asJSON {
		d.say = func(format string, args ...any) {
			if !d.unread() {
				_ = a.printf(format+"\n", args...)
			}
		}
	}
	return d, nil
}

// unread tells whether nobody reads what the daemon prints.
func (d *daemon) unread() bool {
	out, ok := d.a.out.(*asyncWriter)
	return ok && out.behind()
}

// unwritten is why what the daemon prints does not get to where it goes.
func (d *daemon) unwritten() error {
	out, ok := d.a.out.(*asyncWriter)
	if !ok || out.failure() == nil {
		return nil
	}
	return fmt.Errorf("writing what happens: %w", out.failure())
}

// lock takes the place of the board's daemon.
func (d *daemon) lock() (*eventlog.Lock, error) {
	lock, err := eventlog.TryLock(d.a.files().daemonLock())
	var busy *eventlog.BusyError
	if errors.As(err, &busy) {
		return nil, fmt.Errorf("board %s has a daemon: %w", d.a.slug, err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("board %s: %w: %v", d.a.slug, eventlog.ErrNoBoard, err)
	}
	if err != nil {
		return nil, err
	}
	if ok, err := lock.InPlace(); err != nil || !ok {
		lock.Unlock()
		return nil, fmt.Errorf("board %s: %w", d.a.slug, errors.Join(err, eventlog.ErrNoBoard))
	}
	return lock, nil
}

// farewell says what goes on without the daemon.
func (d *daemon) farewell() {
	active, err := d.a.active()
	n := len(active)
	switch {
	case err != nil:
		d.a.warn("board %s: %v", d.a.slug, err)
	case n == 0:
		d.say("board %s: stopped; nothing runs", d.a.slug)
	default:
		d.say("board %s: stopped; %s at work; they go on, and the next kanlog daemon or dispatch sees to them", d.a.slug, plural(n, "worker", "workers"))
	}
}
