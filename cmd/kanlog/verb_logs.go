package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kanlog/proc"
	"kanlog/projection"
)

func logsCmd(a *app) *cobra.Command {
	var tail int64
	var follow bool
	cmd := &cobra.Command{
		Use:     "logs ID",
		Short:   "Print the output of a run (default: the newest)",
		Example: "  kanlog logs t_1a2b --follow\n  kanlog logs t_1a2b --run 42 --tail 4096",
		Args:    exactly(1, "one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("tail") && tail < 0 {
				return usage("--tail %d is negative", tail)
			}
			if !cmd.Flags().Changed("tail") {
				tail = -1
			}
			if a.asJSON {
				return usage("logs prints the bytes of a run as they are; it has no --json")
			}
			return a.logs(args[0], tail, follow)
		},
	}
	f := cmd.Flags()
	f.Var(&number[int64]{&tail}, "tail", "only the last BYTES, from the start of a line if one begins there (default: all)")
	f.BoolVar(&follow, "follow", false, "go on until the run has ended")
	f.Func("run", "which run (default: the newest)", func(s string) (err error) {
		a.runFlag, err = runNumber(s)
		return err
	})
	return cmd
}

func (a *app) logs(prefix string, tail int64, follow bool) error {
	var id string
	run := a.runFlag
	err := a.view(func(v projection.View) error {
		var err error
		if id, err = v.Resolve(prefix); err != nil {
			return err
		}
		t, err := v.MustTask(id)
		if err != nil {
			return err
		}
		if run == 0 {
			run = t.LastRun
		}
		if run == 0 {
			return notFound("task %s has no run yet", id)
		}
		r, err := v.Run(run)
		if err == nil && (r == nil || r.Task != id) {
			err = notFound("task %s has no run %d", id, run)
		}
		return err
	})
	if err != nil {
		return err
	}
	f, _, err := openOutput(a.files().output(id, run))
	if err != nil {
		return err
	}
	if f == nil {
		a.warn("run %d has no output: its command never started", run)
		return nil
	}
	defer f.Close()
	if tail >= 0 {
		if err := seekTail(f, tail); err != nil {
			return err
		}
	}
	for {
		over := true
		if follow {
			if over, err = a.runOver(id, run); err != nil {
				return err
			}
		}
		if _, err := io.Copy(a.out, f); err != nil {
			return fmt.Errorf("reading the output of run %d: %w", run, err)
		}
		if over {
			return a.logsEnd(id, run)
		}
		time.Sleep(followEvery)
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
	rec, err := proc.ReadRecord(a.files().record(id, run), token(uuid, run), run)
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

// seekTail moves to the start of the first whole line among the last n bytes.
func seekTail(f interface {
	io.ReaderAt
	io.Seeker
}, n int64) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if n >= size {
		_, err = f.Seek(0, io.SeekStart)
		return err
	}
	start := size - n
	buf := make([]byte, 1)
	if _, err := f.ReadAt(buf, start-1); err == nil && buf[0] == '\n' {
		_, err = f.Seek(start, io.SeekStart)
		return err
	}
	chunk := make([]byte, min(n, 64<<10))
	got, err := f.ReadAt(chunk, start)
	if err != nil && err != io.EOF {
		return err
	}
	for i, b := range chunk[:got] {
		if b == '\n' && i+1 < got {
			_, err = f.Seek(start+int64(i)+1, io.SeekStart)
			return err
		}
	}
	_, err = f.Seek(start, io.SeekStart)
	return err
}
