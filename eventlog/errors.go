package eventlog

import (
	"errors"
	"fmt"
)

// What can be wrong with a store or with an attempt to use it. Callers match
// with errors.Is; only the program turns them into words and exit codes.
var (
	// ErrConflict: the log has moved on since the commit the caller decided on.
	ErrConflict = errors.New("the log has moved on")
	// ErrUnknownOutcome: a commit failed where it may already have reached the
	// disk. The process must not use the store again.
	ErrUnknownOutcome = errors.New("the commit may or may not be recorded; look before you repeat")
	// ErrDiskFull: there was no room for the commit; nothing was recorded.
	ErrDiskFull = errors.New("no space left on the device; nothing was recorded")
	// ErrNotSynced: a copy is whole and has its name, but may be gone after a crash
	// of the machine.
	ErrNotSynced = errors.New("it is there and whole, but a crash of the machine may take that back")
	// ErrNotPlain: a link, a device or the like stands where a file was to be put.
	ErrNotPlain = errors.New("no plain file")
	// ErrBusy: the board's lock could not be had in time. A *BusyError says
	// who holds it.
	ErrBusy = errors.New("busy")
	// ErrNoBoard: there is no board here (and no trace of one).
	ErrNoBoard = errors.New("no such board")
	// ErrRefused: the store is missing, damaged, foreign, of a newer format or
	// on a file system that is not local; it was not touched. A *RefusedError
	// says which.
	ErrRefused = errors.New("store refused")
)

// ErrReplaced is no damage: it is found between two transactions, and the store that is
// there now may be whole.
var ErrReplaced = errors.New("another store came to its place meanwhile; look again")

// BusyError names who holds a lock.
type BusyError struct {
	Path   string // the lock file
	Holder string // "pid 12 (kanlog dispatch)", or "" if it cannot be told
}

func (e *BusyError) Error() string {
	if e.Holder == "" {
		return "busy: " + e.Path + " is held by a process that cannot be named"
	}
	return fmt.Sprintf("busy: %s is held by %s", e.Path, e.Holder)
}

// Is makes a BusyError match ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// RefusedKind says why a store was refused.
type RefusedKind string

// The reasons for a refusal.
const (
	Missing RefusedKind = "missing" // the board is there, its store is not
	Empty   RefusedKind = "empty"   // 0 bytes
	Cut     RefusedKind = "cut"     // shorter than its own pages say
	Foreign RefusedKind = "foreign" // another program's file, or another board's store
	Damaged RefusedKind = "damaged" // a check failed
	Newer   RefusedKind = "newer"   // written by a newer kanlog
	Network RefusedKind = "network" // on a network or FUSE file system
)

// RefusedError says which store was refused and why.
type RefusedError struct {
	Path   string
	Kind   RefusedKind
	Detail string // what was found and what would be right
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("store refused (%s): %s: %s", e.Kind, e.Path, e.Detail)
}

// Is makes a RefusedError match ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }
