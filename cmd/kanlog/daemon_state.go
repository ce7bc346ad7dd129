package main

import (
	"encoding/json"
	"os"
	"time"

	"kanlog/eventlog"
	"kanlog/proc"
)

// daemonState is what a daemon writes into its lock for others: who it is, and that
// it is at work. Nothing is decided by it but whom stop signals, and that only if
// the process is proven to be this one.
type daemonState struct {
	PID         int           `json:"pid"`
	Fingerprint string        `json:"fingerprint"`
	Machine     string        `json:"machine"`
	PIDNS       string        `json:"pidns"`
	Since       eventlog.Time `json:"since"`
	// Looked is when it last ended a tick, Next when the next one is due at the
	// latest.
	Looked   eventlog.Time `json:"looked_at"`
	Next     eventlog.Time `json:"next_at"`
	Interval time.Duration `json:"interval"`
	Version  string        `json:"version"`
	// AllBoards: the process is the daemon of the home's other boards too.
	AllBoards bool `json:"all_boards"`
}

func newDaemonState(now eventlog.Time) daemonState {
	id := proc.Self()
	return daemonState{PID: id.PID, Fingerprint: id.Fingerprint, Machine: id.Machine, PIDNS: id.PIDNS, Since: now, Version: version()}
}

func (s *daemonState) identity() proc.Identity {
	return proc.Identity{PID: s.PID, Fingerprint: s.Fingerprint, Machine: s.Machine, PIDNS: s.PIDNS}
}

// tell writes down that a tick has ended. What cannot be written nobody misses but
// who asks whether the daemon is at work.
func (s *daemonState) tell(lock *eventlog.Lock, now, next eventlog.Time) {
	s.Looked, s.Next = now, next
	if text, err := json.Marshal(s); err == nil {
		_ = lock.SetInfo(string(text) + "\n")
	}
}

// silentAfter is how long a daemon may be late before it is said to be stalled:
// a tick waits for the supervisors that it started.
const silentAfter = time.Minute

// stalled tells for how long a daemon has been silent beyond what it announced.
func (s *daemonState) stalled(now eventlog.Time) (late time.Duration, yes bool) {
	late = now.Since(s.Next)
	return late, s.Next != 0 && late >= silentAfter
}

// daemonOf is the daemon of the chosen board, nil if none is seen. The lock is not
// asked for: a daemon that comes at that moment would not get it. Without the
// daemon's own word (it has just begun) only its number is known.
func (a *app) daemonOf() *daemonState {
	path := a.files().daemonLock()
	pid, _ := eventlog.Holder(path)
	if pid == 0 {
		return nil
	}
	s := &daemonState{}
	if text, err := os.ReadFile(path); err != nil || json.Unmarshal(text, s) != nil || s.PID != pid {
		s = &daemonState{PID: pid} // half written, or the word of one before it
	}
	return s
}
