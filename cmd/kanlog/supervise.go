package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"kanlog/cmd/internal/prefault"
	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
)

// superviseVerb is hidden: a dispatcher starts it, people do not.
const superviseVerb = "supervise"

// superviseSpec is what a dispatcher tells a supervisor on its stdin: a file, so that it
// is still there when the dispatcher is not. A spare gets it through a pipe, and runs
// nothing if it is cut off.
type superviseSpec struct {
	BoardDir     string
	Task         string
	Run          uint64
	Token        string
	Argv         []string
	Workspace    string
	OutputPath   string
	RecordPath   string
	OutputLimit  int64
	StdinPath    string // "" for nothing
	KillGrace    time.Duration
	LockTimeout  time.Duration
	AllowNetwork bool
	Limits       projection.Limits
	ClockOffset  time.Duration
	Failpoint    string
	// Env is the worker's environment, for a spare that was started in another: the
	// bytes, each string ended by a NUL, since JSON would change what is no UTF-8.
	Env []byte
	// Shown is set for a pull worker: somebody looks on in a terminal.
	Shown *shown
}

// supervise is the parent of one worker. Its words go to the run's output.
func supervise(stdin io.Reader) int {
	prefault.NoMoreHugePages()
	var spec superviseSpec
	read := func() error { return json.NewDecoder(stdin).Decode(&spec) }
	var prepared *proc.Prepared
	var report *os.File
	var err error
	if proc.IsSpare() {
		warmUp()
		report = os.NewFile(proc.ReportFD, "report")
		if prepared, err = proc.AwaitRun(report, read); errors.Is(err, io.EOF) {
			return exitOK // nobody is left who could use it
		}
	} else {
		err = read()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "kanlog supervise: it is started by kanlog dispatch, not by hand: %v\n", err)
		return exitUsage
	}
	env := workerEnv(os.Environ())
	if prepared != nil {
		env = strings.Split(strings.TrimSuffix(string(spec.Env), "\x00"), "\x00")
		_ = prepared.BelongTo(spec.Token, spec.OutputPath) // see there
	}
	fail, err := parseFailpoints(spec.Failpoint)
	if err != nil {
		fmt.Fprintf(os.Stderr, "kanlog supervise: %v\n", err)
		return exitUsage
	}
	b := newSupervisedBoard(spec)
	s := proc.Supervision{
		Task: spec.Task, Run: spec.Run, Token: spec.Token, Argv: spec.Argv, Env: env, Prepared: prepared,
		Workspace: spec.Workspace, OutputPath: spec.OutputPath, RecordPath: spec.RecordPath, StdinPath: spec.StdinPath, OutputLimit: spec.OutputLimit, KillGrace: spec.KillGrace,
		Board: b, Now: b.now, Hook: fail.hit, Settled: func() { prefault.GiveBack(main) },
	}
	if spec.Shown != nil {
		s.Interruptible, s.Echo = true, spec.Shown.output()
		proc.Supervise(s)
		return spec.Shown.ending(b)
	}
	if s.Report = report; report == nil {
		s.Report = os.NewFile(proc.ReportFD, "report")
	}
	return proc.Supervise(s)
}

// warmUp lets the JSON package find out about our types, which it does once for each: a
// spare does it while it is idle, not when a worker waits for its spec or for the record
// of its end.
func warmUp() {
	text, err := json.Marshal(superviseSpec{})
	if err == nil {
		err = json.Unmarshal(text, new(superviseSpec))
	}
	if err == nil {
		_, err = json.Marshal(proc.Record{})
	}
	if err != nil {
		panic(err) // of our own types
	}
}

// workerEnv undoes supervisorEnv: the last entry was added there, and a value of
// the worker's own stands before it.
func workerEnv(env []string) []string {
	if n := len(env) - 1; n >= 0 && env[n] == oneProcessor {
		return env[:n]
	}
	return env
}

// supervisedBoard is the board as a supervisor uses it.
type supervisedBoard struct {
	spec  superviseSpec
	store *projection.Store
	actor string
	now   func() time.Time
}

func newSupervisedBoard(spec superviseSpec) *supervisedBoard {
	return &supervisedBoard{
		spec:  spec,
		store: projection.Open(spec.BoardDir, eventlog.Options{LockTimeout: spec.LockTimeout, AllowNetwork: spec.AllowNetwork}),
		actor: fmt.Sprintf("supervisor:%s/%d", spec.Task, spec.Run),
		now:   func() time.Time { return time.Now().Add(spec.ClockOffset) },
	}
}

func (b *supervisedBoard) update(d projection.Decider) error {
	_, err := b.store.Update(b.actor, eventlog.TimeOf(b.now()), d)
	return err
}

// Register appends spawned under the run's fence. The deadline is read in the
// same transaction, whose time is the one that the run is judged by.
func (b *supervisedBoard) Register(id proc.Identity) (time.Time, error) {
	register := projection.Register(projection.Registration{
		Task: b.spec.Task, Run: b.spec.Run, Worker: processOf(id),
		OutputInode: id.OutputInode, Token: id.Token, Workspace: b.spec.Workspace,
	})
	var until time.Time
	err := b.update(func(v projection.View, now eventlog.Time) (projection.Decision, error) {
		d, err := register(v, now)
		if err != nil {
			return d, err
		}
		r, err := v.Run(b.spec.Run)
		if err == nil && r != nil {
			until = r.Until(now)
		}
		return d, err
	})
	if errors.Is(err, projection.ErrFenced) {
		return until, fmt.Errorf("%w: %w", proc.ErrFenced, err)
	}
	return until, err
}

// Book books the end of the run. What another try cannot mend is given up: the
// exit record is on disk, and the next tick books from it.
func (b *supervisedBoard) Book(rec proc.Record) error {
	err := b.update(projection.BookEnd(projection.Ending{
		Run: b.spec.Run, Record: exitRecord(rec), Evidence: "its supervisor saw the whole tree end",
	}, b.spec.Limits))
	for _, final := range []error{
		eventlog.ErrRefused, eventlog.ErrNoBoard, eventlog.ErrUnknownOutcome,
		projection.ErrNotFound, projection.ErrState, projection.ErrInconsistent,
	} {
		if errors.Is(err, final) {
			return fmt.Errorf("%w: %w", proc.ErrGiveUp, err)
		}
	}
	return err
}
