package projection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"kanlog/eventlog"
)

// Taking a decision on record once more: the decider of today, with what the record
// says it was decided on, on the board as it was.

// WhatIf puts other values in the place of the settings on a decision's record; what is
// nil stays. An assignee is given where a setting is a profile's.
type WhatIf struct {
	Limits func(*Limits)
	Caps   func(assignee string, c *Caps)
}

// Retaken is a decision beside what would be decided today.
type Retaken struct {
	Seq   uint64
	Task  string
	Run   uint64
	At    eventlog.Time
	Actor string
	// Was and Now are the two in short; the same if nothing differs.
	Was, Now string
	// Untold says why it cannot be taken once more, "" if it was.
	Untold string
}

// Differs tells whether today's decision is another.
func (r Retaken) Differs() bool { return r.Untold == "" && r.Was != r.Now }

// Retake takes the decision of a commit once more; v is the board before it.
func Retake(v View, c eventlog.Commit, w WhatIf) (Retaken, error) {
	first := c.Events[0]
	r := Retaken{Seq: c.Seq, Task: first.Task, Run: c.RunOf(0), At: c.At, Actor: c.Actor}
	limits, named := recordedLimits(c)
	if w.Limits != nil {
		w.Limits(&limits)
	}
	again := retaking{v: v, c: c, e: first, limits: limits, what: w}
	decide, err := again.decider()
	if err != nil {
		return r, err
	}
	if decide == nil {
		kind := first.Kind()
		if again.has(eventlog.KindCreated) != nil {
			kind = eventlog.KindCreated // an import of a paused board begins with the pause
		}
		r.Untold = fmt.Sprintf("the record of %s does not hold all it was decided on", kind)
		return r, nil
	}
	var got []eventlog.Event
	d, err := decide(v, c.At)
	switch {
	case err == nil:
		got, err = d.Events, d.Refused
	case errors.Is(err, ErrInconsistent):
		return r, err
	}
	events := c.Events
	if again.only > 0 {
		events = events[:again.only]
		got = got[:min(again.only, len(got))]
	}
	r.Was = inShort(events)
	switch {
	case err != nil && len(got) == 0:
		r.Now = "refused: " + err.Error()
	case len(got) == 0:
		r.Now = "nothing to do"
	default:
		was, now := facts(events), facts(got)
		if was == now {
			r.Now = r.Was
			break
		}
		r.Now = inShort(got)
		if r.Now == r.Was {
			r.Now += " (" + firstDifference(was, now) + ")"
		}
	}
	if r.Differs() && !named && needsLimits(first.Data) && w.Limits == nil {
		r.Untold = "logs of the formats 1 to 3 do not name the limits of a decision"
	}
	return r, nil
}

// recordedLimits are those that a commit names, else the contract's.
func recordedLimits(c eventlog.Commit) (Limits, bool) {
	l := DefaultLimits()
	for _, e := range c.Events {
		if recorded, ok := l.recorded(e.Data); ok {
			return recorded, true
		}
	}
	return l, false
}

func needsLimits(p eventlog.Payload) bool {
	_, ok := p.(interface{ By() **eventlog.Limits })
	return ok
}

// retaking is one decision on its way to be taken once more.
type retaking struct {
	v      View
	c      eventlog.Commit
	e      eventlog.Event
	limits Limits
	what   WhatIf
	only   int // how many events of the commit are compared, 0 for all
}

// writer is who decided. An operator who answered for a run named it.
func (t *retaking) writer() Writer {
	if card, run, ok := workerOf(t.c.Actor); ok {
		return Writer{Card: card, Run: run}
	}
	return Writer{Run: t.e.Run}
}

// operator is a writer who names no run.
func (t *retaking) operator() Writer {
	if card, run, ok := workerOf(t.c.Actor); ok {
		return Writer{Card: card, Run: run}
	}
	return Writer{}
}

// has returns the first event of a kind in the commit, nil if there is none.
func (t *retaking) has(k eventlog.Kind) eventlog.Payload {
	for _, e := range t.c.Events {
		if e.Kind() == k {
			return e.Data
		}
	}
	return nil
}

// restored tells whether the commit is a restore's own.
func (t *retaking) restored() bool {
	switch d := t.e.Data.(type) {
	case *eventlog.Reclaimed:
		return d.Evidence == droppedByRestore
	case *eventlog.Exited:
		return d.Evidence == droppedByRestore
	}
	return false
}

