package eventlog

import "encoding/json"

// New event kind, or a new field on an old one:
//   1. the struct here, with a doc comment and tags; append fields, never
//      reorder, rename or reuse one
//   2. its lines in newPayload, Kinds and the Kind methods below
//   3. raise Format in format.go: an older program must refuse, not skip
//   4. the case in projection/fold.go and, if it opens or closes a run, the
//      invariant in projection/verify.go
//   5. a store of the new format under testdata/formats
//   6. the state diagram in docs/states.md
//
// Durations are seconds or microseconds as the name says; statuses, outcomes
// and block kinds are the words of the contract.

// The kinds of events.
const (
	KindCreated              Kind = "created"
	KindClaimed              Kind = "claimed"
	KindSpawned              Kind = "spawned"
	KindExited               Kind = "exited"
	KindHeartbeat            Kind = "heartbeat"
	KindClaimExtended        Kind = "claim_extended"
	KindReclaimed            Kind = "reclaimed"
	KindReclaimDeferred      Kind = "reclaim_deferred"
	KindTerminationRequested Kind = "termination_requested"
	KindCrashed              Kind = "crashed"
	KindProtocolViolation    Kind = "protocol_violation"
	KindRateLimited          Kind = "rate_limited"
	KindTimedOut             Kind = "timed_out"
	KindStale                Kind = "stale"
	KindSpawnFailed          Kind = "spawn_failed"
	KindGaveUp               Kind = "gave_up"
	KindCompleted            Kind = "completed"
	KindFailed               Kind = "failed"
	KindDeferred             Kind = "deferred"
	KindBlocked              Kind = "blocked"
	KindUnblocked            Kind = "unblocked"
	KindAssigned             Kind = "assigned"
	KindPromoted             Kind = "promoted"
	KindCommented            Kind = "commented"
	KindReviewRequested      Kind = "review_requested"
	KindTerminalWorkerReaped Kind = "terminal_worker_reaped"
	KindFenced               Kind = "fenced"
	KindArchived             Kind = "archived"
)

// newPayload returns an empty payload of a kind, or nil if the kind is unknown.
func newPayload(k Kind) Payload {
	switch k {
	case KindCreated:
		return new(Created)
	case KindClaimed:
		return new(Claimed)
	case KindSpawned:
		return new(Spawned)
	case KindExited:
		return new(Exited)
	case KindHeartbeat:
		return new(Heartbeat)
	case KindClaimExtended:
		return new(ClaimExtended)
	case KindReclaimed:
		return new(Reclaimed)
	case KindReclaimDeferred:
		return new(ReclaimDeferred)
	case KindTerminationRequested:
		return new(TerminationRequested)
	case KindCrashed:
		return new(Crashed)
	case KindProtocolViolation:
		return new(ProtocolViolation)
	case KindRateLimited:
		return new(RateLimited)
	case KindTimedOut:
		return new(TimedOut)
	case KindStale:
		return new(Stale)
	case KindSpawnFailed:
		return new(SpawnFailed)
	case KindGaveUp:
		return new(GaveUp)
	case KindCompleted:
		return new(Completed)
	case KindFailed:
		return new(Failed)
	case KindDeferred:
		return new(Deferred)
	case KindBlocked:
		return new(Blocked)
	case KindUnblocked:
		return new(Unblocked)
	case KindAssigned:
		return new(Assigned)
	case KindPromoted:
		return new(Promoted)
	case KindCommented:
		return new(Commented)
	case KindReviewRequested:
		return new(ReviewRequested)
	case KindTerminalWorkerReaped:
		return new(TerminalWorkerReaped)
	case KindFenced:
		return new(Fenced)
	case KindArchived:
		return new(Archived)
	}
	return nil
}

