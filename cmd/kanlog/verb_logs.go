package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kanlog/proc"
	"kanlog/projection"
)

// interrupted is the exit code of what was ended by Ctrl-C, as shells have it.
const interrupted = 128 + int(syscall.SIGINT)

// logsEvery is how often a follower looks at a file that grows.
const logsEvery = 100 * time.Millisecond

func logsCmd(a *app) *cobra.Command {
	var tail int64
	var follow, raw bool
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print the output of a run (default: the newest)",
		Long: `logs prints what a run's command has printed, between a line that says when and
how it was started and one that says how it ended. What could make a terminal do
something (escape sequences, carriage returns) is shown as text; --raw gives the
bytes as they are. Of more output than output_limit the middle is dropped while the
worker runs; a line says where and how much.

--follow goes on until the run has ended and its output is whole; Ctrl-C ends it
before (exit 130). The run goes on.`,
		Example: `  kanlog logs t_1a2b
  kanlog logs t_1a2b --follow
  kanlog logs t_1a2b --run 42 --tail 4096
  kanlog logs t_1a2b --raw >output`,
		Args: exactly(1, "one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("tail") && tail < 0 {
				return usage("--tail %d is negative", tail)
			}
			if !cmd.Flags().Changed("tail") {
				tail = -1
			}
			if a.asJSON {
				return usage("logs prints the output of a run as it is; it has no --json")
			}
			out := io.Writer(&cleanWriter{w: a.out})
			if raw {
				out = a.out
			}
			return a.logs(args[0], tail, follow, out)
		},
	}
	f := cmd.Flags()
	f.Var(&number[int64]{&tail}, "tail", "only the last BYTES, from the start of a line if one begins there (default: all)")
	f.BoolVar(&follow, "follow", false, "go on until the run has ended")
	f.BoolVar(&raw, "raw", false, "the bytes as they are, whatever they do to a terminal")
	f.Func("run", "which run (default: the newest)", func(s string) (err error) {
		a.runFlag, err = runNumber(s)
		return err
	})
	return cmd
}

// runFor is the run of a card that was asked for, or its newest.
func (a *app) runFor(prefix string) (r *projection.Run, err error) {
	err = a.view(func(v projection.View) error {
		id, err := v.Resolve(prefix)
		if err != nil {
			return err
		}
		t, err := v.MustTask(id)
		if err != nil {
			return err
		}
		run := a.runFlag
		if run == 0 {
			run = t.LastRun
		}
		if run == 0 {
			return notFound("no such run: %s has none yet (kanlog why %s says why)", id, id)
		}
		r, err = v.Run(run)
		if err == nil && (r == nil || r.Task != id) {
			err = notFound("no such run: %s has no run %d (kanlog runs %s shows all)", id, run, id)
		}
		return err
	})
	return r, err
}

func (a *app) logs(prefix string, tail int64, follow bool, out io.Writer) error {
	r, err := a.runFor(prefix)
	if err != nil {
		return err
	}
	if r.Origin == projection.OriginManual && !r.HasWorker {
		a.warn("run %d is a claim by hand: it has no process and no output", r.ID)
		return nil
	}
	if !follow {
		f, _, err := openOutput(a.files().output(r.Task, r.ID))
		if err != nil {
			return err
		}
		if f == nil {
			a.noOutput(r)
			return nil
		}
		defer f.Close()
		return a.logsFrom(f, tail, r, out)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT)
	defer stop()
	return a.follow(ctx, r, tail, out)
}

// logsFrom prints what there is.
func (a *app) logsFrom(f *os.File, tail int64, r *projection.Run, out io.Writer) error {
	o := output{f: f}
	if tail >= 0 {
		if err := o.seekTail(tail); err != nil {
			return err
		}
	}
	if err := o.copyTo(out); err != nil {
		return fmt.Errorf("the output of run %d: %w", r.ID, err)
	}
	if err := finish(out); err != nil {
		return err
	}
	return a.logsEnd(r.Task, r.ID)
}