// decider is the decider with its arguments, nil if they cannot be told.
func (t *retaking) decider() (Decider, error) {
	id, e := t.e.Task, t.e
	switch {
	case t.has(eventlog.KindCreated) != nil && len(t.c.Events) > 1:
		return nil, nil // a graph or an import: what it was made of is not on record
	case t.restored():
		return EndForRestore(e.Run, t.c.Number-1, t.limits), nil
	}
	switch d := e.Data.(type) {
	case *eventlog.Created:
		return Create(draftOf(d), t.operator()), nil
	case *eventlog.Claimed:
		t.only = 1
		return t.claim(id, d), nil
	case *eventlog.Spawned:
		return Register(Registration{
			Task: id, Run: e.Run, Worker: eventlog.Process{PID: d.PID, Fingerprint: d.Fingerprint, Machine: d.Machine, PIDNS: d.PIDNS},
			OutputInode: d.OutputInode, Token: d.Token, Workspace: d.Workspace,
		}), nil
	case *eventlog.Heartbeat:
		// How close beats may follow on each other is not on record.
		t.limits.HeartbeatStale = 1
		return Beat(id, d.Note, t.limits, t.writer()), nil
	case *eventlog.ClaimExtended:
		return Extend(e.Run), nil
	case *eventlog.TerminationRequested:
		return t.requestEnd(d), nil
	case *eventlog.ReclaimDeferred:
		wait := time.Duration(0)
		if d.ClaimExpires != 0 {
			wait = d.ClaimExpires.Since(t.c.At)
		}
		return DeferEnd(e.Run, d.Reason, d.Evidence, wait), nil
	case *eventlog.Reclaimed:
		return t.reclaimed(d)
	case *eventlog.Crashed:
		return t.ended(d.End, CauseExited), nil
	case *eventlog.ProtocolViolation:
		return t.ended(d.End, CauseExited), nil
	case *eventlog.RateLimited:
		return t.ended(d.End, CauseExited), nil
	case *eventlog.TimedOut:
		return t.ended(d.End, CauseTerminated), nil
	case *eventlog.Stale:
		return t.ended(d.End, CauseTerminated), nil
	case *eventlog.SpawnFailed:
		return t.spawnFailed(d)
	case *eventlog.Exited:
		if strings.HasPrefix(d.Evidence, "forced by an operator") {
			return Reclaim(id, e.Run, "forced", "", true, Writer{}), nil
		}
		return t.ended(eventlog.End{ExitCode: d.ExitCode, Signal: d.Signal}, CauseExited), nil
	case *eventlog.TerminalWorkerReaped:
		return t.ended(eventlog.End{ExitCode: d.ExitCode, Signal: d.Signal}, CauseTerminated), nil
	case *eventlog.GaveUp:
		t.only = 1
		return t.claim(id, &eventlog.Claimed{Origin: OriginDispatch, TTLSeconds: 60}), nil
	case *eventlog.Completed:
		a := Answer{Summary: d.Summary, Result: d.Result, Metadata: d.Metadata}
		switch d.By {
		case byCleanExit:
			return t.ended(eventlog.End{ExitCode: d.ExitCode}, CauseExited), nil
		case byApproval:
			return Approve(id, a, d.Reviewed, t.writer()), nil
		}
		return Complete(id, a, t.writer()), nil
	case *eventlog.ReviewRequested:
		if d.By == byCleanExit {
			return t.ended(eventlog.End{ExitCode: d.ExitCode}, CauseExited), nil
		}
		return RequestReview(id, Answer{Summary: d.Summary, Result: d.Result, Metadata: d.Metadata}, d.Reviewer, nil, t.writer()), nil
	case *eventlog.ChangesRequested:
		return RequestChanges(id, d.Reason, d.Reviewed, t.limits, t.writer()), nil
	case *eventlog.Failed:
		return Fail(id, d.Reason, t.limits, t.writer()), nil
	case *eventlog.Deferred:
		return Defer(id, d.RetryAt.Since(t.c.At), d.Reason, t.limits, t.writer()), nil
	case *eventlog.Blocked:
		if why, ok := strings.CutPrefix(d.Reason, cancelled("").Reason); ok && e.Run == 0 {
			return t.byOperator(func(run uint64) Decider { return Cancel(id, run, strings.TrimPrefix(why, ": "), "", t.operator()) })
		}
		return Block(id, d.Reason, or(d.RequestedKind, d.BlockKind), t.limits, t.writer()), nil
	case *eventlog.Unblocked:
		return Unblock(id, t.operator()), nil
	case *eventlog.Assigned:
		return Assign(id, d.Assignee, t.operator()), nil
	case *eventlog.Promoted:
		switch d.Reason {
		case promotedByHand:
			return Promote(id, t.operator()), nil
		case "due":
			return PromoteDue(id), nil
		}
		return nil, nil // by a limit that is not on record
	case *eventlog.Commented:
		return AddComment(id, d.Author, d.Text, t.writer()), nil
	case *eventlog.Archived:
		return t.byOperator(func(run uint64) Decider { return Archive(id, run, d.Reason, "", t.operator()) })
	case *eventlog.Linked:
		return Link(d.Parent, id, t.operator()), nil
	case *eventlog.Unlinked:
		return Unlink(d.Parent, id, t.operator()), nil
	case *eventlog.Reopened:
		return Reopen(id, d.Reason, t.operator()), nil
	case *eventlog.Paused:
		return PauseBoard(d.Reason, t.operator()), nil
	case *eventlog.Resumed:
		return ResumeBoard(t.operator()), nil
	}
	return nil, nil // edited and fenced do not hold what was asked for
}

