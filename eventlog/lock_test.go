package eventlog

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func busyNaming(t *testing.T, err error, pid int) {
	t.Helper()
	var b *BusyError
	if !errors.As(err, &b) || !errors.Is(err, ErrBusy) {
		t.Fatalf("%v, want a BusyError", err)
	}
	if want := fmt.Sprintf("pid %d (", pid); holderKnown && !strings.HasPrefix(b.Holder, want) {
		t.Errorf("holder %q, want %q", b.Holder, want)
	}
}

func TestBusyNamesHolder(t *testing.T) {
	f := newFile(t)
	for _, path := range []string{filepath.Join(f.dir, lockName), filepath.Join(f.dir, "dispatch.lock")} {
		cmd := child("hold", path)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
			t.Fatalf("child said %q, %v", line, err)
		}
		_, err = TryLock(path)
		busyNaming(t, err, cmd.Process.Pid)
		_, err = LockWait(path, 10*time.Millisecond)
		busyNaming(t, err, cmd.Process.Pid)
		if filepath.Base(path) == lockName {
			_, err = Open(f.dir, impatient).Head()
			busyNaming(t, err, cmd.Process.Pid)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		l, err := LockWait(path, DefaultLockTimeout)
		if err != nil {
			t.Fatal(err)
		}
		l.Unlock()
	}
}

// Waiters that gave up get the lock later, all the same, and must not keep it.
func TestAbandonedWaiterReleases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	held, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, err := LockWait(path, time.Millisecond)
		busyNaming(t, err, os.Getpid())
	}
	held.Unlock()
	for range 5 {
		l, err := LockWait(path, DefaultLockTimeout)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := TryLock(path); !errors.Is(err, ErrBusy) {
			t.Errorf("a second lock beside a held one: %v", err)
		}
		l.Unlock()
		l.Unlock()
	}
}

func TestLockInfo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	l, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"a longer text\n", "short\n"} {
		if err := l.SetInfo(s); err != nil {
			t.Fatal(err)
		}
		if got := string(mustBytes(t, path)); got != s {
			t.Errorf("info %q, want %q", got, s)
		}
	}
	l.Unlock()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatalf("the lock file is gone: %v", err)
	}
	if fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", fi.Mode())
	}
}

func TestNestedEndsWithBusy(t *testing.T) {
	f := newFile(t)
	inner := Open(f.dir, impatient)
	for name, outer := range map[string]func(func(*Tx) error) error{"view": f.View, "update": f.Update} {
		if err := outer(func(*Tx) error {
			_, err := inner.Head()
			busyNaming(t, err, os.Getpid())
			_, err = inner.Append(0, note("ann", 1))
			busyNaming(t, err, os.Getpid())
			return nil
		}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	mustAppend(t, f, note("ann", 1))
}
