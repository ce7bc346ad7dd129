package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
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

// spareVariable stands in the environment of a spare, with room for what takes its
// place there, see ShowToken.
const spareVariable = "KANLOG_SPARE"

// spareRoom is room for any token: a board's id, a run number and a mark.
const spareRoom = 96

// IsSpare tells whether this process was started by StartSpare.
func IsSpare() bool { return os.Getenv(spareVariable) != "" }

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
	env = append(env[:len(env):len(env)], spareVariable+"="+strings.Repeat("-", spareRoom))
	child, err := startProcess(args, env, "/", r, nowhere)
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("spare: %w", err)
	}
	return &Spare{child, w}, nil
}

// Use makes the spare the supervisor of a run; it is used up, also by an error. After
// an error it runs nothing: it was not there any more, or has no whole spec. It has to
// be told its run's environment, and to call [ShowToken] and [TakeOutput].
func (s *Spare) Use(spec []byte) (*Child, error) {
	_ = s.spec.SetWriteDeadline(time.Now().Add(spareTakes))
	_, err := s.spec.Write(spec)
	s.spec.Close() // the end of a whole spec, or of a part of one that cannot be read
	if err != nil {
		s.child.report.Close()
		return nil, fmt.Errorf("spare: %w", err)
	}
	return s.child, nil
}

// End lets the spare end, and waits a moment for that.
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

var errNoRoom = errors.New("no room for a token in the environment")

// ShowToken makes the token of a run visible in the environment of this process, a
// spare, where a probe looks for it, as if it had been started with it. Where that
// fails a probe goes by the run lock.
func ShowToken(token string) error {
	env, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return err
	}
	old := []byte(spareVariable + "=")
	at := 0
	if !bytes.HasPrefix(env, old) {
		if at = bytes.Index(env, append([]byte{0}, old...)) + 1; at == 0 {
			return errNoRoom
		}
	}
	room := bytes.IndexByte(env[at:], 0)
	text := []byte(TokenVariable + "=" + token)
	if room < len(text) {
		return errNoRoom
	}
	// Behind it nothing: empty entries, as a probe reads them.
	return overwriteEnviron(int64(at), append(text, make([]byte, room-len(text))...))
}