func draftOf(d *eventlog.Created) Draft {
	draft := Draft{
		Title: d.Title, Body: d.Body, Assignee: d.Assignee, Priority: d.Priority, Tenant: d.Tenant, Tags: d.Tags, Parents: d.Parents, Key: d.Key,
		MaxRuntime: time.Duration(d.MaxRuntimeSeconds) * time.Second, MaxRetries: d.MaxRetries, WorkspaceKind: d.WorkspaceKind,
		WorkspacePath: d.WorkspacePath, Branch: d.Branch, NotBefore: d.NotBefore, Reviewer: d.Reviewer, Triage: d.Status == Triage,
		Blocked: d.Status == Blocked, BlockReason: d.BlockReason,
	}
	if d.MaxRuntimeSeconds < 0 {
		draft.MaxRuntime = NoLimit
	}
	return draft
}

// claim is a claim by who it names. The runs on other boards, the breaker and the
// memory that was free are not on record.
func (t *retaking) claim(id string, d *eventlog.Claimed) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		card, err := v.MustTask(id)
		if err != nil {
			return Decision{}, err
		}
		c := ClaimFor{
			Task: id, Origin: d.Origin, Holder: d.Holder, Claimer: d.Claimer, TTL: time.Duration(d.TTLSeconds) * time.Second,
			LaunchGrace: d.Deadline.Since(now), OnCleanExit: d.OnCleanExit, MaxRuntime: time.Duration(d.MaxRuntimeSeconds) * time.Second,
			Assignee: card.Starter(), Reviewer: d.Reviewer, Caps: Caps{Board: d.BoardCap, Profile: d.AssigneeCap}, Limits: t.limits,
		}
		if d.MaxRuntimeSeconds < 0 {
			c.MaxRuntime = NoLimit
		}
		if t.what.Caps != nil && d.Origin == OriginDispatch {
			t.what.Caps(card.Starter(), &c.Caps)
		}
		decision, err := Claim(c, t.operator())(v, now)
		if len(decision.Events) > 0 {
			if got, ok := decision.Events[0].Data.(*eventlog.Claimed); ok {
				// Caps of 0 are on record as none; the others are what was asked with.
				got.BoardCap, got.AssigneeCap, got.HostCap = d.BoardCap, d.AssigneeCap, d.HostCap
				if d.BoardCap == 0 { // an older format names neither
					got.Active, got.ActiveAssignee = d.Active, d.ActiveAssignee
				}
			}
		}
		return decision, err
	}
}

func (t *retaking) requestEnd(d *eventlog.TerminationRequested) Decider {
	run, w := t.e.Run, t.operator()
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	if strings.HasPrefix(t.c.Actor, "operator:") {
		switch d.Reason {
		case EndReclaim:
			return Reclaim(t.e.Task, run, d.Detail, d.Evidence, false, w)
		case EndCancel:
			return Cancel(t.e.Task, run, d.Detail, d.Evidence, w)
		case EndArchive:
			return Archive(t.e.Task, run, d.Detail, d.Evidence, w)
		}
		return nil
	}
	return RequestEnd(EndRequest{
		Run: run, Reason: d.Reason, Detail: d.Detail, Limit: seconds(d.LimitSeconds), Measured: seconds(d.MeasuredSeconds), Evidence: d.Evidence,
	})
}

// ended books the end of the run with the record that its event shows.
func (t *retaking) ended(d eventlog.End, cause string) Decider {
	end := Ending{Run: t.e.Run, Evidence: d.Evidence}
	if d.ExitCode != nil || d.Signal != "" {
		end.Record = &ExitRecord{Cause: cause, ExitCode: d.ExitCode, Signal: d.Signal}
		if d.Signal != "" && cause == CauseExited {
			end.Record.Cause = CauseSignaled
		}
	}
	return BookEnd(end, t.limits)
}

func (t *retaking) spawnFailed(d *eventlog.SpawnFailed) (Decider, error) {
	r, err := t.v.runOf(t.e.Run)
	if err != nil {
		return nil, err
	}
	if r.HasWorker {
		return BookEnd(Ending{Run: r.ID, Evidence: d.Evidence, Record: &ExitRecord{
			Cause: CauseStartFailed, ExitCode: d.ExitCode, Signal: d.Signal, Error: d.Error, Infrastructure: d.Infrastructure,
		}}, t.limits), nil
	}
	return BookCutOff(CutOff{Run: r.ID, Infrastructure: d.Infrastructure, Error: d.Error, Evidence: d.Evidence}, t.limits), nil
}

