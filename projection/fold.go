package projection

import (
	"kanlog/eventlog"
)

// Fold changes the tables by what one commit says. It is the only place that
// writes them. It never fails on a log that deciders wrote; ErrInconsistent
// means that somebody else wrote it, or that the tables are not those of the
// commits before.
func Fold(w Tables, c eventlog.Commit) error {
	f := folder{View: View{w}, w: w, c: c}
	seen := map[string]bool{}
	for i, e := range c.Events {
		f.seq = c.Seq + uint64(i)
		if err := f.event(e); err != nil {
			return err
		}
		if f.err != nil {
			return f.err
		}
		if e.Task != "" && !seen[e.Task] {
			seen[e.Task] = true
			w.Put(tabTaskLog, cat(under(e.Task), num(c.Number)), nil)
		}
	}
	return nil
}

type folder struct {
	View
	w   Tables
	c   eventlog.Commit
	seq uint64
	err error
}

// event is the one switch over kinds.
func (f *folder) event(e eventlog.Event) error {
	switch d := e.Data.(type) {
	case *eventlog.Created:
		return f.created(e.Task, d)
	case *eventlog.Commented:
		f.w.Put(tabComments, cat(under(e.Task), num(f.seq)),
			encodeRow(&Comment{Seq: f.seq, Task: e.Task, Author: d.Author, Text: d.Text, At: f.c.At}))
		return nil
	case *eventlog.Fenced:
		f.w.Put(tabFenced, cat(under(e.Task), num(d.Presented)), nil)
		return nil

	case *eventlog.Claimed:
		return f.claimed(e.Task, d)
	case *eventlog.Spawned:
		return f.both(e, func(t *Task, r *Run) error {
			r.HasWorker, r.SpawnedAt = true, f.c.At
			r.PID, r.Fingerprint, r.Machine, r.PIDNS = d.PID, d.Fingerprint, d.Machine, d.PIDNS
			r.OutputInode, r.Token, r.Workspace = d.OutputInode, d.Token, d.Workspace
			r.ClaimExpires = d.ClaimExpires
			t.Worker = r.ID
			if d.Workspace != "" {
				t.WorkspacePath = d.Workspace
			}
			return nil
		})
	case *eventlog.Heartbeat:
		return f.both(e, func(t *Task, r *Run) error {
			r.LastHeartbeat, r.ClaimExpires = f.c.At, d.ClaimExpires
			if d.Note != "" {
				r.LastNote = d.Note
			}
			return nil
		})
	case *eventlog.ClaimExtended:
		return f.both(e, func(t *Task, r *Run) error {
			r.ClaimExpires = d.ClaimExpiresNow
			return nil
		})
	case *eventlog.TerminationRequested:
		return f.both(e, func(t *Task, r *Run) error {
			if r.EndRequestedAt == 0 {
				// The graces count from the first request: another one must
				// not put off the kill.
				r.EndRequestedAt = f.c.At
			}
			r.EndReason, r.EndDetail = d.Reason, d.Detail
			return nil
		})
	case *eventlog.ReclaimDeferred:
		return f.both(e, func(t *Task, r *Run) error {
			r.DeferredReason = d.Reason
			r.DeferredReasons = append(r.DeferredReasons, d.Reason)
			if d.ClaimExpires != 0 {
				r.ClaimExpires = d.ClaimExpires
			}
			return nil
		})

	case *eventlog.Reclaimed:
		return f.both(e, func(t *Task, r *Run) error {
			r.Error, r.Interrupted = d.Reason, d.Interrupted
			r.ExitCode, r.Signal = d.ExitCode, d.Signal
			f.end(t, r, OutReclaimed, d.To)
			f.gone(t, r)
			if !d.Interrupted {
				t.FreshFrom = f.seq
			}
			return nil
		})
	case *eventlog.Crashed:
		return f.ended(e, OutCrashed, d.End, func(r *Run) { r.Counted = true })
	case *eventlog.ProtocolViolation:
		return f.ended(e, OutCrashed, d.End, func(r *Run) { r.Violation = true })
	case *eventlog.RateLimited:
		return f.ended(e, OutRateLimited, d.End, nil)
	case *eventlog.TimedOut:
		return f.ended(e, OutTimedOut, d.End, func(r *Run) { r.Counted = true })
	case *eventlog.Stale:
		return f.ended(e, OutStale, d.End, nil)
	case *eventlog.SpawnFailed:
		return f.ended(e, OutSpawnFailed, d.End, func(r *Run) { r.Counted = !d.Infrastructure })
	case *eventlog.GaveUp:
		return f.task(e.Task, func(t *Task) error {
			t.Status, t.BlockKind, t.BlockReason = Blocked, NeedsInput, d.Reason
			t.HoldSince, t.HoldUntil, t.HoldReason = 0, 0, ""
			t.ParkedLimit = 0
			if !d.Sticky {
				// If the limit was lowered since, only one above the failures
				// on record frees the card.
				t.ParkedLimit = max(d.Limit, d.Failures)
			}
			return nil
		})

	case *eventlog.Completed:
		return f.answered(e, func(t *Task, r *Run) {
			r.Summary, r.Result, r.Metadata = d.Summary, d.Result, d.Metadata
			r.ExitCode = d.ExitCode
			t.Result = or(d.Result, d.Summary)
			if reviewed := f.reviewed(t); reviewed != nil && d.Result == "" {
				// The approval's own words are about the work, not the work.
				t.Result = or(or(reviewed.Result, reviewed.Summary), t.Result)
			}
			t.CompletedAt, t.LastError = f.c.At, ""
			t.BlockKind, t.BlockReason, t.ParkedLimit = "", "", 0
			t.WorkerBlockKind, t.WorkerBlocks = "", 0
			t.ReviewedRun = 0
			f.end(t, r, OutCompleted, Done)
			t.FreshFrom = f.seq
			if d.By == byCleanExit {
				f.gone(t, r)
			}
		})
	case *eventlog.ReviewRequested:
		return f.answered(e, func(t *Task, r *Run) {
			r.Summary, r.Result, r.Metadata, r.ExitCode = d.Summary, d.Result, d.Metadata, d.ExitCode
			t.Reviewer, t.ReviewedRun, t.LastError = d.Reviewer, r.ID, ""
			t.WorkerBlockKind, t.WorkerBlocks = "", 0
			t.BlockKind, t.BlockReason, t.ParkedLimit = "", "", 0
			f.end(t, r, OutReviewRequested, Review)
			if d.By == byCleanExit {
				f.gone(t, r)
			}
		})
	case *eventlog.ChangesRequested:
		return f.answered(e, func(t *Task, r *Run) {
			r.Error = d.Reason
			t.ReviewedRun, t.LastError = 0, d.Reason
			if e.Run == 0 {
				t.FreshFrom = f.seq // a person asks for another attempt
			}
			f.end(t, r, OutChangesRequested, d.To)
		})
	case *eventlog.Failed:
		return f.both(e, func(t *Task, r *Run) error {
			r.Error, r.Counted = d.Reason, true
			t.LastError = d.Reason
			f.end(t, r, OutFailed, d.To)
			f.hold(t, d.RetryAt, "back-off")
			return nil
		})
	case *eventlog.Deferred:
		if e.Run == 0 {
			return f.task(e.Task, func(t *Task) error {
				t.Status, t.NotBefore = d.To, d.RetryAt
				t.HoldSince, t.HoldUntil, t.HoldReason = 0, 0, ""
				return nil
			})
		}
		return f.both(e, func(t *Task, r *Run) error {
			r.Summary = d.Reason
			f.end(t, r, OutDeferred, d.To)
			f.hold(t, d.RetryAt, "deferred")
			return nil
		})
	case *eventlog.Blocked:
		block := func(t *Task) {
			t.HoldSince, t.HoldUntil, t.HoldReason, t.ParkedLimit = 0, 0, "", 0
			if d.To == Todo {
				t.Status, t.BlockKind, t.BlockReason = Todo, "", ""
				return
			}
			t.Status, t.BlockKind, t.BlockReason = Blocked, d.BlockKind, d.Reason
		}
		if e.Run == 0 {
			return f.task(e.Task, func(t *Task) error { block(t); return nil })
		}
		return f.both(e, func(t *Task, r *Run) error {
			if r.Open() {
				r.Summary = d.Reason
				f.end(t, r, OutBlocked, Blocked)
				if d.To == "" {
					t.WorkerBlocks = timesBlocked(t, d.BlockKind)
					t.WorkerBlockKind = d.BlockKind
				}
			}
			block(t)
			return nil
		})
	case *eventlog.BlockLoop:
		return f.task(e.Task, func(t *Task) error {
			t.Status = Triage
			return nil
		})

	case *eventlog.Archived:
		return f.task(e.Task, func(t *Task) error {
			if t.CurrentRun != 0 {
				return inconsistent("event %d archives card %s, whose run %d is open", f.seq, t.ID, t.CurrentRun)
			}
			t.Status, t.ReviewedRun = Archived, 0
			t.BlockKind, t.BlockReason, t.ParkedLimit = "", "", 0
			t.HoldSince, t.HoldUntil, t.HoldReason = 0, 0, ""
			return nil
		})
	case *eventlog.Unblocked:
		return f.task(e.Task, func(t *Task) error {
			t.Status, t.BlockReason, t.ParkedLimit = d.To, "", 0
			t.BlockKind, t.FreshFrom = "", f.seq
			return nil
		})
	case *eventlog.Assigned:
		return f.task(e.Task, func(t *Task) error {
			if t.Assignee != d.Assignee {
				t.FreshFrom = f.seq
			}
			t.Assignee = d.Assignee
			return nil
		})
	case *eventlog.Promoted:
		return f.task(e.Task, func(t *Task) error {
			t.Status = d.To
			t.BlockKind, t.BlockReason, t.ParkedLimit = "", "", 0
			if d.Reason == promotedByHand {
				t.NotBefore, t.FreshFrom = 0, f.seq
				t.WorkerBlockKind, t.WorkerBlocks = "", 0
				t.HoldSince, t.HoldUntil, t.HoldReason = 0, 0, ""
			}
			return nil
		})
	case *eventlog.Linked:
		return f.task(e.Task, func(t *Task) error {
			f.w.Put(tabParents, cat(under(t.ID), []byte(d.Parent)), nil)
			f.w.Put(tabChildren, cat(under(d.Parent), []byte(t.ID)), nil)
			t.Status = or(d.To, t.Status)
			return nil
		})
	case *eventlog.Unlinked:
		return f.task(e.Task, func(t *Task) error {
			f.w.Delete(tabParents, cat(under(t.ID), []byte(d.Parent)))
			f.w.Delete(tabChildren, cat(under(d.Parent), []byte(t.ID)))
			t.Status = or(d.To, t.Status)
			return nil
		})
	case *eventlog.Edited:
		return f.edited(e.Task, d)
	case *eventlog.Reopened:
		return f.task(e.Task, func(t *Task) error { f.again(t, d.To); return nil })
	case *eventlog.Paused:
		return f.paused(d)
	case *eventlog.Resumed:
		return f.resumed()
	case *eventlog.Retracted:
		return f.task(e.Task, func(t *Task) error { f.again(t, d.To); return nil })

	case *eventlog.Exited:
		return f.both(e, func(t *Task, r *Run) error {
			f.late(r, d.ExitCode, d.Signal)
			f.gone(t, r)
			return nil
		})
	case *eventlog.TerminalWorkerReaped:
		return f.both(e, func(t *Task, r *Run) error {
			f.late(r, d.ExitCode, d.Signal)
			f.gone(t, r)
			return nil
		})
	}
	return inconsistent("event %d has a kind the fold does not know: %T", f.seq, e.Data)
}

