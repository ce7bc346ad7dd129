package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// A supervisor that gave up on a busy store would leave a card running that has
// ended, until the next tick; one that did not give up on a store that is gone
// would try for ever.
func TestWhenASupervisorGivesUpBooking(t *testing.T) {
	home := t.TempDir()
	if _, err := eventlog.Create(home, "default", [16]byte{7}, 1, eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	dir := eventlog.BoardDir(home, "default")
	book := func(dir string) error {
		b := &supervisedBoard{
			spec:  superviseSpec{Run: 5},
			store: projection.Open(dir, eventlog.Options{LockTimeout: 20 * time.Millisecond}),
			actor: "supervisor:t_1/5", now: time.Now,
		}
		return b.Book(proc.Record{Run: 5, Cause: proc.CauseExited})
	}
	if err := book(dir); !errors.Is(err, proc.ErrGiveUp) || !errors.Is(err, projection.ErrNotFound) {
		t.Errorf("a run that is not there: %v, want it given up", err)
	}
	if err := book(eventlog.BoardDir(home, "none")); !errors.Is(err, proc.ErrGiveUp) || !errors.Is(err, eventlog.ErrNoBoard) {
		t.Errorf("a board that is not there: %v, want it given up", err)
	}
	lock, err := eventlog.TryLock(filepath.Join(dir, "board.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	if err := book(dir); !errors.Is(err, eventlog.ErrBusy) || errors.Is(err, proc.ErrGiveUp) {
		t.Errorf("a busy store: %v, want another try", err)
	}
}

// A record that the disk does not give out just now may be there and say
// otherwise than "none": it is not booked without.
func TestARecordThatTheDiskDoesNotGiveOut(t *testing.T) {
	w := &world{a: &app{boardDir: t.TempDir()}, uuid: [16]byte{7}}
	r := &projection.Run{ID: 5, Task: "t_1"}
	if rec, err := w.Record(r); rec != nil || err != nil {
		t.Fatalf("no record: %v, %v", rec, err)
	}
	path := w.a.files().record(r.Task, r.ID)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	// Nothing is mapped at its beginning: reading there is EIO, as from a bad
	// sector.
	if err := os.Symlink("/proc/self/mem", path); err != nil {
		t.Fatal(err)
	}
	if rec, err := w.Record(r); rec != nil || !errors.Is(err, tick.ErrInfrastructure) {
		t.Errorf("a bad sector: %v, %v; want it read again later", rec, err)
	}
}
