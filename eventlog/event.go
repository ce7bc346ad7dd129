// Package eventlog holds what happened: typed events in numbered, hash-chained
// commits, appended to one bbolt file per board.
//
// It may not know what an event means for a card (that is package projection),
// read a clock, or draw random numbers. The disk is its only contact with the
// world.
package eventlog

import (
	"encoding/json"
	"fmt"
	"time"
)

// Time is a moment in microseconds since the Unix epoch, UTC; 0 means absent.
// It is what some clock said: times in a log may go back, so order is by number
// only.
type Time int64

// TimeOf converts a clock reading, cut to microseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Std returns t as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)).UTC() }

// Add returns t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Microseconds()) }

// Since returns how much time has passed from then until t. A moment in the
// future counts as just now: clocks go back, and no rule may wait for ever
// because of it.
func (t Time) Since(then Time) time.Duration {
	return max(0, time.Duration(t-then)*time.Microsecond)
}

const timeForm = "2006-01-02T15:04:05.999999Z"

func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return t.Std().Format(timeForm)
}

// MarshalJSON prints RFC 3339 in UTC with up to six decimals, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(t.String())
}

// UnmarshalJSON reads what MarshalJSON prints.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = 0
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	u, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return err
	}
	*t = TimeOf(u)
	return nil
}

// Commit is one entry of the log: one decision with all its events. A reader
// sees all of a decision or none of it.
type Commit struct {
	// Number is 1, 2, 3, ... without gaps. Set by Append.
	Number uint64
	// Seq is the number of the first event; events are numbered across
	// commits without gaps, the first of a board is 1. Set by Append.
	Seq uint64
	// At is what the deciding process's clock said.
	At Time
	// Actor is who decided: operator:<user>, worker:<task>/<run>,
	// dispatcher:<host>/<instance> or supervisor:<task>/<run>.
	Actor string
	// Events has at least one element.
	Events []Event
	// Hash is SHA-256 over the previous commit's hash and this commit's bytes.
	// Set by Append.
	Hash [32]byte
}

// Event is a fact about one card. Its number is Commit.Seq + its index.
type Event struct {
	// Task is the id of the card, empty only for facts about the whole board.
	Task string
	// Run is the run it belongs to, 0 if none. The event that opens a run
	// (claimed, or an answer for a card nobody claimed) holds 0 here: the run's
	// id is that event's own number.
	Run uint64
	// Data is a pointer to one of the payload types of kinds.go.
	Data Payload
}

// Kind returns the name of the event's kind.
func (e Event) Kind() Kind { return e.Data.Kind() }

// Kind names what happened, in the past tense.
type Kind string

// Payload is the content of an event, one Go type per kind.
type Payload interface{ Kind() Kind }

// Head is the end of the log.
type Head struct {
	// Commit is the number of the last commit, 0 in an empty log.
	Commit uint64
	// Seq is the number of the last event, 0 in an empty log.
	Seq uint64
	// Hash is the last commit's hash; in an empty log the hash of the board's
	// uuid, which starts the chain.
	Hash [32]byte
}

// Log is an append-only sequence of commits. Package logtest holds its contract
// as a test that every backend runs.
type Log interface {
	// Head returns the end of the log.
	Head() (Head, error)
	// Append stores c behind commit number after and returns it with Number,
	// Seq and Hash set. If the log's last commit is not after, it stores
	// nothing and returns ErrConflict. When it returns nil the commit is
	// durable; on ErrUnknownOutcome it may or may not be; on any other error it
	// is not in the log.
	Append(after uint64, c Commit) (Commit, error)
	// Read calls fn for each commit from number from on, in order, until the
	// end or until fn returns an error, which it returns. Every commit is
	// checked against its hash before fn sees it.
	Read(from uint64, fn func(Commit) error) error
}

func (c Commit) String() string {
	return fmt.Sprintf("commit %d (%d events from %d, %s)", c.Number, len(c.Events), c.Seq, c.Actor)
}

// RunOf is the run that event i of a commit is about, which may be the one that it
// opens: that has the event's own number. 0 if it is about none.
func (c Commit) RunOf(i int) uint64 {
	e := c.Events[i]
	switch e.Data.(type) {
	case *Claimed, *Completed, *ReviewRequested, *ChangesRequested:
		if e.Run == 0 {
			return c.Seq + uint64(i)
		}
	}
	return e.Run
}