func (f *folder) claimed(id string, d *eventlog.Claimed) error {
	return f.task(id, func(t *Task) error {
		r := &Run{
			ID: f.seq, Task: id, Assignee: d.Assignee, Lane: d.Lane, Origin: d.Origin, Holder: d.Holder,
			StartedAt: f.c.At, Claimer: d.Claimer, Deadline: d.Deadline, TTLSeconds: d.TTLSeconds,
			OnCleanExit: d.OnCleanExit, MaxRuntimeSeconds: d.MaxRuntimeSeconds,
			Reviewer: d.Reviewer, Reviews: d.Reviews,
			ClaimExpires: d.Deadline,
		}
		return f.open(t, r)
	})
}

// open makes r the card's newest run; nothing of another may be there (I2).
func (f *folder) open(t *Task, r *Run) error {
	if t.CurrentRun != 0 || t.Worker != 0 {
		return inconsistent("event %d opens a second run of card %s", f.seq, t.ID)
	}
	t.Status, t.CurrentRun, t.LastRun = Running, r.ID, r.ID
	t.HoldSince, t.HoldUntil, t.HoldReason = 0, 0, ""
	if t.StartedAt == 0 {
		t.StartedAt = f.c.At
	}
	f.w.Put(tabTaskRuns, cat(under(t.ID), num(r.ID)), nil)
	putRun(f.w, r)
	return nil
}

