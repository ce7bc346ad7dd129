package main

import (
	"fmt"
	"strings"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// teller tells the events of one card in plain sentences. It remembers what a sentence
// needs of the events before: when runs began.
type teller struct {
	began  map[uint64]eventlog.Time
	lasted time.Duration // of all commands, as far as they have ended
	runs   int
}

func newTeller() *teller {
	return &teller{began: map[uint64]eventlog.Time{}}
}

// who names an actor in a sentence.
func who(actor string) string {
	kind, rest, _ := strings.Cut(actor, ":")
	switch kind {
	case "operator":
		return rest
	case "dispatcher":
		return "the dispatcher"
	case "supervisor":
		_, run, _ := strings.Cut(rest, "/")
		return "the supervisor of run " + run
	case "worker":
		task, run, _ := strings.Cut(rest, "/")
		return fmt.Sprintf("the worker of %s (run %s)", task, run)
	}
	return actor
}

// after is for how long a run's command had run, or that it never did.
func (s *teller) after(run uint64, at eventlog.Time) string {
	began, ok := s.began[run]
	if !ok {
		return " without having started"
	}
	d := at.Since(began)
	s.lasted += d
	delete(s.began, run)
	return " after " + length(d)
}

// length is a duration as a person says it, to the second or finer.
func length(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// because is what follows a sentence, "" for nothing.
func because(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	first, _, more := strings.Cut(text, "\n")
	if more {
		first += " ..."
	}
	return ": " + shorten(first, 300)
}

// again is when a card goes on.
func again(to string, at, from eventlog.Time) string {
	if from > at {
		return fmt.Sprintf("; it may start again in %s", length(from.Since(at)))
	}
	return "; it is " + to
}

// tell is the sentence for event i of a commit.
func (s *teller) tell(c eventlog.Commit, i int) string {
	e, run := c.Events[i], c.RunOf(i)
	by := who(c.Actor)
	if own := fmt.Sprintf("worker:%s/%d", e.Task, run); c.Actor == own {
		by = fmt.Sprintf("the worker of run %d", run)
	}
	ended := func(how string, d eventlog.End) string {
		return fmt.Sprintf("run %d %s%s%s%s", run, how, s.after(run, c.At), because(d.Error), again(d.To, c.At, d.RetryAt))
	}
	switch d := e.Data.(type) {
	case *eventlog.Created:
		words := fmt.Sprintf("%s made it%s", by, because(d.Title))
		if d.Assignee != "" {
			words += ", for " + d.Assignee
		}
		if len(d.Parents) > 0 {
			words += ", after " + strings.Join(d.Parents, " and ")
		}
		return words + "; it is " + d.Status
	case *eventlog.Claimed:
		s.runs++
		switch d.Origin {
		case projection.OriginDispatch:
			return fmt.Sprintf("%s claimed it for %s: run %d", by, d.Assignee, run)
		case projection.OriginWork:
			return fmt.Sprintf("%s took it as a pull worker: run %d", by, run)
		}
		return fmt.Sprintf("%s claimed it by hand until %s: run %d", orDash(d.Holder, by), d.Deadline.Std().Format("15:04:05"), run)
	case *eventlog.Spawned:
		s.began[run] = c.At
		return fmt.Sprintf("run %d started its command (supervisor %d)", run, d.PID)
	case *eventlog.Heartbeat:
		return fmt.Sprintf("run %d is at work%s", run, because(d.Note))
	case *eventlog.ClaimExtended:
		return fmt.Sprintf("the lease of run %d ran out; its supervisor %d is alive, so it goes on", run, d.WorkerPID)
	case *eventlog.TerminationRequested:
		words := fmt.Sprintf("%s asked for the end of run %d: %s", by, run, endReason(d.Reason))
		if d.Detail != "" {
			words += " (" + shorten(d.Detail, 200) + ")"
		}
		return words
	case *eventlog.ReclaimDeferred:
		return fmt.Sprintf("run %d cannot be ended%s", run, because(d.Reason))
	case *eventlog.Reclaimed:
		return fmt.Sprintf("run %d was taken back%s%s; it is %s", run, s.after(run, c.At), because(d.Reason), d.To)
	case *eventlog.Crashed:
		return ended("crashed", d.End)
	case *eventlog.ProtocolViolation:
		return ended("ended and gave no answer", d.End)
	case *eventlog.RateLimited:
		return ended("asked to be tried later", d.End)
	case *eventlog.TimedOut:
		return ended("was ended for its time", d.End)
	case *eventlog.Stale:
		return ended("was ended because it fell silent", d.End)
	case *eventlog.SpawnFailed:
		return ended("could not be started", d.End)
	case *eventlog.GaveUp:
		return fmt.Sprintf("the card is held%s", because(d.Reason))
	case *eventlog.Completed:
		how := by + " completed it"
		if d.By == "clean_exit" {
			how = fmt.Sprintf("run %d ended with 0, which completes it", run)
		} else if d.Reviewed != 0 {
			how = fmt.Sprintf("%s approved the work of run %d", by, d.Reviewed)
		}
		return how + s.answered(run, c.At) + because(either(d.Summary, d.Result))
	case *eventlog.ReviewRequested:
		whom := "a person"
		if d.Reviewer != "" {
			whom = d.Reviewer
		}
		return fmt.Sprintf("%s handed it in for review by %s%s%s", by, whom, s.answered(run, c.At), because(d.Summary))
	case *eventlog.ChangesRequested:
		return fmt.Sprintf("%s sent the work of run %d back%s", by, d.Reviewed, because(d.Reason))
	case *eventlog.Failed:
		return fmt.Sprintf("%s said that it failed%s%s%s", by, s.answered(run, c.At), because(d.Reason), again(d.To, c.At, d.RetryAt))
	case *eventlog.Deferred:
		return fmt.Sprintf("%s put it off by %s%s", by, length(d.RetryAt.Since(c.At)), because(d.Reason))
	case *eventlog.Blocked:
		if d.To != "" {
			return fmt.Sprintf("%s let it wait for what it depends on%s", by, because(d.Reason))
		}
		return fmt.Sprintf("%s blocked it (%s)%s", by, d.BlockKind, because(d.Reason))
	case *eventlog.BlockLoop:
		return fmt.Sprintf("it was blocked for the same kind of reason %d times in a row, so it is in triage", d.Times)
	case *eventlog.Unblocked:
		return fmt.Sprintf("%s unblocked it; it is %s", by, d.To)
	case *eventlog.Assigned:
		return fmt.Sprintf("%s gave it to %s", by, orDash(d.Assignee, "nobody"))
	case *eventlog.Promoted:
		return fmt.Sprintf("it is %s now (%s)", d.To, d.Reason)
	case *eventlog.Commented:
		return fmt.Sprintf("%s wrote%s", orDash(d.Author, by), because(d.Text))
	case *eventlog.Fenced:
		return fmt.Sprintf("a late %s of run %d was refused", d.Verb, d.Presented)
	case *eventlog.Archived:
		return by + " put it away" + because(d.Reason)
	case *eventlog.Linked:
		return fmt.Sprintf("%s made it wait for %s", by, d.Parent)
	case *eventlog.Unlinked:
		return fmt.Sprintf("%s took away that it waits for %s", by, d.Parent)
	case *eventlog.Edited:
		return by + " edited it: " + strings.Join(edited(d), ", ")
	case *eventlog.Reopened:
		return by + " reopened it" + because(d.Reason) + "; it is " + d.To
	case *eventlog.Retracted:
		return fmt.Sprintf("%s, which it was built on, was reopened; it was %s and is %s", d.Ancestor, d.From, d.To)
	case *eventlog.Exited:
		return fmt.Sprintf("the process of run %d ended%s", run, because(exitWords(d.ExitCode, d.Signal)))
	case *eventlog.TerminalWorkerReaped:
		return fmt.Sprintf("the process of run %d, which lived on after its answer, was ended", run)
	}
	return strings.TrimSuffix(string(e.Kind())+": "+describe(e.Data), ": ")
}

// answered is after for an answer, whose process may live on.
func (s *teller) answered(run uint64, at eventlog.Time) string {
	if _, ok := s.began[run]; !ok {
		return ""
	}
	return s.after(run, at)
}

// either is the first that says something.
func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// endReason is why a run is to end, in words.
func endReason(reason string) string {
	switch reason {
	case projection.EndMaxRuntime:
		return "its time is over"
	case projection.EndHeartbeatStale:
		return "its heartbeats stopped"
	case projection.EndTerminalGrace:
		return "it lives on after its answer"
	case projection.EndOrphaned:
		return "its supervisor is gone"
	case projection.EndReopened:
		return "what it was built on was reopened"
	}
	return reason
}
