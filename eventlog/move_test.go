package eventlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestMove(t *testing.T) {
	f := newFile(t)
	mustAppend(t, f, note("ann", 1))
	boards := filepath.Dir(f.dir)
	to := filepath.Join(boards, "_archived", "default-1")
	yes := func(*Tx) error { return nil }

	no := errors.New("no")
	if err := f.Move(to, func(*Tx) error { return no }); err != no {
		t.Errorf("%v, want what check said", err)
	}
	// An empty directory and a file are something too.
	taken := filepath.Join(boards, "taken")
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{taken, filepath.Join(boards, "..", "home.lock")} {
		if err := f.Move(path, func(*Tx) error { t.Error("asked although the name is taken"); return nil }); !errors.Is(err, fs.ErrExist) {
			t.Errorf("onto %s: %v", path, err)
		}
	}
	mustAppend(t, f, note("ann", 1))

	if err := f.Move(to, yes); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Head(); !errors.Is(err, ErrNoBoard) {
		t.Errorf("at the old place: %v", err)
	}
	if err := f.Move(taken+"2", yes); !errors.Is(err, ErrNoBoard) {
		t.Errorf("moved twice: %v", err)
	}
	h, err := Open(to, Options{}).Head()
	if err != nil || h.Commit != 2 {
		t.Errorf("at the new place: %+v %v", h, err)
	}
}

// Who waited for the lock of a board that was moved away must not use the board
// that came to its place without that board's own lock.
func TestWaiterOfAMovedBoardTakesTheNewLock(t *testing.T) {
	f := newFile(t)
	home := filepath.Dir(filepath.Dir(f.dir))
	path := filepath.Join(f.dir, lockName)
	old, err := LockWait(path, DefaultLockTimeout)
	if err != nil {
		t.Fatal(err)
	}
	waiter, err := openLock(path) // as it is open in a process that waits
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(f.dir, f.dir+"2"); err != nil {
		t.Fatal(err)
	}
	if ok, err := old.InPlace(); ok || err != nil {
		t.Errorf("in place although nothing is there: %v %v", ok, err)
	}
	old.Unlock()
	if created, err := Create(home, "default", [16]byte{7}, 1, Options{}); err != nil || !created {
		t.Fatal(created, err)
	}
	late, err := lockWait(waiter, path, DefaultLockTimeout)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := late.InPlace(); ok || err != nil {
		t.Errorf("the lock of the moved board passes for that of the new one: %v %v", ok, err)
	}
	late.Unlock()
	fresh, err := LockWait(path, DefaultLockTimeout)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := fresh.InPlace(); !ok || err != nil {
		t.Errorf("the lock of the new board: %v %v", ok, err)
	}
	fresh.Unlock()
}

func TestReplaceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "current")
	if err := ReplaceFile(path, nil); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
	for _, text := range []string{"a longer text\n", "short\n"} {
		// Left by a writer that was killed.
		if err := os.WriteFile(path+".new", []byte("half of a much longer text"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := ReplaceFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := string(mustBytes(t, path)); got != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
	if err := ReplaceFile(path, nil); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
