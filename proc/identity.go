package proc

import (
	"errors"
	"strings"
)

// Unverified is the fingerprint of a process whose own could not be captured.
// It is never left out instead: a run without a fingerprint is of another kind
// (recorded by something that knew none).
const Unverified = "unverified"

// TokenVariable is the name under which the token of a run stands in the
// environment of everything that the run starts. Every byte of the token
// counts, so it is looked for as a whole "NAME=value" string.
const TokenVariable = "KANLOG_TOKEN"

// Identity names one process beyond its number, so that a later process, also
// one after a reboot or in another container, can tell it from whoever got the
// number next. Every field is opaque text; compare nothing but equality.
type Identity struct {
	PID int
	// Fingerprint is "<boot id>:<start tick of PID 1>|<start tick>",
	// [Unverified], or "" if it was recorded without any. The tick of PID 1 is
	// "?" where that process is hidden from us.
	Fingerprint string
	// Machine is the machine id, or "host:<name>" where there is none.
	Machine string
	// PIDNS is the inode of the PID namespace.
	PIDNS string
	// OutputInode is "<device>:<inode>" of the run's output file, the file
	// that carries the run lock. Empty for a claimer.
	OutputInode string
	// OutputPath is where that file was.
	OutputPath string
	// Token is the token of the run, see [NewToken]. Empty for a claimer.
	Token string
	// Guest says that it did not make its session, but is in that of a terminal:
	// its number is no session's, and once it is gone it may become that of a
	// stranger's.
	Guest bool
}

// Self returns the identity of the calling process, without output and token.
// What cannot be captured never fails: the fingerprint is [Unverified] then,
// and such a process is later held, never signalled, never thought dead while
// its number is in use.
func Self() Identity { return identify(newWorld()) }

func identify(w world) Identity {
	id := Identity{PID: w.self()}
	id.Machine, _ = w.machine()
	id.PIDNS, _ = w.pidNS()
	// A reading that fails in passing must not leave a run that nobody may ever
	// end.
	for range captureTries {
		if id.Fingerprint = capture(w, id.PID); id.Fingerprint != Unverified {
			break
		}
	}
	return id
}

// capture returns the fingerprint of a process, Unverified if it cannot be told.
func capture(w world, pid int) string {
	boot, err := w.bootID()
	if err != nil || boot == "" {
		return Unverified
	}
	first, err := startOfFirst(w)
	if err != nil {
		return Unverified
	}
	line, err := w.stat(pid)
	if err != nil {
		return Unverified
	}
	s, err := parseStat(line)
	if err != nil {
		return Unverified
	}
	return boot + ":" + first + "|" + s.start
}

// hidden stands for the start tick of a PID 1 that we may not see.
const hidden = "?"

// startOfFirst returns the start tick of PID 1, which tells a PID namespace
// from a later one that got the same inode.
func startOfFirst(w world) (string, error) {
	line, err := w.stat(1)
	if isHidden(err) {
		return hidden, nil
	}
	if err != nil {
		return "", err
	}
	s, err := parseStat(line)
	return s.start, err
}

// fingerprint is a taken-apart Identity.Fingerprint; known is false for
// "unverified" and for text that is none.
type fingerprint struct {
	boot, first, start string
	known              bool
}

func parseFingerprint(text string) fingerprint {
	epoch, start, ok := strings.Cut(text, "|")
	if !ok {
		return fingerprint{}
	}
	boot, first, ok := strings.Cut(epoch, ":")
	if !ok || boot == "" || first == "" || start == "" {
		return fingerprint{}
	}
	return fingerprint{boot: boot, first: first, start: start, known: true}
}

// errNoLeader says that a number belongs to a thread of some process, hence
// that no process has it.
var errNoLeader = errors.New("the number is that of a thread")
