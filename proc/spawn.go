package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ReportFD is the descriptor on which a supervisor finds its report pipe. It
// must be close-on-exec before anything is started; [Supervise] sees to that.
const ReportFD = 3

// SpawnSpec says how to start a supervisor.
type SpawnSpec struct {
	// Args is the whole argument vector, with the name first. The program is
	// always this one.
	Args []string
	// Env is the whole environment. The run's token must be in it under
	// [TokenVariable], or a later probe tells the supervisor by its run lock
	// only. Start from [CleanEnv].
	Env []string
	// Dir is the working directory; "" is ours.
	Dir string
	// OutputPath is the run's output file, which gets stdout and stderr. It is
	// made, 0600 in a directory 0700, or appended to.
	OutputPath string
	// Spec is what the supervisor reads on stdin. It stays readable when we
	// are gone.
	Spec []byte
}

// Child is a supervisor that we started. It lives on without us.
type Child struct {
	PID int

	report *os.File
	words  *bufio.Reader // of report
	kill   func() error
	reaped chan struct{}
	status string // how it ended; after reaped
}

// ReportState is how the start of a supervisor went.
type ReportState string

const (
	Registered ReportState = "registered" // its spawned event is durable
	Refused    ReportState = "refused"    // it runs nothing, and says why
	Died       ReportState = "died"       // it ended without a word
	TimedOut   ReportState = "timed_out"  // nothing yet; it may still register
)

// Report is a supervisor's word about its start.
type Report struct {
	State  ReportState
	Detail string
	// Infrastructure: it was refused by the host, not by the board.
	Infrastructure bool
}

// hostRefused is the word on the pipe for a refusal by the host.
const hostRefused = "refused_by_host"

// Spawn starts a supervisor in a session of its own. It returns once that was
// executed; what becomes of it is for Await. Nobody may hold a lock or the
// store open through a descriptor that is not close-on-exec while calling
// this; all of ours from 3 up are made so, because a pipe that we inherited
// from whoever started us would stay open in every worker.
func Spawn(s SpawnSpec) (*Child, error) {
	if len(s.Args) == 0 {
		return nil, errors.New("spawn: no arguments")
	}
	spec, err := anonymousFile(s.Spec)
	if err != nil {
		return nil, fmt.Errorf("spawn: spec: %w", err)
	}
	defer spec.Close()
	if err := os.MkdirAll(filepath.Dir(s.OutputPath), 0o700); err != nil {
		return nil, fmt.Errorf("spawn: output directory: %w", err)
	}
	output, err := openOutput(s.OutputPath)
	if err != nil {
		return nil, fmt.Errorf("spawn: %w", err)
	}
	defer output.Close()
	c, err := startProcess(s.Args, s.Env, s.Dir, spec, output)
	if err != nil {
		return nil, fmt.Errorf("spawn: %w", err)
	}
	return c, nil
}

// startProcess starts this program with a report pipe, and has it reaped.
func startProcess(args, env []string, dir string, stdin, output *os.File) (*Child, error) {
	if env == nil {
		env = []string{} // nil would be our own
	}
	program, err := ownProgram()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("report pipe: %w", err)
	}
	defer w.Close()
	closeOnExecFrom(ReportFD)
	p, err := os.StartProcess(program, args, &os.ProcAttr{
		Dir:   dir,
		Env:   env,
		Files: []*os.File{stdin, output, output, w},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		r.Close()
		return nil, err
	}
	c := &Child{PID: p.Pid, report: r, words: bufio.NewReaderSize(r, 256), kill: p.Kill, reaped: make(chan struct{})}
	go func() {
		defer close(c.reaped)
		st, err := p.Wait()
		if err != nil {
			c.status = err.Error()
			return
		}
		c.status = st.String()
	}()
	return c, nil
}

// Await waits for the supervisor's report, at most until ctx is done, and is
// to be called once. The supervisor is reaped whether or not anybody waits.
func (c *Child) Await(ctx context.Context) Report {
	defer c.report.Close()
	stop := context.AfterFunc(ctx, func() { c.report.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := c.words.ReadString('\n')
	word, detail, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	switch {
	case err == nil && word == string(Registered):
		return Report{State: Registered}
	case err == nil && word == string(Refused):
		return Report{State: Refused, Detail: detail}
	case err == nil && word == hostRefused:
		return Report{State: Refused, Detail: detail, Infrastructure: true}
	case err == nil:
		return Report{State: Died, Detail: "unknown report " + plainText(line, maxErrorText)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Report{State: TimedOut, Detail: ctx.Err().Error()}
	}
	// The pipe is closed: it ended, or is about to.
	select {
	case <-c.reaped:
		return Report{State: Died, Detail: c.status}
	case <-ctx.Done():
		return Report{State: Died, Detail: "it closed its report without a word"}
	}
}

// Reaped is closed when the supervisor has ended and left no zombie.
func (c *Child) Reaped() <-chan struct{} { return c.reaped }
