package main

import (
	"encoding/hex"
	"encoding/json"
	"strconv"

	"kanlog/eventlog"
	"kanlog/projection"
)

// The JSON forms of the contract: every key is always there, absent values are
// null.

type taskJSON struct {
	ID                  string        `json:"id"`
	Title               string        `json:"title"`
	Body                any           `json:"body"`
	Assignee            any           `json:"assignee"`
	Status              string        `json:"status"`
	Priority            int64         `json:"priority"`
	Tenant              any           `json:"tenant"`
	Tags                []string      `json:"tags"`
	CreatedAt           eventlog.Time `json:"created_at"`
	CreatedBy           string        `json:"created_by"`
	StartedAt           eventlog.Time `json:"started_at"`
	CompletedAt         eventlog.Time `json:"completed_at"`
	CurrentRun          any           `json:"current_run"`
	WorkerPID           any           `json:"worker_pid"`
	WorkerFingerprint   any           `json:"worker_fingerprint"`
	ClaimExpires        eventlog.Time `json:"claim_expires"`
	LastHeartbeatAt     eventlog.Time `json:"last_heartbeat_at"`
	ConsecutiveFailures int64         `json:"consecutive_failures"`
	LastError           any           `json:"last_error"`
	MaxRuntimeSeconds   any           `json:"max_runtime_seconds"`
	MaxRetries          any           `json:"max_retries"`
	WorkspaceKind       string        `json:"workspace_kind"`
	WorkspacePath       any           `json:"workspace_path"`
	Branch              any           `json:"branch"`
	Result              any           `json:"result"`
	Key                 any           `json:"key"`
	Parents             []string      `json:"parents"`
	Children            []string      `json:"children"`
	NotBefore           eventlog.Time `json:"not_before"`
	BlockKind           any           `json:"block_kind"`
	BlockReason         any           `json:"block_reason"`
	HeldUntil           eventlog.Time `json:"held_until"`
	RetainedRun         any           `json:"retained_run"`
	Reviewer            any           `json:"reviewer"`
	ReviewedRun         any           `json:"reviewed_run"`
}

