package eventlog

// New event kind, or a new field on an old one:
//   1. the struct in payloads_card.go or payloads_run.go, with a doc comment and
//      tags; append fields, never reorder, rename or reuse one
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
	KindLinked               Kind = "linked"
	KindUnlinked             Kind = "unlinked"
	KindEdited               Kind = "edited"
	KindReopened             Kind = "reopened"
	KindRetracted            Kind = "retracted"
	KindBlockLoop            Kind = "block_loop_detected"
	KindChangesRequested     Kind = "changes_requested"
	KindPaused               Kind = "paused"
	KindResumed              Kind = "resumed"
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
	case KindLinked:
		return new(Linked)
	case KindUnlinked:
		return new(Unlinked)
	case KindEdited:
		return new(Edited)
	case KindReopened:
		return new(Reopened)
	case KindRetracted:
		return new(Retracted)
	case KindBlockLoop:
		return new(BlockLoop)
	case KindChangesRequested:
		return new(ChangesRequested)
	case KindPaused:
		return new(Paused)
	case KindResumed:
		return new(Resumed)
	}
	return nil
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
func (*Linked) Kind() Kind               { return KindLinked }
func (*Unlinked) Kind() Kind             { return KindUnlinked }
func (*Edited) Kind() Kind               { return KindEdited }
func (*Reopened) Kind() Kind             { return KindReopened }
func (*Retracted) Kind() Kind            { return KindRetracted }
func (*BlockLoop) Kind() Kind            { return KindBlockLoop }
func (*ChangesRequested) Kind() Kind     { return KindChangesRequested }
func (*Paused) Kind() Kind               { return KindPaused }
func (*Resumed) Kind() Kind              { return KindResumed }

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{
		KindCreated, KindClaimed, KindSpawned, KindExited, KindHeartbeat, KindClaimExtended, KindReclaimed,
		KindReclaimDeferred, KindTerminationRequested, KindCrashed, KindProtocolViolation, KindRateLimited,
		KindTimedOut, KindStale, KindSpawnFailed, KindGaveUp, KindCompleted, KindFailed, KindDeferred, KindBlocked,
		KindUnblocked, KindAssigned, KindPromoted, KindCommented, KindReviewRequested, KindTerminalWorkerReaped,
		KindFenced, KindArchived, KindLinked, KindUnlinked, KindEdited, KindReopened, KindRetracted, KindBlockLoop,
		KindChangesRequested, KindPaused, KindResumed,
	}
}