// noOutput says why a run has none.
func (a *app) noOutput(r *projection.Run) {
	if r.SpawnedAt != 0 {
		// A supervisor that registered had made the file.
		a.warn("the output of run %d is not there any more: kanlog gc removes it when its card is over and keep_output has passed", r.ID)
		return
	}
	a.warn("run %d has no output: its command never started", r.ID)
}

// follow prints what comes until nothing will come any more. Whether that is so
// is asked before what is there is read: what was written in between is read too.
// The board is asked only when it has changed, without the lock otherwise.
func (a *app) follow(ctx context.Context, r *projection.Run, tail int64, out io.Writer) error {
	store, err := a.board()
	if err != nil {
		return err
	}
	every := time.NewTicker(logsEvery)
	defer every.Stop()
	var o output
	for was, over := "", false; ; {
		if stamp := store.Stamp(); stamp != was || stamp == "" || a.recorded(r) {
			if over, err = a.runOver(r.Task, r.ID); err != nil {
				return err
			}
			was = stamp
		}
		if o.f == nil {
			// It may be claimed only, and its supervisor on the way.
			if o.f, _, err = openOutput(a.files().output(r.Task, r.ID)); err != nil {
				return err
			}
			if o.f != nil {
				defer o.f.Close()
				if tail >= 0 {
					if err := o.seekTail(tail); err != nil {
						return err
					}
				}
			}
		}
		if o.f != nil {
			if err := o.copyTo(out); err != nil {
				return fmt.Errorf("the output of run %d: %w", r.ID, err)
			}
		}
		switch {
		case over && o.f == nil:
			a.noOutput(r)
			return nil
		case over:
			if err := finish(out); err != nil {
				return err
			}
			return a.logsEnd(r.Task, r.ID)
		}
		select {
		case <-ctx.Done():
			if err := finish(out); err != nil {
				return err
			}
			return &codedError{interrupted}
		case <-every.C:
		}
	}
}

// openOutput opens a run's output; nil and no error if there is none. Something
// else in its place, which could keep a reader waiting for ever, is an error.
func openOutput(path string) (f *os.File, size int64, err error) {
	f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// recorded tells whether a run's exit record is there: what is written after the
// last line of its output.
func (a *app) recorded(r *projection.Run) bool {
	_, err := os.Stat(a.files().record(r.Task, r.ID))
	return err == nil
}

// runOver tells whether nothing will be added to a run's output any more.
func (a *app) runOver(id string, run uint64) (over bool, err error) {
	if _, err := os.Stat(a.files().record(id, run)); err == nil {
		return true, nil
	}
	err = a.view(func(v projection.View) error {
		r, err := v.Run(run)
		over = r != nil && !r.Open() && !r.HasWorker
		return err
	})
	return over, err
}

// logsEnd says how the run ended, so that silence is told from no start.
func (a *app) logsEnd(id string, run uint64) error {
	store, err := a.board()
	if err != nil {
		return err
	}
	uuid, err := store.UUID()
	if err != nil {
		return err
	}
	rec, err := proc.ReadRecord(a.files().record(id, run), startOf(uuid, run), run)
	switch {
	case err != nil:
		a.warn("run %d: its exit record cannot be read: %v", run, err)
	case rec == nil:
		return a.noRecord(run)
	case rec.Cause == proc.CauseNeverStarted:
		a.warn("run %d: its command never started: %s", run, orDash(rec.Error, rec.Cause))
	}
	return nil // what was started, or tried, says its end in the output itself
}

// noRecord says what the board knows of a run that left no exit record.
func (a *app) noRecord(run uint64) error {
	return a.view(func(v projection.View) error {
		r, err := v.Run(run)
		if err == nil && r != nil && !r.Open() && !r.HasWorker {
			a.warn("run %d left no exit record; it is booked as %s (%s)", run, r.Outcome, orDash(r.Error, r.Summary))
		}
		return err
	})
}
