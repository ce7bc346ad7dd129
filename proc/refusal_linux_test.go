package proc

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// The board's no is about the run. Any other reason why nothing was run, a busy
// store or a full disk, is the host's, and must not be charged to the card: the
// record and the report both say which it was.
func TestSuperviseWhoRefused(t *testing.T) {
	t.Parallel()
	for why, host := range map[string]bool{"fenced": false, "busy": true, "no space left on device": true} {
		r := newRun(t, "touch $D/ran")
		r.spec.RefuseWith = why
		rep := r.start()
		if rep.State != Refused || rep.Infrastructure != host {
			t.Errorf("%s: report %+v", why, rep)
		}
		r.awaitEnd()
		if rec := r.record(); rec.Cause != CauseNeverStarted || rec.Infrastructure != host {
			t.Errorf("%s: record %+v", why, rec)
		}
		if r.exists("ran") {
			t.Errorf("%s: it was run", why)
		}
	}
}

// A command that is not there is the card's fault or its profile's, whoever
// finds out.
func TestSuperviseWhatIsNotTheHosts(t *testing.T) {
	t.Parallel()
	r := newRun(t, "")
	r.spec.Argv = []string{"./none"}
	r.mustRegister()
	if rec := r.ended(); rec.Cause != CauseStartFailed || rec.Infrastructure {
		t.Errorf("record %+v", rec)
	}
}

func TestLacksRoom(t *testing.T) {
	for _, e := range []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE} {
		if err := fmt.Errorf("starting: %w", &os.PathError{Op: "open", Path: "x", Err: e}); !LacksRoom(err) {
			t.Errorf("%v is no lack of room", err)
		}
	}
	for _, err := range []error{nil, os.ErrNotExist, syscall.EACCES, syscall.ENOEXEC, syscall.ENOTDIR, ErrFenced} {
		if LacksRoom(err) {
			t.Errorf("%v is a lack of room", err)
		}
	}
}