// Created: a card was put on the board.
type Created struct {
	Title    string   `msgpack:"title" json:"title"`
	Body     string   `msgpack:"body,omitempty" json:"body,omitempty"`
	Assignee string   `msgpack:"assignee,omitempty" json:"assignee,omitempty"`
	Status   string   `msgpack:"status" json:"status"`
	Priority int64    `msgpack:"priority,omitempty" json:"priority,omitempty"`
	Tenant   string   `msgpack:"tenant,omitempty" json:"tenant,omitempty"`
	Tags     []string `msgpack:"tags,omitempty" json:"tags,omitempty"`
	Parents  []string `msgpack:"parents,omitempty" json:"parents,omitempty"`
	Key      string   `msgpack:"key,omitempty" json:"key,omitempty"`
	// MaxRuntimeSeconds is 0 if the profile decides, -1 for no limit.
	MaxRuntimeSeconds int64  `msgpack:"max_runtime_seconds,omitempty" json:"max_runtime_seconds,omitempty"`
	MaxRetries        int64  `msgpack:"max_retries,omitempty" json:"max_retries,omitempty"`
	WorkspaceKind     string `msgpack:"workspace_kind" json:"workspace_kind"`
	WorkspacePath     string `msgpack:"workspace_path,omitempty" json:"workspace_path,omitempty"`
	Branch            string `msgpack:"branch,omitempty" json:"branch,omitempty"`
	NotBefore         Time   `msgpack:"not_before,omitempty" json:"not_before,omitzero"`
	BlockReason       string `msgpack:"block_reason,omitempty" json:"block_reason,omitempty"`
}

// Process is the identity of one process, as its recorder saw it.
type Process struct {
	PID int `msgpack:"pid" json:"pid"`
	// Fingerprint is "<boot id>:<start tick of PID 1>|<start tick>", or
	// "unverified" if it could not be captured; empty only in a store that was
	// made by hand.
	Fingerprint string `msgpack:"fingerprint" json:"fingerprint"`
	Machine     string `msgpack:"machine,omitempty" json:"machine,omitempty"`
	// PIDNS is the inode of the PID namespace, as a string.
	PIDNS string `msgpack:"pidns,omitempty" json:"pidns,omitempty"`
}

// Claimed opens a run: exclusive ownership of the card until the run ends.
type Claimed struct {
	// Origin is dispatch (a tick will start a supervisor), work (the claimer
	// supervises) or manual (no process, only the lease).
	Origin   string `msgpack:"origin" json:"origin"`
	Lane     string `msgpack:"lane" json:"lane"`
	Assignee string `msgpack:"assignee,omitempty" json:"assignee,omitempty"`
	// Holder is the name a manual claimer gave.
	Holder string `msgpack:"holder,omitempty" json:"holder,omitempty"`
	// Deadline is the end of the lease of a manual claim; for a dispatched one
	// the moment by which its supervisor must have registered.
	Deadline   Time    `msgpack:"deadline" json:"deadline"`
	TTLSeconds int64   `msgpack:"ttl_seconds" json:"ttl_seconds"`
	Claimer    Process `msgpack:"claimer" json:"claimer"`
	// OnCleanExit is what exit 0 without an answer means for this run:
	// violation, complete or review. MaxRuntimeSeconds is its cap, 0 for none.
	OnCleanExit       string `msgpack:"on_clean_exit,omitempty" json:"on_clean_exit,omitempty"`
	MaxRuntimeSeconds int64  `msgpack:"max_runtime_seconds,omitempty" json:"max_runtime_seconds,omitempty"`
}

// Spawned: the supervisor of the run registered itself. Only after this may the
// worker's command start.
type Spawned struct {
	PID         int    `msgpack:"pid" json:"pid"`
	Fingerprint string `msgpack:"fingerprint" json:"fingerprint"`
	Machine     string `msgpack:"machine,omitempty" json:"machine,omitempty"`
	PIDNS       string `msgpack:"pidns,omitempty" json:"pidns,omitempty"`
	// OutputInode is the inode of the run's output file, which carries the run
	// lock; a string, since it may exceed 2^53.
	OutputInode  string `msgpack:"output_inode,omitempty" json:"output_inode,omitempty"`
	Token        string `msgpack:"token" json:"token"`
	Workspace    string `msgpack:"workspace,omitempty" json:"workspace,omitempty"`
	ClaimExpires Time   `msgpack:"claim_expires" json:"claim_expires"`
}

// Exited: nothing of a run that was already closed is left; its evidence goes.
type Exited struct {
	ExitCode *int64 `msgpack:"exit_code,omitempty" json:"exit_code"`
	Signal   string `msgpack:"signal,omitempty" json:"signal,omitempty"`
	// Evidence says in words how it is known.
	Evidence string `msgpack:"evidence" json:"evidence"`
}

