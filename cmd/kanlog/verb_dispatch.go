package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
	"kanlog/tick"
)

func dispatchCmd(a *app) *cobra.Command {
	o := tick.Options{Max: -1}
	cmd := &cobra.Command{
		Use:   "dispatch",
		Short: "Run one tick: book what ended, start what may start",
		Long: `dispatch looks at every running card once, books what ended and was not booked by
its own supervisor, and starts workers for ready cards as far as there is room. It returns when every worker it started has
registered or failed. Workers live on when it ends. Beside another dispatch on
the same board it does nothing.`,
		Example: "  kanlog dispatch\n  kanlog dispatch --dry-run\n  watch -n 5 kanlog dispatch --json",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("max") && o.Max < 0 {
				return usage("--max %d is negative", o.Max)
			}
			if o.ID != "" {
				id, err := a.resolve(o.ID)
				if err != nil {
					return err
				}
				o.ID = id
			}
			return a.dispatch(o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would be done, do nothing")
	f.Var(&number[int]{&o.Max}, "max", "start at most this many (0: only look after what runs)")
	f.Lookup("max").DefValue = "0" // for the help: without it there is no bound
	f.StringVar(&o.ID, "id", "", "start only this card")
	return cmd
}

// newDispatcher wires a dispatcher to the chosen board.
func (a *app) newDispatcher(actor string) (*tick.Dispatcher, error) {
	set, err := a.settings()
	if err != nil {
		return nil, err
	}
	w, err := a.newWorld()
	if err != nil {
		return nil, err
	}
	w.actor = actor
	return &tick.Dispatcher{
		Board: w.store, World: w, Policy: set.dispatchPolicy(), Actor: actor,
		Clock: a.clock, Lock: a.dispatchLock, Hook: a.fail.hit,
	}, nil
}

// dispatchLock takes the board's dispatch lock without waiting. The kernel's lock
// decides; what stands in the file does not matter.
func (a *app) dispatchLock() (func(), error) {
	l, err := eventlog.TryLock(a.files().dispatchLock())
	return a.inPlace(l, err)
}

// waitDispatchLock takes it when it is free, after most at last.
func (a *app) waitDispatchLock(ctx context.Context, most time.Duration) (func(), error) {
	for end := time.Now().Add(most); ; {
		// In slices: a wait at a lock cannot be ended from outside.
		l, err := eventlog.LockWait(a.files().dispatchLock(), min(time.Second, max(0, time.Until(end))))
		if errors.Is(err, eventlog.ErrBusy) && ctx.Err() == nil && time.Now().Before(end) {
			continue
		}
		return a.inPlace(l, err)
	}
}

func (a *app) inPlace(l *eventlog.Lock, err error) (func(), error) {
	if err != nil {
		return nil, err
	}
	if ok, err := l.InPlace(); err != nil || !ok {
		// The board has been renamed or put away since: this is the lock of what
		// bears its name no more.
		l.Unlock()
		return nil, cmp.Or(err, fmt.Errorf("board %s was moved just now; look again (kanlog boards list)", a.slug))
	}
	return l.Unlock, nil
}

func (a *app) dispatch(o tick.Options) error {
	if own := os.Getenv("KANLOG_TASK"); own != "" {
		// The supervisor of this worker is a child-subreaper: what a dispatch
		// under it starts would be part of its tree, and be ended with it.
		return &refusedError{fmt.Sprintf("dispatch refused: this process is a worker of %s; what it started would be ended with it", own)}
	}
	actor := dispatcherActor()
	d, err := a.newDispatcher(actor)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	rep, err := d.Tick(ctx, o)
	if a.asJSON {
		if jerr := a.json(rep); err == nil {
			err = jerr
		}
	} else if perr := a.printf("%s", reportText(rep)); err == nil {
		err = perr
	}
	for _, f := range rep.Errors {
		a.warn("run %d of %s: %s", f.Run, f.Task, f.Error)
	}
	if errors.Is(err, eventlog.ErrDiskFull) {
		return fmt.Errorf("nothing more is started: %w", err)
	}
	return err
}

// evidence looks at the run that has a card, nil if none has, and says what is
// known of its worker, for the words of an event.
func (a *app) evidence(w tick.World, id string) (r *projection.Run, words string, err error) {
	err = a.view(func(v projection.View) error {
		t, err := v.MustTask(id)
		if err != nil {
			return err
		}
		if n := t.Owner(); n != 0 {
			r, err = v.Run(n)
		}
		return err
	})
	switch {
	case err != nil || r == nil:
		return nil, "", err
	case !r.HasWorker:
		return r, string(tick.NoWorker), nil
	}
	return r, w.Look(nil).Worker(r).String(), nil
}
