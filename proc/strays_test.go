package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
)

// TestMarked: every process with a token of the board, whichever run's; not those
// of another board, not ended ones, and never ourselves or an ancestor.
func TestMarked(t *testing.T) {
	w := newFakeWorld()
	w.supervisor()
	w.procs[400].env += TokenVariable + "=board/9\x00"
	w.procs[herePID].env += TokenVariable + "=board/9\x00"
	for pid, env := range map[int]string{
		601: "=board/7/ab\x00", 602: "=boards/7\x00", 603: "=other/7\x00", 604: "=board\x00",
	} {
		w.procs[pid] = &fakeProc{state: 'T', threads: 1, parent: 1, session: pid, start: "8000", env: TokenVariable + env}
	}
	w.procs[605] = &fakeProc{state: 'Z', threads: 1, parent: 1, session: 605, start: "8000", env: TokenVariable + "=board/7\x00"}
	p := &Prober{world: w}
	got, err := p.Marked("board")
	if want := []Marked{{300, "12", "board/12"}, {601, "7", "board/7/ab"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if !p.Stopped(601) || p.Stopped(300) || p.Stopped(999) {
		t.Error("who is stopped is told wrong")
	}
	if len(w.sent) > 0 {
		t.Errorf("signals: %v", w.sent)
	}
	w.pidsErr = syscall.EMFILE
	if _, err := (&Prober{world: w}).Marked("board"); err == nil {
		t.Error("processes that cannot be listed are no answer")
	}
}

func TestFindCommand(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"good": 0o700, "plain": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + dir}
	for name, want := range map[string]error{
		"good": nil, filepath.Join(dir, "good"): nil, "sh": fs.ErrNotExist, filepath.Join(dir, "absent"): fs.ErrNotExist,
		"plain": fs.ErrPermission, filepath.Join(dir, "plain"): fs.ErrPermission, dir: syscall.EISDIR,
	} {
		if _, err := FindCommand(name, "/", env); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}