// Heartbeat: the worker says it is making progress. It moves the lease.
type Heartbeat struct {
	Note         string `msgpack:"note,omitempty" json:"note,omitempty"`
	ClaimExpires Time   `msgpack:"claim_expires" json:"claim_expires"`
}

// ClaimExtended: the lease ran out and the worker was proven alive.
type ClaimExtended struct {
	WorkerPID       int    `msgpack:"worker_pid" json:"worker_pid"`
	ClaimExpiresWas Time   `msgpack:"claim_expires_was" json:"claim_expires_was"`
	ClaimExpiresNow Time   `msgpack:"claim_expires_now" json:"claim_expires_now"`
	Reason          string `msgpack:"reason" json:"reason"`
}

// Reclaimed closes a run that neither succeeded nor failed.
type Reclaimed struct {
	Reason string `msgpack:"reason" json:"reason"`
	// To is the card's status afterwards.
	To string `msgpack:"to" json:"to"`
	// Interrupted: the dispatcher, the machine or a service went away; not the
	// card's failure.
	Interrupted bool `msgpack:"interrupted,omitempty" json:"interrupted,omitempty"`
	// Forced: an operator released it without proof; Warning then says that a
	// process may still be alive.
	Forced  bool   `msgpack:"forced,omitempty" json:"forced,omitempty"`
	Warning string `msgpack:"warning,omitempty" json:"warning,omitempty"`
	// Unproven: a claim from elsewhere whose lease ran out and whose process
	// cannot be looked at from here.
	Unproven bool `msgpack:"unproven,omitempty" json:"unproven,omitempty"`
	// Evidence is what was known of the worker.
	Evidence string `msgpack:"evidence,omitempty" json:"evidence,omitempty"`
	ExitCode *int64 `msgpack:"exit_code,omitempty" json:"exit_code,omitempty"`
	Signal   string `msgpack:"signal,omitempty" json:"signal,omitempty"`
}

// ReclaimDeferred: an end was requested, but a process is there that may
// neither be signalled nor ruled out. Written once per change of the reason.
type ReclaimDeferred struct {
	Reason   string `msgpack:"reason" json:"reason"`
	Evidence string `msgpack:"evidence" json:"evidence"`
	// ClaimExpires is the lease that was moved by this, 0 if it was not.
	ClaimExpires Time `msgpack:"claim_expires,omitempty" json:"claim_expires,omitzero"`
}

// TerminationRequested is the decision to end a run's processes. It is durable
// before the first signal. An operator's may follow on another and overrides
// what becomes of the card; the graces count from the first.
type TerminationRequested struct {
	// Reason is reclaim, cancel, archive, reopened, max_runtime,
	// heartbeat_stale, terminal_grace or orphaned.
	Reason string `msgpack:"reason" json:"reason"`
	// Detail is the operator's words or the measured value.
	Detail string `msgpack:"detail,omitempty" json:"detail,omitempty"`
	// To is what becomes of the card, empty if the classifier decides.
	To string `msgpack:"to,omitempty" json:"to,omitempty"`
	// Evidence is what was known of the worker when this was decided.
	Evidence string `msgpack:"evidence,omitempty" json:"evidence,omitempty"`
	// LimitSeconds and MeasuredSeconds are the bound that was exceeded and by
	// what, of the reasons that have one.
	LimitSeconds    int64 `msgpack:"limit_seconds,omitempty" json:"limit_seconds,omitempty"`
	MeasuredSeconds int64 `msgpack:"measured_seconds,omitempty" json:"measured_seconds,omitempty"`
}

// End is what the kinds share that close a run because of how its process
// ended.
type End struct {
	Error    string `msgpack:"error,omitempty" json:"error,omitempty"`
	ExitCode *int64 `msgpack:"exit_code,omitempty" json:"exit_code"`
	Signal   string `msgpack:"signal,omitempty" json:"signal,omitempty"`
	// Evidence says in words how it is known.
	Evidence string `msgpack:"evidence,omitempty" json:"evidence,omitempty"`
	// To is the card's status afterwards (a gave_up in the same commit may
	// change it again).
	To string `msgpack:"to" json:"to"`
	// RetryAt is the moment before which the card is not started again, 0 for
	// at once; it counts from the commit's own time.
	RetryAt Time `msgpack:"retry_at,omitempty" json:"retry_at,omitzero"`
}

