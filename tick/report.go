package tick

import (
	"kanlog/eventlog"
)

// Report is what one tick did. Its JSON form is part of the contract.
type Report struct {
	SkippedLocked         bool          `json:"skipped_locked"`
	DryRun                bool          `json:"dry_run"`
	Promoted              []string      `json:"promoted"`
	Reclaimed             []string      `json:"reclaimed"`
	Extended              []string      `json:"extended"`
	Deferred              []string      `json:"deferred"`
	Crashed               []string      `json:"crashed"`
	RateLimited           []string      `json:"rate_limited"`
	ProtocolViolations    []string      `json:"protocol_violations"`
	TimedOut              []string      `json:"timed_out"`
	Stale                 []string      `json:"stale"`
	ReapedTerminalWorkers []string      `json:"reaped_terminal_workers"`
	AutoBlocked           []string      `json:"auto_blocked"`
	Completed             []string      `json:"completed"`        // by clean exit
	ReviewRequested       []string      `json:"review_requested"` // by clean exit
	EndRequested          []string      `json:"end_requested"`
	Exited                []string      `json:"exited"`
	Spawned               []Spawned     `json:"spawned"`
	SpawnFailed           []SpawnFailed `json:"spawn_failed"`
	Waiting               []Waiting     `json:"waiting"`
	// Paused are the profiles whose runs end alike, see the setting breaker.
	Paused []Paused `json:"paused"`
	// WaitingMore: more cards wait than are named.
	WaitingMore bool `json:"waiting_more"`
	// Expired are those of Reclaimed whose claim by hand ran out, and NotWaiting the
	// card of Waiting that was asked for by its id and waits for nothing, since it
	// runs or is over: for words, the JSON is what it was.
	Expired    []string  `json:"-"`
	NotWaiting []Waiting `json:"-"`
	// Broken are the profiles with startable cards whose command cannot be started
	// here, by name. No claim is spent on them.
	Broken map[string]string `json:"broken,omitempty"`
	// HostFull: cards wait for a place that other boards' runs have, or for memory. When
	// one comes free no word of it reaches this board.
	HostFull bool `json:"-"`
	// Errors are what went wrong with single runs; the others went on.
	Errors []Failure `json:"errors"`
}

// Spawned is a worker that this tick started.
type Spawned struct {
	Task      string `json:"task"`
	Run       uint64 `json:"run"`
	Assignee  string `json:"assignee"`
	PID       int    `json:"pid"` // 0 in a dry run
	Workspace string `json:"workspace"`
}

// SpawnFailed is a claimed card whose worker could not be started.
type SpawnFailed struct {
	Task  string `json:"task"`
	Run   uint64 `json:"run"`
	Error string `json:"error"`
}

// Waiting is a card that could start but does not, and why.
type Waiting struct {
	Task   string `json:"task"`
	Reason string `json:"reason"`
}

// Paused is a profile that is held back, and why.
type Paused struct {
	Assignee string `json:"assignee"`
	Reason   string `json:"reason"`
}

// Failure is what went wrong with one run.
type Failure struct {
	Task  string `json:"task"`
	Run   uint64 `json:"run"`
	Error string `json:"error"`
}

func newReport(dry bool) *Report {
	none := func() []string { return []string{} }
	return &Report{
		DryRun: dry, Promoted: none(), Reclaimed: none(), Extended: none(), Deferred: none(), Crashed: none(),
		RateLimited: none(), ProtocolViolations: none(), TimedOut: none(), Stale: none(),
		ReapedTerminalWorkers: none(), AutoBlocked: none(), Completed: none(), ReviewRequested: none(), EndRequested: none(), Exited: none(),
		Spawned: []Spawned{}, SpawnFailed: []SpawnFailed{}, Waiting: []Waiting{}, Paused: []Paused{}, Errors: []Failure{},
	}
}

// note adds what was appended. The report follows from the events, so that it
// cannot say anything else than the log.
func (r *Report) note(events []eventlog.Event) {
	for _, e := range events {
		add := func(list *[]string) { *list = append(*list, e.Task) }
		switch d := e.Data.(type) {
		case *eventlog.Promoted:
			add(&r.Promoted)
		case *eventlog.Reclaimed:
			add(&r.Reclaimed)
		case *eventlog.ClaimExtended:
			add(&r.Extended)
		case *eventlog.ReclaimDeferred:
			add(&r.Deferred)
		case *eventlog.Crashed:
			add(&r.Crashed)
		case *eventlog.RateLimited:
			add(&r.RateLimited)
		case *eventlog.ProtocolViolation:
			add(&r.ProtocolViolations)
		case *eventlog.TimedOut:
			add(&r.TimedOut)
		case *eventlog.Stale:
			add(&r.Stale)
		case *eventlog.TerminalWorkerReaped:
			add(&r.ReapedTerminalWorkers)
		case *eventlog.GaveUp:
			add(&r.AutoBlocked)
		case *eventlog.Completed:
			add(&r.Completed)
		case *eventlog.ReviewRequested:
			add(&r.ReviewRequested)
		case *eventlog.TerminationRequested:
			add(&r.EndRequested)
		case *eventlog.Exited:
			add(&r.Exited)
		case *eventlog.SpawnFailed:
			r.SpawnFailed = append(r.SpawnFailed, SpawnFailed{e.Task, e.Run, d.Error})
		}
	}
}
