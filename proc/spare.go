package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// Spare is a supervisor that was started before there is a run for it: it has
// initialised itself and waits for its spec, which is half of the way from a claim to
// the worker. It supervises nothing, marks no run and holds no lock, and ends by itself
// when nobody is left who could use it.
type Spare struct {
	child *Child
	spec  *os.File // write end of its stdin
}

// A spare has this in its environment, with room for what takes its place there, see
// showToken. Nothing else counts: what somebody sets by hand, or a worker inherits, must
// make no spare of a supervisor that has its run's environment.
const spareVariable = "KANLOG_SPARE"

var spareMark = strings.Repeat("-", 96) // a board's id, a run number and a mark: any token

// StartSpare starts a spare supervisor, as [Spawn] starts others; the same holds for
// who may hold what while calling it. env is what it needs for itself.
func StartSpare(args, env []string) (*Spare, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("spare: %w", err)
	}
	defer r.Close()
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("spare: %w", err)
	}
	defer nowhere.Close()
	env = append(env[:len(env):len(env)], spareVariable+"="+spareMark)
	child, err := startProcess(args, env, "/", r, nowhere)
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("spare: %w", err)
	}
	return &Spare{child, w}, nil
}

// Use makes the spare the supervisor of a run; it is used up, also by an error. After
// an error it runs nothing and has ended: it was not there any more, or it did not take
// the whole spec in time. The directory of the run's output must be there, and the spec
// must hold the worker's whole environment.
func (s *Spare) Use(spec []byte) (*Child, error) {
	end := time.Now().Add(spareTakes)
	_ = s.spec.SetWriteDeadline(end)
	_, err := s.spec.Write(spec)
	s.spec.Close() // the end of a whole spec, or of a part of one that cannot be read
	if err == nil {
		var word string
		if word, err = s.child.firstWord(end); err == nil && word == taken {
			_ = s.child.report.SetReadDeadline(time.Time{}) // it has the run now, whatever this says
			return s.child, nil
		}
	}
	// What it has read of the spec must not run when another has the run: whoever was
	// stopped may go on. It is our child and not waited for, so the number is its own.
	_ = s.child.kill()
	<-s.child.reaped
	s.child.report.Close()
	return nil, fmt.Errorf("spare: not taken: %w", err)
}

// firstWord reads the first line that the child reports until end comes. Who was stopped
// himself meanwhile (a daemon, the machine) finds it late, and the line there all the same.
func (c *Child) firstWord(end time.Time) (string, error) {
	_ = c.report.SetReadDeadline(end)
	word, err := c.words.ReadString('\n')
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = c.report.SetReadDeadline(time.Now().Add(spareLate))
		word, err = c.words.ReadString('\n')
	}
	return word, err
}

// taken is a spare's first word on the report pipe: it has the whole spec, and no signal
// from before ends it any more.
const taken = "taken\n"

// End lets the spare end, and waits a moment for that. To end one that is Gone gives up
// what was kept of it.
func (s *Spare) End() {
	s.spec.Close()
	s.child.report.Close()
	select {
	case <-s.child.reaped:
	case <-time.After(spareTakes):
	}
}

// Gone tells whether the spare has ended unused.
func (s *Spare) Gone() bool {
	select {
	case <-s.child.reaped:
		return true
	default:
		return false
	}
}

// IsSpare tells whether this process was started by StartSpare.
func IsSpare() bool { return os.Getenv(spareVariable) == spareMark }

// AwaitRun is the life of a spare until it has a run, in the spare: it prepares itself
// and calls read, which decodes its stdin. SIGTERM ends the process meanwhile. report is
// told when the run is taken.
func AwaitRun(report io.Writer, read func() error) (*Prepared, error) {
	p := prepare(false)
	done := make(chan struct{})
	var decided atomic.Bool // whose a SIGTERM is: who is first says
	go func() {
		select {
		case sig := <-p.term:
			if decided.CompareAndSwap(false, true) {
				os.Exit(0)
			}
			select {
			case p.term <- sig: // the run's
			default: // which is told already
			}
		case <-done:
		}
	}()
	err := read()
	if !decided.CompareAndSwap(false, true) {
		select {} // until the process has ended
	}
	close(done)
	if err == nil {
		_, err = io.WriteString(report, taken)
	}
	return p, err
}

// BelongTo makes this process, a spare, look as if it had been started for a run: the
// run's token stands in its environment, its output is the run's. Without the token a
// probe goes by the run lock. If the output cannot be opened, taking that lock fails
// too, and is reported.
func (*Prepared) BelongTo(token, output string) error {
	return errors.Join(showToken(token), takeOutput(output))
}

var errNoRoom = errors.New("no room for a token in the environment")

// showToken makes a token visible in the environment of this process, where a probe
// looks for it.
func showToken(token string) error {
	env, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return err
	}
	mark := []byte(spareVariable + "=" + spareMark + "\x00")
	at := bytes.Index(env, mark)
	text := []byte(TokenVariable + "=" + token)
	if at < 0 || at > 0 && env[at-1] != 0 || len(text) >= len(mark) {
		return errNoRoom
	}
	// Behind it nothing: a probe sees empty entries.
	return overwriteEnviron(int64(at), append(text, make([]byte, len(mark)-len(text))...))
}

// takeOutput makes a run's output file our stdout and stderr.
func takeOutput(path string) error {
	f, err := openOutput(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(dupOnto(f, 1), dupOnto(f, 2))
}