// Crashed: the worker ended with a failure, a signal, or without a trace.
type Crashed struct {
	End `msgpack:",inline"`
	// Final: exit 78, it can never work; trips at once.
	Final bool `msgpack:"final,omitempty" json:"final,omitempty"`
}

// ProtocolViolation: exit 0 without an answer.
type ProtocolViolation struct {
	End `msgpack:",inline"`
}

// RateLimited: exit 75, try later; never counted as a failure.
type RateLimited struct {
	End `msgpack:",inline"`
}

// TimedOut: the run was ended because it exceeded its time.
type TimedOut struct {
	End          `msgpack:",inline"`
	LimitSeconds int64 `msgpack:"limit_seconds,omitempty" json:"limit_seconds,omitempty"`
	// LimitSource is task or profile; ElapsedSeconds is how long it had run
	// when its end was requested.
	LimitSource    string `msgpack:"limit_source,omitempty" json:"limit_source,omitempty"`
	ElapsedSeconds int64  `msgpack:"elapsed_seconds,omitempty" json:"elapsed_seconds,omitempty"`
}

// Stale: the run was ended because its heartbeats stopped.
type Stale struct {
	End `msgpack:",inline"`
	// SilentSeconds is how long it had been silent when its end was requested.
	SilentSeconds int64 `msgpack:"silent_seconds,omitempty" json:"silent_seconds,omitempty"`
}

// SpawnFailed: the command was never started.
type SpawnFailed struct {
	End `msgpack:",inline"`
	// Infrastructure: the host refused (no memory, no disk); not counted.
	Infrastructure bool `msgpack:"infrastructure,omitempty" json:"infrastructure,omitempty"`
}

// GaveUp: a budget is used up; the card is blocked.
type GaveUp struct {
	Reason   string `msgpack:"reason" json:"reason"`
	Failures int64  `msgpack:"failures" json:"failures"`
	Limit    int64  `msgpack:"limit" json:"limit"`
	// LimitSource is task, settings or built-in.
	LimitSource string `msgpack:"limit_source" json:"limit_source"`
	// Budget is failures, violations, rate_limit, interruptions, stale,
	// uncounted or final.
	Budget string `msgpack:"budget" json:"budget"`
	// Sticky: only an operator frees it.
	Sticky bool `msgpack:"sticky,omitempty" json:"sticky,omitempty"`
}

// Completed: the card is done. With no open run it opens and closes one.
type Completed struct {
	Summary string `msgpack:"summary,omitempty" json:"summary,omitempty"`
	Result  string `msgpack:"result,omitempty" json:"result,omitempty"`
	// Metadata is the JSON that was given, byte for byte.
	Metadata json.RawMessage `msgpack:"metadata,omitempty" json:"metadata,omitempty"`
	// By is answer (somebody said so) or clean_exit (on_clean_exit = complete).
	By       string `msgpack:"by" json:"by"`
	ExitCode *int64 `msgpack:"exit_code,omitempty" json:"exit_code,omitempty"`
}

// Failed: the worker says that this attempt failed. Counted.
type Failed struct {
	Reason  string `msgpack:"reason" json:"reason"`
	To      string `msgpack:"to" json:"to"`
	RetryAt Time   `msgpack:"retry_at,omitempty" json:"retry_at,omitzero"`
}

// Deferred: the worker says to try again later. Never counted.
type Deferred struct {
	Reason  string `msgpack:"reason,omitempty" json:"reason,omitempty"`
	To      string `msgpack:"to" json:"to"`
	RetryAt Time   `msgpack:"retry_at" json:"retry_at"`
}

// Blocked: the card waits for somebody. With an open run it closes that run.
type Blocked struct {
	Reason string `msgpack:"reason" json:"reason"`
	// BlockKind is needs_input, capability, transient or dependency.
	BlockKind string `msgpack:"block_kind,omitempty" json:"block_kind,omitempty"`
}

// Unblocked: an operator lets the card go on, with fresh budgets.
type Unblocked struct {
	To string `msgpack:"to" json:"to"`
}

// Assigned: the card has another assignee, empty for none.
type Assigned struct {
	Assignee string `msgpack:"assignee" json:"assignee"`
	From     string `msgpack:"from,omitempty" json:"from,omitempty"`
}