// end closes a run and gives the card its next status. The worker's evidence
// stays until gone. It comes after everything that says how the run ended was
// set, since it looks at that.
func (f *folder) end(t *Task, r *Run, outcome, to string) {
	if !r.Open() {
		f.err = inconsistent("event %d ends run %d of card %s a second time", f.seq, r.ID, t.ID)
	}
	r.Outcome, r.EndedAt = outcome, f.c.At
	t.CurrentRun, t.Status = 0, to
	f.alike(r)
}

// gone drops the worker's evidence: from here on the card may run again.
func (f *folder) gone(t *Task, r *Run) {
	r.HasWorker = false
	r.PID, r.Fingerprint = 0, ""
	if t.Worker == r.ID {
		t.Worker = 0
	}
}

// late notes how the process of a closed run ended, beside its answer.
func (f *folder) late(r *Run, code *int64, signal string) {
	if code != nil || signal != "" {
		r.ExitCode, r.Signal = code, signal
	}
}

func (f *folder) hold(t *Task, until eventlog.Time, reason string) {
	if until != 0 {
		t.HoldSince, t.HoldUntil, t.HoldReason = f.c.At, until, reason
	}
}

// ended folds the kinds that close a run because its process ended.
func (f *folder) ended(e eventlog.Event, outcome string, d eventlog.End, mark func(*Run)) error {
	return f.both(e, func(t *Task, r *Run) error {
		r.Error, r.ExitCode, r.Signal = d.Error, d.ExitCode, d.Signal
		t.LastError = d.Error
		if mark != nil {
			mark(r)
		}
		f.end(t, r, outcome, d.To)
		f.gone(t, r)
		reason := "back-off"
		switch {
		case outcome == OutRateLimited:
			reason = "rate limit cool-down"
		case outcome == OutSpawnFailed && !r.Counted:
			reason = "the host refused to start it; cool-down"
		}
		f.hold(t, d.RetryAt, reason)
		return nil
	})
}

