package eventlog

import "encoding/json"

// What the events say that concern a run: its claim, its worker, its answer and
// its end. New fields: see kinds.go.

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
	// Reviewer is who reviews the run's work unless the worker names somebody
	// else, empty for a person.
	Reviewer string `msgpack:"reviewer,omitempty" json:"reviewer,omitempty"`
	// Reviews is the run whose work this one reviews, 0 in the lane ready.
	Reviews uint64 `msgpack:"reviews,omitempty" json:"reviews,omitempty"`
	// What a dispatcher saw when it claimed: how many runs were active beside this one,
	// on the board and of its assignee, and the caps that it goes by; 0 for none.
	Active         int `msgpack:"active,omitempty" json:"active,omitempty"`
	ActiveAssignee int `msgpack:"active_assignee,omitempty" json:"active_assignee,omitempty"`
	BoardCap       int `msgpack:"board_cap,omitempty" json:"board_cap,omitempty"`
	AssigneeCap    int `msgpack:"assignee_cap,omitempty" json:"assignee_cap,omitempty"`
	HostCap        int `msgpack:"host_cap,omitempty" json:"host_cap,omitempty"`
	Weighed        `msgpack:",inline"`
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
	Weighed  `msgpack:",inline"`
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

// Limits are the settings by which somebody weighed the budgets of a card. They are
// with every decision that they had part in, so that it can be taken once more; as an
// array, since that is often. New ones are appended.
type Limits struct {
	//lint:ignore U1000 msgpack reads its tag through reflection
	_msgpack struct{} `msgpack:",as_array"`

	FailureLimit        int64 `json:"failure_limit"`
	ViolationLimit      int64 `json:"violation_limit"`
	BlockLimit          int64 `json:"block_limit"`
	RetryBackoffUS      int64 `json:"retry_backoff_us"`
	MaxBackoffUS        int64 `json:"max_backoff_us"`
	RateLimitCooldownUS int64 `json:"rate_limit_cooldown_us"`
}

// Weighed is the part of an event that names the limits it was decided by; nil in logs
// of the formats 1 to 3.
type Weighed struct {
	Limits *Limits `msgpack:"limits,omitempty" json:"limits,omitempty"`
}

// By is where the limits go.
func (w *Weighed) By() **Limits { return &w.Limits }

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
	Weighed `msgpack:",inline"`
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
	// Budget is failures, violations, rate_limit, interruptions, stale, reviews,
	// uncounted or final.
	Budget string `msgpack:"budget" json:"budget"`
	// Sticky: only an operator frees it.
	Sticky  bool `msgpack:"sticky,omitempty" json:"sticky,omitempty"`
	Weighed `msgpack:",inline"`
}

// Completed: the card is done. With no open run it opens and closes one.
type Completed struct {
	Summary string `msgpack:"summary,omitempty" json:"summary,omitempty"`
	Result  string `msgpack:"result,omitempty" json:"result,omitempty"`
	// Metadata is the JSON that was given, byte for byte.
	Metadata json.RawMessage `msgpack:"metadata,omitempty" json:"metadata,omitempty"`
	// By is answer (somebody said so), approval (a review ended so) or clean_exit
	// (on_clean_exit = complete).
	By       string `msgpack:"by" json:"by"`
	ExitCode *int64 `msgpack:"exit_code,omitempty" json:"exit_code,omitempty"`
	// Reviewed is the run whose work was approved, 0 without a review.
	Reviewed uint64 `msgpack:"reviewed,omitempty" json:"reviewed,omitempty"`
}

// Failed: the worker says that this attempt failed. Counted.
type Failed struct {
	Reason  string `msgpack:"reason" json:"reason"`
	To      string `msgpack:"to" json:"to"`
	RetryAt Time   `msgpack:"retry_at,omitempty" json:"retry_at,omitzero"`
	Weighed `msgpack:",inline"`
}

// Deferred: the worker says to try again later. Never counted.
type Deferred struct {
	Reason  string `msgpack:"reason,omitempty" json:"reason,omitempty"`
	To      string `msgpack:"to" json:"to"`
	RetryAt Time   `msgpack:"retry_at" json:"retry_at"`
	Weighed `msgpack:",inline"`
}

// ReviewRequested closes a run: somebody has to look at its work before the
// card is done. With no open run it opens and closes one.
type ReviewRequested struct {
	Summary string `msgpack:"summary,omitempty" json:"summary,omitempty"`
	// By is answer or clean_exit (on_clean_exit = review).
	By       string          `msgpack:"by" json:"by"`
	ExitCode *int64          `msgpack:"exit_code,omitempty" json:"exit_code,omitempty"`
	Result   string          `msgpack:"result,omitempty" json:"result,omitempty"`
	Metadata json.RawMessage `msgpack:"metadata,omitempty" json:"metadata,omitempty"`
	// Reviewer is the profile that is to review it, empty for a person.
	Reviewer string `msgpack:"reviewer,omitempty" json:"reviewer,omitempty"`
}

// ChangesRequested ends a review: the card goes back to who worked on it. With no
// open run it opens and closes one.
type ChangesRequested struct {
	Reason string `msgpack:"reason" json:"reason"`
	To     string `msgpack:"to" json:"to"`
	// Reviewed is the run whose work is sent back.
	Reviewed uint64 `msgpack:"reviewed" json:"reviewed"`
	Weighed  `msgpack:",inline"`
}

// TerminalWorkerReaped: a worker that outlived its closed run was ended by us.
type TerminalWorkerReaped struct {
	ExitCode *int64 `msgpack:"exit_code,omitempty" json:"exit_code"`
	Signal   string `msgpack:"signal,omitempty" json:"signal,omitempty"`
	Evidence string `msgpack:"evidence" json:"evidence"`
}
