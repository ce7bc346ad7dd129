package main

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kanlog/projection"
	"kanlog/tick"
)

// The verbs about the whole board: whether dispatchers start anything on it.

func pauseCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "pause [REASON]",
		Short: "Let dispatchers start nothing on this board until kanlog resume",
		Long: `pause lets every dispatcher, daemon and pull worker start nothing on this board.
What runs goes on and is booked; whoever wants to claims by hand. It is kept in the
log, so that it holds after a restart, and every card that waits for it says so.`,
		Example: "  kanlog pause 'quota is used up until monday'\n  kanlog resume",
		Args:    between(0, 1, "one reason (put it in quotes)"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.pause(strings.Join(args, " "))
		},
	}
}

func resumeCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "resume",
		Short:   "Let dispatchers start cards on this board again",
		Example: "  kanlog resume",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			return a.boardWord("resume", "resumed", projection.ResumeBoard)
		},
	}
}

func drainCmd(a *app) *cobra.Command {
	var most duration
	cmd := &cobra.Command{
		Use:   "drain [REASON]",
		Short: "Pause the board and wait until nothing runs on it any more",
		Long: `drain pauses the board and waits until every worker has come to its own end: for
an update of the machine, say. The board stays paused, also if the wait is broken
off (Ctrl-C, --timeout); kanlog resume lets it go on.`,
		Example: "  kanlog drain 'new kernel' && reboot\n  kanlog drain --timeout 30m",
		Args:    between(0, 1, "one reason (put it in quotes)"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.pause(strings.Join(args, " ")); err != nil {
				return err
			}
			if err := a.untilIdle(most.std()); err != nil || a.asJSON {
				return err
			}
			return a.printf("board %s: nothing runs; it stays paused until kanlog resume\n", a.slug)
		},
	}
	cmd.Flags().Var(&most, "timeout", "wait at most this long (default: for ever)")
	return cmd
}

func (a *app) pause(reason string) error {
	return a.boardWord("pause", "paused; what runs goes on", func(w projection.Writer) projection.Decider {
		return projection.PauseBoard(reason, w)
	})
}

func (a *app) boardWord(verb, done string, decide func(projection.Writer) projection.Decider) error {
	w, err := a.writer()
	if err != nil {
		return err
	}
	res, err := a.update(verb, w, decide(w))
	if err != nil {
		return err
	}
	if res.Note != "" {
		done = res.Note
	}
	if a.asJSON {
		seq := any(nil)
		if res.Commit.Number != 0 {
			seq = res.Commit.Seq
		}
		return a.json(map[string]any{"board": a.slug, "done": done, "changed": res.Commit.Number != 0, "seq": seq})
	}
	return a.printf("board %s: %s\n", a.slug, strings.TrimPrefix(done, "the board is "))
}

// lookEvery is how often who waits for a board to come to rest looks after what
// needs a dispatcher to be booked.
const lookEvery = time.Second

// untilIdle waits until no run is active, booking what nobody else books.
func (a *app) untilIdle(most time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, most, fmt.Errorf("not idle after %s", most))
		defer cancel()
	}
	hint := a.watch()
	defer hint.stop()
	d, err := a.newDispatcher(dispatcherActor())
	if err != nil {
		return err
	}
	said := ""
	for {
		if _, err := d.Tick(ctx, tick.Options{Max: 0}); err != nil {
			return err
		}
		active, err := a.active()
		if err != nil || len(active) == 0 {
			return err
		}
		var cards []string
		for _, r := range active {
			cards = append(cards, r.Task)
		}
		if now := strings.Join(cards, " "); now != said {
			said = now
			a.warn("board %s: %d at work: %s", a.slug, len(cards), named(cards))
		}
		t := time.NewTimer(lookEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%w; %d at work: %s", context.Cause(ctx), len(cards), named(cards))
		case <-hint.C:
		case <-t.C:
		}
		t.Stop()
	}
}

// active are the runs that are open or have a process left.
func (a *app) active() (active []*projection.Run, err error) {
	err = a.view(func(v projection.View) (err error) {
		active, err = v.Active()
		return err
	})
	return active, err
}
