package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// The test binary is also the supervisor, the prober in another namespace and
// an idle process: its first argument says which.
const (
	asSupervisor = "test-supervise"
	asProber     = "test-probe"
	asIdler      = "test-idle"
)

func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case asSupervisor:
			os.Exit(superviseFromStdin())
		case asProber:
			os.Exit(probeFromStdin())
		case asIdler:
			fmt.Println("ready")
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}
	}
	if signal.Ignored(syscall.SIGHUP) {
		// Under nohup: what is ignored here would be ignored in what is tested; what
		// is caught is not.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(m.Run())
}

// superviseSpec is what a test tells its supervisor.
type superviseSpec struct {
	Task, Token           string
	Run                   uint64
	Argv, Env             []string
	Workspace             string
	OutputPath            string
	RecordPath            string
	KillGrace             time.Duration
	BoardDir              string
	RefuseWith            string // Register fails with this text; "fenced" is ErrFenced
	BookFailures          int    // Book fails this often first
	GiveUp                bool   // Book returns ErrGiveUp
	Interruptible         bool
	HookAt                string // stop there on the FIFO "hook" in BoardDir
	TermAtHook            bool   // go on from there only once SIGTERM was taken note of
	BreakRecordUntilBooks int    // the record's directory is missing until then
	Until                 time.Time
	Root                  string // of the kernel's files about memory
}

func superviseFromStdin() int {
	var s superviseSpec
	read := func() error {
		if IsSpare() {
			_ = os.WriteFile(filepath.Join(os.Getenv("D"), "waiting"), nil, 0o600)
		}
		return json.NewDecoder(os.Stdin).Decode(&s)
	}
	var prepared *Prepared
	var err error
	if IsSpare() {
		if prepared, err = AwaitRun(os.NewFile(ReportFD, "report"), read); err == nil {
			err = prepared.BelongTo(s.Token, s.OutputPath)
		}
	} else {
		err = read()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	board := &fileBoard{spec: s}
	term := make(chan os.Signal, 1)
	if s.TermAtHook {
		signal.Notify(term, syscall.SIGTERM)
	}
	return Supervise(Supervision{
		Task: s.Task, Run: s.Run, Token: s.Token, Argv: s.Argv, Env: s.Env,
		Workspace: s.Workspace, OutputPath: s.OutputPath, RecordPath: s.RecordPath,
		KillGrace: s.KillGrace, Interruptible: s.Interruptible, Prepared: prepared, Board: board, Report: os.NewFile(ReportFD, "report"),
		root: s.Root,
		Hook: func(point string) {
			if point == s.HookAt {
				// Opening it meets the test, which opens the other end.
				_, _ = os.ReadFile(filepath.Join(s.BoardDir, "hook"))
				if s.TermAtHook {
					<-term
					// Returns when everybody who is notified has been.
					signal.Stop(term)
				}
			}
		},
	})
}

// fileBoard is a board of two files.
type fileBoard struct {
	spec  superviseSpec
	books int
}

func (b *fileBoard) Register(id Identity) (time.Time, error) {
	switch b.spec.RefuseWith {
	case "":
	case "fenced":
		return time.Time{}, fmt.Errorf("run %d: %w", b.spec.Run, ErrFenced)
	default:
		return time.Time{}, errors.New(b.spec.RefuseWith)
	}
	return b.spec.Until, writeJSON(filepath.Join(b.spec.BoardDir, "registered"), id)
}

func (b *fileBoard) Book(rec Record) error {
	b.books++
	if b.spec.GiveUp {
		return fmt.Errorf("newer format: %w", ErrGiveUp)
	}
	if n := b.spec.BreakRecordUntilBooks; n > 0 && b.books == n {
		if err := os.MkdirAll(filepath.Dir(b.spec.RecordPath), 0o700); err != nil {
			return err
		}
	}
	if b.books <= b.spec.BookFailures {
		return errors.New("busy")
	}
	return writeJSON(filepath.Join(b.spec.BoardDir, "booked"), rec)
}

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// probeFromStdin answers with the evidence for an identity.
func probeFromStdin() int {
	var id Identity
	if err := json.NewDecoder(os.Stdin).Decode(&id); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	p := NewProber()
	err := p.SignalSupervisor(id, 0)
	answer := struct {
		Evidence Evidence
		Unproven bool
	}{p.Probe(id), errors.Is(err, ErrUnproven)}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		return 1
	}
	return 0
}