// Promoted: the card may be started now, or waits for one thing less.
type Promoted struct {
	To string `msgpack:"to" json:"to"`
	// Reason is parents_done, due, limit_raised or reassigned.
	Reason string `msgpack:"reason" json:"reason"`
}

// Commented: somebody left a note on the card.
type Commented struct {
	Author string `msgpack:"author" json:"author"`
	Text   string `msgpack:"text" json:"text"`
}

// ReviewRequested closes a run: somebody has to look at its work before the
// card is done.
type ReviewRequested struct {
	Summary string `msgpack:"summary,omitempty" json:"summary,omitempty"`
	// By is answer or clean_exit (on_clean_exit = review).
	By       string `msgpack:"by" json:"by"`
	ExitCode *int64 `msgpack:"exit_code,omitempty" json:"exit_code,omitempty"`
}

// TerminalWorkerReaped: a worker that outlived its closed run was ended by us.
type TerminalWorkerReaped struct {
	ExitCode *int64 `msgpack:"exit_code,omitempty" json:"exit_code"`
	Signal   string `msgpack:"signal,omitempty" json:"signal,omitempty"`
	Evidence string `msgpack:"evidence" json:"evidence"`
}

// Fenced: a write was refused because it did not come from the card's open
// run. Written once per run that tried.
type Fenced struct {
	Verb string `msgpack:"verb" json:"verb"`
	// Presented is the run the writer named, 0 if it named none.
	Presented uint64 `msgpack:"presented" json:"presented"`
	// Current is the card's open run at that moment, 0 if none.
	Current uint64 `msgpack:"current" json:"current"`
}

// Archived: the card was put away; cards that waited for it wait no longer.
type Archived struct {
	Reason string `msgpack:"reason,omitempty" json:"reason,omitempty"`
}

// Kind methods, one a payload.

func (*Created) Kind() Kind              { return KindCreated }
func (*Claimed) Kind() Kind              { return KindClaimed }
func (*Spawned) Kind() Kind              { return KindSpawned }
func (*Exited) Kind() Kind               { return KindExited }
func (*Heartbeat) Kind() Kind            { return KindHeartbeat }
func (*ClaimExtended) Kind() Kind        { return KindClaimExtended }
func (*Reclaimed) Kind() Kind            { return KindReclaimed }
func (*ReclaimDeferred) Kind() Kind      { return KindReclaimDeferred }
func (*TerminationRequested) Kind() Kind { return KindTerminationRequested }
func (*Crashed) Kind() Kind              { return KindCrashed }
func (*ProtocolViolation) Kind() Kind    { return KindProtocolViolation }
func (*RateLimited) Kind() Kind          { return KindRateLimited }
func (*TimedOut) Kind() Kind             { return KindTimedOut }
func (*Stale) Kind() Kind                { return KindStale }
func (*SpawnFailed) Kind() Kind          { return KindSpawnFailed }
func (*GaveUp) Kind() Kind               { return KindGaveUp }
func (*Completed) Kind() Kind            { return KindCompleted }
func (*Failed) Kind() Kind               { return KindFailed }
func (*Deferred) Kind() Kind             { return KindDeferred }
func (*Blocked) Kind() Kind              { return KindBlocked }
func (*Unblocked) Kind() Kind            { return KindUnblocked }
func (*Assigned) Kind() Kind             { return KindAssigned }
func (*Promoted) Kind() Kind             { return KindPromoted }
func (*Commented) Kind() Kind            { return KindCommented }
func (*ReviewRequested) Kind() Kind      { return KindReviewRequested }
func (*TerminalWorkerReaped) Kind() Kind { return KindTerminalWorkerReaped }
func (*Fenced) Kind() Kind               { return KindFenced }
func (*Archived) Kind() Kind             { return KindArchived }

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{
		KindCreated, KindClaimed, KindSpawned, KindExited, KindHeartbeat, KindClaimExtended, KindReclaimed,
		KindReclaimDeferred, KindTerminationRequested, KindCrashed, KindProtocolViolation, KindRateLimited,
		KindTimedOut, KindStale, KindSpawnFailed, KindGaveUp, KindCompleted, KindFailed, KindDeferred, KindBlocked,
		KindUnblocked, KindAssigned, KindPromoted, KindCommented, KindReviewRequested, KindTerminalWorkerReaped,
		KindFenced, KindArchived,
	}
}
