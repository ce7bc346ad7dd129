package proc

import (
	"os"
	"syscall"
	"testing"
)

// A group kill with a wrong number takes down ourselves or everybody.
func TestMayKillGroup(t *testing.T) {
	t.Parallel()
	own := os.Getpid()
	inGroup := map[int]stat{910: {group: 900}}
	tests := []struct {
		name    string
		command int
		found   map[int]stat
		reaped  bool
		want    bool
	}{
		{"not reaped", 900, map[int]stat{900: {group: 900}}, false, true},
		{"not reaped, /proc unreadable", 900, nil, false, true},
		{"reaped, somebody is in the group", 900, inGroup, true, true},
		{"reaped, the group is empty and may be another's", 900, map[int]stat{910: {group: 910}}, true, false},
		{"its own group did not take effect", 900, map[int]stat{900: {group: 800}}, false, false},
		{"mine", 0, inGroup, false, false},
		{"init", 1, inGroup, false, false},
		{"all", -1, inGroup, false, false},
		{"ourselves", own, inGroup, false, false},
		{"our group", syscall.Getpgrp(), inGroup, false, false},
	}
	for _, tt := range tests {
		if got := (newTree(tt.command, own)).mayKillGroup(tt.found, tt.reaped); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestDescendants(t *testing.T) {
	t.Parallel()
	w := newFakeWorld()
	for pid, parent := range map[int]int{600: herePID, 601: 600, 602: 601, 603: 1, 604: 603, 605: 606, 606: 605, 607: 999} {
		w.procs[pid] = &fakeProc{state: 'S', parent: parent, threads: 1, session: pid, start: "9100"}
	}
	w.procs[608] = &fakeProc{statErr: syscall.EIO}
	found := tree{command: 600, self: herePID}.descendants(w)
	for pid := range w.procs {
		_, got := found[pid]
		if want := pid == 600 || pid == 601 || pid == 602; got != want {
			t.Errorf("process %d: %v", pid, got)
		}
	}
}