// text is a string, or null if it is empty.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// count is a number, or null if it is 0.
func count[T int | int64 | uint64](n T) any {
	if n == 0 {
		return nil
	}
	return n
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func newTaskJSON(v projection.View, t *projection.Task) (*taskJSON, error) {
	counts, err := v.CountsOf(t)
	if err != nil {
		return nil, err
	}
	j := &taskJSON{
		ID: t.ID, Title: t.Title, Body: text(v.Body(t.ID)), Assignee: text(t.Assignee), Status: t.Status,
		Priority: t.Priority, Tenant: text(t.Tenant), Tags: list(t.Tags),
		CreatedAt: t.CreatedAt, CreatedBy: t.CreatedBy, StartedAt: t.StartedAt, CompletedAt: t.CompletedAt,
		CurrentRun: count(t.CurrentRun), ConsecutiveFailures: counts.Failures, LastError: text(t.LastError),
		MaxRuntimeSeconds: count(max(0, t.MaxRuntimeSeconds)), MaxRetries: count(t.MaxRetries),
		WorkspaceKind: t.WorkspaceKind, WorkspacePath: text(t.WorkspacePath), Branch: text(t.Branch),
		Result: text(t.Result), Key: text(t.Key), Parents: list(v.Parents(t.ID)), Children: list(v.Children(t.ID)),
		NotBefore: t.NotBefore, BlockKind: text(t.BlockKind), BlockReason: text(t.BlockReason), HeldUntil: t.HoldUntil,
		Reviewer: text(t.Reviewer), ReviewedRun: count(t.ReviewedRun),
	}
	if t.Worker != 0 && t.Worker != t.CurrentRun {
		j.RetainedRun = t.Worker
	}
	if id := t.Owner(); id != 0 {
		r, err := v.Run(id)
		if err != nil {
			return nil, err
		}
		if r != nil {
			j.WorkerPID, j.WorkerFingerprint = count(r.PID), text(r.Fingerprint)
			j.LastHeartbeatAt = r.LastHeartbeat
			if r.Open() {
				j.ClaimExpires = r.ClaimExpires
			}
		}
	}
	return j, nil
}

// placed puts a card's scratch workspace where it is now: the log holds where it
// was when a run began, and the board may have been renamed since.
func (a *app) placed(j *taskJSON) *taskJSON {
	if j != nil && j.WorkspaceKind == projection.Scratch && j.WorkspacePath != nil {
		j.WorkspacePath = a.files().scratch(j.ID)
	}
	return j
}

type runJSON struct {
	ID                uint64        `json:"id"`
	Task              string        `json:"task"`
	Assignee          any           `json:"assignee"`
	Lane              string        `json:"lane"`
	Outcome           any           `json:"outcome"`
	StartedAt         eventlog.Time `json:"started_at"`
	EndedAt           eventlog.Time `json:"ended_at"`
	DurationSeconds   any           `json:"duration_seconds"`
	WorkerPID         any           `json:"worker_pid"`
	WorkerFingerprint any           `json:"worker_fingerprint"`
	ClaimExpires      eventlog.Time `json:"claim_expires"`
	LastHeartbeatAt   eventlog.Time `json:"last_heartbeat_at"`
	ExitCode          *int64        `json:"exit_code"`
	Signal            any           `json:"signal"`
	Summary           any           `json:"summary"`
	Error             any           `json:"error"`
	Metadata          rawJSON       `json:"metadata"`
	Log               any           `json:"log"`
	Origin            string        `json:"origin"`
	Holder            any           `json:"holder"`
	Result            any           `json:"result"`
	EndRequested      any           `json:"end_requested"`
	Reviews           any           `json:"reviews"`
}

func (a *app) newRunJSON(r *projection.Run) *runJSON {
	j := &runJSON{
		ID: r.ID, Task: r.Task, Assignee: text(r.Assignee), Lane: r.Lane, Outcome: text(r.Outcome),
		StartedAt: r.StartedAt, EndedAt: r.EndedAt, WorkerPID: count(r.PID), WorkerFingerprint: text(r.Fingerprint),
		LastHeartbeatAt: r.LastHeartbeat, ExitCode: r.ExitCode, Signal: text(r.Signal), Summary: text(r.Summary),
		Error: text(r.Error), Metadata: rawJSON(r.Metadata), Origin: r.Origin, Holder: text(r.Holder), Result: text(r.Result),
		EndRequested: text(r.EndReason), Reviews: count(r.Reviews),
	}
	if len(r.Metadata) == 0 {
		j.Metadata = nil
	}
	if r.Open() {
		j.ClaimExpires = r.ClaimExpires
	} else {
		j.DurationSeconds = r.EndedAt.Since(r.StartedAt).Seconds()
	}
	if r.SpawnedAt != 0 {
		j.Log = a.files().output(r.Task, r.ID)
	}
	return j
}

// shownRunJSON is a run with the end of what its command said, as show has it.
type shownRunJSON struct {
	*runJSON
	// OutputTail is nil if there is no output file, or the run is too old to look.
	OutputTail *string `json:"output_tail"`
}

// plainlyCompleted tells whether nobody will ask what became of a run.
func (r *runJSON) plainlyCompleted() bool {
	return r.Outcome == projection.OutCompleted && r.Signal == nil && (r.ExitCode == nil || *r.ExitCode == 0)
}

type eventJSON struct {
	Seq    uint64        `json:"seq"`
	Commit uint64        `json:"commit"`
	At     eventlog.Time `json:"at"`
	Kind   eventlog.Kind `json:"kind"`
	Task   any           `json:"task"`
	Run    any           `json:"run"`
	Actor  string        `json:"actor"`
	Data   any           `json:"data"`
	Hash   string        `json:"hash"`
	Board  string        `json:"board,omitempty"` // where events of several boards are printed
}

func newEventJSON(c eventlog.Commit, i int) *eventJSON {
	e := c.Events[i]
	seq := c.Seq + uint64(i)
	return &eventJSON{
		Seq: seq, Commit: c.Number, At: c.At, Kind: e.Kind(), Task: text(e.Task), Run: count(c.RunOf(i)),
		Actor: c.Actor, Data: e.Data, Hash: hex.EncodeToString(c.Hash[:]),
	}
}

type commentJSON struct {
	Seq    uint64        `json:"seq"`
	Task   string        `json:"task"`
	Author string        `json:"author"`
	Text   string        `json:"text"`
	At     eventlog.Time `json:"at"`
}

func newCommentJSON(c *projection.Comment) *commentJSON {
	return &commentJSON{c.Seq, c.Task, c.Author, c.Text, c.At}
}

// compact is a payload in one line, for people.
func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func runNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 53)
	if err != nil || n == 0 {
		return 0, usage("%q is no run: runs are numbers above 0", s)
	}
	return n, nil
}
