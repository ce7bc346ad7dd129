package projection

import (
	"bytes"
	"fmt"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"kanlog/eventlog"
)

// Rows are a cache of the log: they are encoded as arrays, and a changed field
// means a new tables format and a rebuild, never an upgrade in place.

// Task is a card as it is now. Its body is kept apart (View.Body), so that a
// heartbeat does not rewrite it.
type Task struct {
	//lint:ignore U1000 msgpack reads its tag through reflection
	_msgpack struct{} `msgpack:",as_array"`

	ID                string
	Title             string
	Assignee          string
	Status            string
	Priority          int64
	Tenant            string
	Tags              []string
	Key               string
	CreatedAt         eventlog.Time
	CreatedBy         string // the actor of its created event
	CreatedSeq        uint64 // age: lower is older
	StartedAt         eventlog.Time
	CompletedAt       eventlog.Time
	MaxRuntimeSeconds int64 // 0: the profile decides, -1: no limit
	MaxRetries        int64
	WorkspaceKind     string
	WorkspacePath     string
	Branch            string
	Result            string
	LastError         string
	NotBefore         eventlog.Time

	// CurrentRun is the open run, 0 if there is none.
	CurrentRun uint64
	// Worker is the run that has worker evidence on record: the open run once
	// its supervisor registered, or a closed run whose process may still live
	// (retained). While it is set no run may be opened.
	Worker uint64
	// LastRun is the newest run ever.
	LastRun uint64

	// A ready card is not started from HoldSince until HoldUntil; see heldAt.
	HoldSince  eventlog.Time
	HoldUntil  eventlog.Time
	HoldReason string

	BlockKind   string
	BlockReason string
	// ParkedLimit: a plain gave_up holds the card, and a failure limit above this
	// frees it; 0 for a block that only an operator lifts.
	ParkedLimit int64

	// FreshFrom: runs up to this number do not count toward budgets.
	FreshFrom uint64

	// ReviewedRun is the run whose work is under review, 0 if none is: until the
	// review has ended the card goes back to the lane review and not to ready.
	ReviewedRun uint64
	// Reviewer is the profile that reviews, empty for a person; it stays for the
	// next round.
	Reviewer string

	// WorkerBlockKind is why a worker blocked the card last, and WorkerBlocks how
	// often in a row it was that, over all unblocks.
	WorkerBlockKind string
	WorkerBlocks    int64
}

// Run is one attempt at a card.
type Run struct {
	//lint:ignore U1000 msgpack reads its tag through reflection
	_msgpack struct{} `msgpack:",as_array"`

	ID        uint64
	Task      string
	Assignee  string
	Lane      string
	Origin    string
	Holder    string
	Outcome   string // empty while the run is open
	StartedAt eventlog.Time
	EndedAt   eventlog.Time

	Claimer           eventlog.Process
	Deadline          eventlog.Time
	TTLSeconds        int64
	OnCleanExit       string
	MaxRuntimeSeconds int64
	// Reviewer is who reviews its work by the settings, Reviews the run that it
	// reviews itself.
	Reviewer string
	Reviews  uint64

	// HasWorker: evidence of a worker is on record. It stays after the run was
	// closed until the process is proven gone.
	HasWorker   bool
	SpawnedAt   eventlog.Time
	PID         int
	Fingerprint string
	Machine     string
	PIDNS       string
	OutputInode string
	Token       string
	Workspace   string

	ClaimExpires  eventlog.Time
	LastHeartbeat eventlog.Time
	LastNote      string

	// EndRequestedAt is when ending the run's processes was decided, 0 if not.
	EndRequestedAt eventlog.Time
	EndReason      string
	EndDetail      string
	// DeferredReason is the last reclaim_deferred, DeferredReasons are all of
	// them, so that each is written once: dispatchers in two containers see one
	// process in two ways, and would write in turn for ever.
	DeferredReason  string
	DeferredReasons []string

	// Created is how many cards its worker has made.
	Created int64

	ExitCode *int64
	Signal   string
	Error    string
	Summary  string
	Result   string
	Metadata []byte

	// How the end counts toward budgets.
	Counted     bool
	Violation   bool
	Interrupted bool
}

// Open tells whether the run still owns its card.
func (r *Run) Open() bool { return r.Outcome == "" }

// Lease is how long a claim of this run lasts from now on.
func (r *Run) Lease() time.Duration { return time.Duration(r.TTLSeconds) * time.Second }

// Comment is a note on a card.
type Comment struct {
	//lint:ignore U1000 msgpack reads its tag through reflection
	_msgpack struct{} `msgpack:",as_array"`

	Seq    uint64
	Task   string
	Author string
	Text   string
	At     eventlog.Time
}

func encodeRow(row any) []byte {
	var buf bytes.Buffer
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(&buf)
	enc.UseCompactInts(true)
	if err := enc.Encode(row); err != nil {
		panic(fmt.Sprintf("a row that cannot be encoded is a bug: %v", err))
	}
	return buf.Bytes()
}

func decodeRow(b []byte, row any) error {
	if err := msgpack.Unmarshal(b, row); err != nil {
		return inconsistent("a table row cannot be read (%v); kanlog rebuild makes the tables anew from the log", err)
	}
	return nil
}
