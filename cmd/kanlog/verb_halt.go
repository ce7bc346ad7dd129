package main

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

func haltCmd(a *app) *cobra.Command {
	var kill bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "End this board's daemon; with --kill its workers too",
		Long: `stop asks the board's daemon to end and waits until it has. Its workers go on,
and the next daemon or dispatch sees to them. One that was begun with --all-boards is
one process: it ends for every board.

With --kill every worker of this board is asked to end as by kanlog reclaim, which
counts as no failure, and stop waits until they are gone. The cards are ready
again then: kanlog pause, called before, keeps other dispatchers from starting
them.`,
		Example: "  kanlog stop\n  kanlog pause 'machine goes down' && kanlog stop --kill",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			return a.halt(kill)
		},
	}
	cmd.Flags().BoolVar(&kill, "kill", false, "end the workers too, and wait until they are gone")
	return cmd
}

func (a *app) halt(kill bool) error {
	w, err := a.writer()
	if err != nil {
		return err
	}
	if w.InWorker() {
		return &refusedError{fmt.Sprintf("stop refused: this process is a worker of %s", w.Card)}
	}
	// A typo in a file must not keep anybody from ending what runs.
	if _, err := a.settings(); err != nil {
		a.warn("%v; going on with the defaults", err)
		s := defaults()
		a.set = &s
	}
	if _, err := a.newestCommit(); err != nil {
		return err
	}
	what, err := a.haltDaemon()
	if err != nil {
		return err
	}
	if kill {
		n, err := a.reclaimAll(w)
		if err != nil {
			return err
		}
		what += "; " + plural(n, "worker", "workers") + " ended"
	}
	if a.asJSON {
		return a.json(map[string]any{"board": a.slug, "done": what})
	}
	return a.printf("board %s: %s\n", a.slug, what)
}

// haltDaemon asks the daemon to end and waits until its place is free.
func (a *app) haltDaemon() (done string, err error) {
	s := a.daemonOf()
	if s == nil {
		// One in another PID namespace is seen by its lock only.
		lock, err := eventlog.TryLock(a.files().daemonLock())
		if err != nil {
			return "", fmt.Errorf("board %s: its daemon cannot be seen from here: %w", a.slug, err)
		}
		lock.Unlock()
		return "it has no daemon", nil
	}
	err = proc.NewProber().SignalSupervisor(s.identity(), syscall.SIGTERM)
	if err != nil {
		return "", fmt.Errorf("board %s has a daemon, process %d, and it was not asked to end: %w; kill %d does that, if you are sure", a.slug, s.PID, err, s.PID)
	}
	set, err := a.settings()
	if err != nil {
		return "", err
	}
	// It sees to the starts that it has begun.
	most := set.policy.LaunchGrace + set.policy.KillGrace
	lock, err := eventlog.LockWait(a.files().daemonLock(), most)
	if errors.Is(err, eventlog.ErrBusy) {
		return "", fmt.Errorf("the daemon, process %d, was asked to end and has not after %s: %w", s.PID, most.Round(time.Second), err)
	}
	if err != nil {
		return "", err
	}
	lock.Unlock()
	if s.AllBoards {
		return fmt.Sprintf("its daemon, process %d, which was that of all boards, has ended", s.PID), nil
	}
	return fmt.Sprintf("its daemon, process %d, has ended", s.PID), nil
}

// reclaimAll ends every worker of the board and waits until they are gone.
func (a *app) reclaimAll(w projection.Writer) (n int, err error) {
	active, err := a.active()
	if err != nil {
		return 0, err
	}
	world, err := a.newWorld()
	if err != nil {
		return 0, err
	}
	look := world.Look(nil)
	for _, r := range active {
		evidence := string(tick.NoWorker)
		if r.HasWorker {
			evidence = look.Worker(r).String()
		}
		_, err := a.update("stop", w, projection.Reclaim(r.Task, r.ID, "stop --kill", evidence, false, w))
		if errors.Is(err, projection.ErrState) {
			// It may have ended by itself meanwhile, and another have begun.
			a.warn("%v", err)
			continue
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, a.untilIdle(0)
}

// newestCommit is the end of the log; an error if there is no board.
func (a *app) newestCommit() (eventlog.Head, error) {
	store, err := a.board()
	if err != nil {
		return eventlog.Head{}, err
	}
	return store.NewestCommit()
}
