package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A store was put in its place by a rename that may not be durable: what is
// appended to it would go with it, so this process must not append.
func TestRebuildWhoseNameMayBeLost(t *testing.T) {
	f := newFile(t)
	want := mustAppend(t, f, note("ann", 1))
	away := f.dir + ".away"
	old := atStep
	t.Cleanup(func() { atStep = old })
	atStep = func(step string) {
		// The directory cannot be opened to be synced.
		if step == "store renamed" {
			if err := os.Rename(f.dir, away); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := f.Rebuild(foldAuthors)
	if !errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("rebuild: %v, want ErrUnknownOutcome", err)
	}
	if err := os.Rename(away, f.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Append(want.Number, note("ann", 1)); !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("append after it: %v, want ErrUnknownOutcome", err)
	}
}

// The kernel lets go of a descriptor whatever close says; the next one of this
// process must get its turn.
func TestUnlockWhoseCloseFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	l, err := LockWait(path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Close(int(l.file.Fd())); err != nil {
		t.Fatal(err)
	}
	l.Unlock()
	again, err := LockWait(path, time.Second)
	if err != nil {
		t.Fatalf("after a close that failed: %v", err)
	}
	again.Unlock()
	again.Unlock()
}

// A store that cannot be read is not a damaged one: nobody should put a backup
// in its place for that.
func TestUnreadableIsNotDamaged(t *testing.T) {
	f := newFile(t)
	file, err := os.OpenFile(f.store(), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := checkPages(file); !errors.Is(err, syscall.EBADF) || errors.Is(err, ErrRefused) {
		t.Errorf("%v, want what reading it says, and no refusal", err)
	}
	if _, _, err := readFreelist(file, f.store(), metaPage{pageSize: 4096, freelist: 2, high: 4}); !errors.Is(err, syscall.EBADF) || errors.Is(err, ErrRefused) {
		t.Errorf("freelist: %v, want what reading it says, and no refusal", err)
	}
}

// A board whose last name may not be durable: the maker says that it does not
// know, and whoever makes it again syncs it.
func TestCreateWhoseNameMayBeLost(t *testing.T) {
	home := t.TempDir()
	dir := BoardDir(home, "default")
	away := dir + ".away"
	old := atStep
	t.Cleanup(func() { atStep = old })
	atStep = func(step string) {
		if step == "runs renamed" {
			if err := os.Rename(dir, away); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Create(home, "default", testUUID, 1, Options{}); !errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("create: %v, want ErrUnknownOutcome", err)
	}
	atStep = old
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	if created, err := Create(home, "default", testUUID, 1, Options{}); err != nil || created {
		t.Errorf("create again: %v, %v; want it found", created, err)
	}
}
