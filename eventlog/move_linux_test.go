package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The same for who writes a store aside: with the lock of a board that was moved he
// would write into the file of somebody else.
func TestRebuilderOfAMovedBoardTakesTheNewLock(t *testing.T) {
	f := newFile(t)
	home := filepath.Dir(filepath.Dir(f.dir))
	moved := f.dir + "2"
	old, err := f.turn()
	if err != nil {
		t.Fatal(err)
	}
	// While somebody writes aside, the board stays where it is.
	impatient := Open(f.dir, Options{LockTimeout: time.Millisecond})
	if err := impatient.Move(moved, func(*Tx) error { return nil }); !errors.Is(err, ErrBusy) {
		t.Errorf("moved beside a rebuild: %v", err)
	}
	got := make(chan error)
	go func() {
		late, err := f.turn()
		if err == nil {
			var ok bool
			if ok, err = late.InPlace(); !ok && err == nil {
				err = errors.New("it is the lock of the moved board")
			}
			late.Unlock()
		}
		got <- err
	}()
	for waiting := false; !waiting; time.Sleep(time.Millisecond) {
		select {
		case err := <-got:
			t.Fatalf("it did not wait: %v", err)
		default:
			waiting = opened(t, filepath.Join(f.dir, asideLockName)) == 2
		}
	}
	if err := os.Rename(f.dir, moved); err != nil {
		t.Fatal(err)
	}
	if created, err := Create(home, "default", [16]byte{7}, 1, Options{}); err != nil || !created {
		t.Fatal(created, err)
	}
	old.Unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// opened is how often this process has the file open.
func opened(t *testing.T, path string) (n int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && to == path {
			n++
		}
	}
	return n
}