// byOperator is a verb that ends a run, for the run that the card has.
func (t *retaking) byOperator(verb func(run uint64) Decider) (Decider, error) {
	card, err := t.v.MustTask(t.e.Task)
	if err != nil {
		return nil, err
	}
	return verb(card.Owner()), nil
}

func (t *retaking) reclaimed(d *eventlog.Reclaimed) (Decider, error) {
	id, run := t.e.Task, t.e.Run
	r, err := t.v.runOf(run)
	if err != nil {
		return nil, err
	}
	operator := strings.HasPrefix(t.c.Actor, "operator:")
	switch {
	case r.Origin == OriginManual && !operator:
		return ExpireManual(run), nil
	case d.Forced:
		return Reclaim(id, run, d.Reason, d.Evidence, true, Writer{}), nil
	case operator && t.has(eventlog.KindArchived) != nil:
		return Archive(id, run, "", "", Writer{}), nil
	case operator && d.To == Blocked:
		return Cancel(id, run, "", "", Writer{}), nil
	case operator:
		return Reclaim(id, run, d.Reason, "", false, Writer{}), nil
	case !r.HasWorker:
		return BookCutOff(CutOff{Run: run, Interrupted: d.Interrupted, Evidence: d.Evidence}, t.limits), nil
	}
	end := Ending{Run: run, Unproven: d.Unproven, Evidence: d.Evidence}
	switch {
	case d.ExitCode != nil || d.Signal != "":
		end.Record = &ExitRecord{Cause: CauseTerminated, ExitCode: d.ExitCode, Signal: d.Signal}
	case strings.Contains(d.Reason, "was told to stop"):
		end.Record = &ExitRecord{Cause: CauseTerminated}
	case !d.Unproven:
		end.OtherBoot = true
	}
	return BookEnd(end, t.limits), nil
}

// words are fields that hold what somebody said or saw. Ours are made anew each time
// from what was seen, which is on record in words only.
var words = map[eventlog.Kind][]string{
	"":                                {"error", "evidence", "limits", "warning"},
	eventlog.KindGaveUp:               {"reason"},
	eventlog.KindReclaimed:            {"reason"},
	eventlog.KindBlocked:              {"reason"},
	eventlog.KindArchived:             {"reason"},
	eventlog.KindSpawnFailed:          {"error"},
	eventlog.KindTerminationRequested: {"detail"},
}

// facts are events without such fields, as text that is equal if they are.
func facts(events []eventlog.Event) string {
	var b strings.Builder
	for _, e := range events {
		fields := map[string]json.RawMessage{}
		text, err := json.Marshal(e.Data)
		if err == nil {
			err = json.Unmarshal(text, &fields)
		}
		if err != nil {
			return err.Error()
		}
		for _, kind := range []eventlog.Kind{"", e.Kind()} {
			for _, name := range words[kind] {
				delete(fields, name)
			}
		}
		fmt.Fprintf(&b, "%s", e.Kind())
		if e.Kind() != eventlog.KindCreated {
			fmt.Fprintf(&b, " %s/%d", e.Task, e.Run)
		}
		names := make([]string, 0, len(fields))
		for name := range fields {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			fmt.Fprintf(&b, "\n  %s %s", name, bytes.TrimSpace(fields[name]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// firstDifference is the first line in which two facts differ.
func firstDifference(was, now string) string {
	a, b := strings.Split(was, "\n"), strings.Split(now, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return strings.TrimSpace(a[i]) + " on record, " + strings.TrimSpace(b[i]) + " today"
		}
	}
	return "more on one side"
}

// inShort says what events decide, without anybody's words.
func inShort(events []eventlog.Event) string {
	var parts []string
	for _, e := range events {
		s := string(e.Kind())
		fields := struct {
			To      string        `json:"to"`
			Status  string        `json:"status"`
			RetryAt eventlog.Time `json:"retry_at"`
			Reason  string        `json:"reason"`
		}{}
		if text, err := json.Marshal(e.Data); err == nil {
			_ = json.Unmarshal(text, &fields) // what it lacks stays empty
		}
		if to := or(fields.To, fields.Status); to != "" {
			s += " -> " + to
		}
		switch d := e.Data.(type) {
		case *eventlog.GaveUp:
			s += fmt.Sprintf(" (%s, %d of %d)", d.Budget, d.Failures, d.Limit)
		case *eventlog.TerminationRequested:
			s += " (" + d.Reason + ")"
		}
		if fields.RetryAt != 0 {
			s += " from " + fields.RetryAt.Std().Format("15:04:05")
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}
