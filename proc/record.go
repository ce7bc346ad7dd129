package proc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// The causes of an end.
const (
	CauseExited       = "exited"
	CauseSignaled     = "signaled"
	CauseTerminated   = "terminated"    // the supervisor was told to end before the command had ended
	CauseStartFailed  = "start_failed"  // the command could not be started
	CauseNeverStarted = "never_started" // the run could not be registered
)

// Record says how a run ended. It outlives the supervisor, and any later
// program of any version reads it: the JSON keys are frozen, more may be added.
type Record struct {
	Task  string `json:"task"`
	Run   uint64 `json:"run"`
	Token string `json:"token"`
	Cause string `json:"cause"`
	// ExitCode is that of the command, nil if it was ended by a signal or did
	// not run. It is never made up.
	ExitCode *int `json:"exit_code"`
	// Signal that ended the command, as in "SIGKILL", or "".
	Signal string `json:"signal"`
	// Started and Ended are RFC 3339, UTC, microseconds. Started is "" if the
	// command never was.
	Started    string `json:"started"`
	Ended      string `json:"ended"`
	Error      string `json:"error"`
	CoreDumped bool   `json:"core_dumped,omitempty"`
	// OOMKill says where the kernel's out-of-memory killer ended a process while
	// the command ran, one of the OOM words; "" if it did not, if that is not
	// known, or if the command ended with 0 all the same.
	OOMKill string `json:"oom_kill,omitempty"`
	// Infrastructure: nothing ran because the host refused (no room, no
	// process, a store that could not be written), not because of the command
	// or the board.
	Infrastructure bool `json:"infrastructure,omitempty"`
}

// WriteRecord makes the record durable at path, all of it or nothing: written
// aside, synced, renamed, the directory synced. An older record is replaced,
// unless r says that nothing was run: who was refused has no business to
// overwrite what somebody else ran.
func WriteRecord(path string, r Record) error {
	if r.Cause == CauseNeverStarted {
		if old, _ := ReadRecord(path, r.Token, r.Run); old != nil {
			return nil
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("exit record: %w", err)
	}
	// The name aside holds our number, so that two writers cannot mix.
	aside := path + "." + strconv.Itoa(os.Getpid()) + ".new"
	if err := writeSynced(aside, append(text, '\n')); err != nil {
		os.Remove(aside)
		return fmt.Errorf("exit record: %w", err)
	}
	if err := os.Rename(aside, path); err != nil {
		os.Remove(aside)
		return fmt.Errorf("exit record: %w", err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("exit record: %w", err)
	}
	return nil
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// ReadRecord returns the record at path, or nil and no error if there is none.
// A record of another run or token, one with an unknown cause, and anything
// that is not a record, are errors: they say nothing about this run. Of a run
// that is not known to have registered the token has no mark: "<board>/<run>".
func ReadRecord(path, token string, run uint64) (*Record, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("exit record: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return nil, fmt.Errorf("exit record: %w", err)
	}
	if len(text) > maxRecord {
		return nil, fmt.Errorf("exit record %s is longer than %d bytes", path, maxRecord)
	}
	var r Record
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("exit record %s: %w", path, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("exit record %s: more than one value", path)
	}
	if r.Run != run || !isStartOf(r.Token, token) {
		return nil, fmt.Errorf("exit record %s is that of run %d (token %q), not of run %d", path, r.Run, r.Token, run)
	}
	switch r.Cause {
	case CauseExited, CauseSignaled, CauseTerminated, CauseStartFailed, CauseNeverStarted:
		return &r, nil
	}
	return nil, fmt.Errorf("exit record %s: unknown cause %q", path, r.Cause)
}
