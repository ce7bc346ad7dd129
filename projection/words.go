package projection

// The words of the contract for statuses, outcomes, origins, lanes, block kinds
// and reasons to end a run. One place, so that no two pieces spell them apart.

// Statuses of a card.
const (
	Triage    = "triage"
	Todo      = "todo"
	Scheduled = "scheduled"
	Ready     = "ready"
	Running   = "running"
	Blocked   = "blocked"
	Review    = "review"
	Done      = "done"
	Archived  = "archived"
)

// Statuses lists every status in the order of a card's life.
var Statuses = []string{Triage, Todo, Scheduled, Ready, Running, Blocked, Review, Done, Archived}

// Outcomes of a run.
const (
	OutCompleted   = "completed"
	OutBlocked     = "blocked"
	OutFailed      = "failed"
	OutDeferred    = "deferred"
	OutCrashed     = "crashed"
	OutRateLimited = "rate_limited"
	OutTimedOut    = "timed_out"
	OutStale       = "stale"
	OutReclaimed   = "reclaimed"
	OutSpawnFailed = "spawn_failed"

	OutReviewRequested  = "review_requested"
	OutChangesRequested = "changes_requested"
)

// Origins of a claim.
const (
	OriginDispatch = "dispatch"
	OriginManual   = "manual"
	OriginWork     = "work" // a pull worker: one process claims and supervises
)

// Lanes: an attempt at the card, or a review of one.
const (
	LaneReady  = "ready"
	LaneReview = "review"
)

// Kinds of blocks.
const (
	NeedsInput = "needs_input"
	Capability = "capability"
	Transient  = "transient"
	Dependency = "dependency"
)

// BlockKinds lists what block --kind takes.
var BlockKinds = []string{NeedsInput, Capability, Transient, Dependency}

// Reasons to end a run's processes.
const (
	EndReclaim        = "reclaim"
	EndCancel         = "cancel"
	EndArchive        = "archive"
	EndReopened       = "reopened"
	EndMaxRuntime     = "max_runtime"
	EndHeartbeatStale = "heartbeat_stale"
	EndTerminalGrace  = "terminal_grace"
	EndOrphaned       = "orphaned"
)

// Causes in an exit record.
const (
	CauseExited       = "exited"
	CauseSignaled     = "signaled"
	CauseTerminated   = "terminated"
	CauseStartFailed  = "start_failed"
	CauseNeverStarted = "never_started"
)

// What exit 0 without an answer means.
const (
	CleanViolation = "violation"
	CleanComplete  = "complete"
	CleanReview    = "review"
)

// Exit codes that mean something to us.
const (
	ExitTryLater = 75 // quota, overload: never counted
	ExitFinal    = 78 // credential, model: can never work
)

// Workspace kinds.
const (
	Scratch  = "scratch"
	Dir      = "dir"    // of one card at a time
	Shared   = "shared" // a directory that several cards may be at work in at once
	Worktree = "worktree"
)