// task changes one card's row.
func (f *folder) task(id string, change func(*Task) error) error {
	was, err := f.kept(id)
	if err != nil {
		return err
	}
	if was == nil {
		return inconsistent("event %d concerns card %s, which was never created", f.seq, id)
	}
	now := *was
	if err := change(&now); err != nil {
		return err
	}
	if now.Status == Ready {
		// A review has ended where a card is ready. Logs of the formats 1 and 2
		// know of no other end of it.
		now.ReviewedRun = 0
	}
	putTask(f.w, was, &now)
	return nil
}

// kept is a card's row, which may belong to the tables.
func (f *folder) kept(id string) (*Task, error) {
	if m, ok := f.w.(rowKeeper); ok {
		return m.task(id), nil
	}
	return f.Task(id)
}

// both changes a card's row and the row of one of its runs.
func (f *folder) both(e eventlog.Event, change func(*Task, *Run) error) error {
	return f.task(e.Task, func(t *Task) error {
		r, err := f.Run(e.Run)
		if err != nil {
			return err
		}
		if r == nil || r.Task != t.ID {
			return inconsistent("event %d concerns run %d of card %s, which was never opened", f.seq, e.Run, e.Task)
		}
		if err := change(t, r); err != nil {
			return err
		}
		putRun(f.w, r)
		return nil
	})
}

// answered is both for an answer that may also open its own run: a card nobody
// claimed gets a run of no duration whose id is this event.
func (f *folder) answered(e eventlog.Event, change func(*Task, *Run)) error {
	if e.Run == 0 {
		err := f.task(e.Task, func(t *Task) error {
			return f.open(t, &Run{
				ID: f.seq, Task: t.ID, Assignee: t.Starter(), Lane: t.Lane(), Reviews: t.ReviewedRun,
				Origin: OriginManual, Holder: byHand(f.c.Actor), StartedAt: f.c.At,
			})
		})
		if err != nil {
			return err
		}
		e.Run = f.seq
	}
	return f.both(e, func(t *Task, r *Run) error { change(t, r); return nil })
}
