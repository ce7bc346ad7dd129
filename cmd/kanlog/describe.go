package main

import (
	"fmt"
	"strings"

	"kanlog/eventlog"
	"kanlog/projection"
)

// describe is the content of an event for people: what they would ask for
// first. --json has all of it.
func describe(d eventlog.Payload) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	quote := func(what, s string) {
		if s != "" {
			first, _, more := strings.Cut(s, "\n")
			if len(first) > 200 {
				first, more = shorten(first, 200), true
				first, _, _ = strings.Cut(first, "\n")
			}
			if more {
				first += " ..."
			}
			add("%s%s", what, first)
		}
	}
	end := func(e eventlog.End) {
		quote("", e.Error)
		if e.Signal != "" && !strings.Contains(e.Error, e.Signal) {
			add("signal %s", e.Signal)
		}
		if e.RetryAt != 0 {
			add("again from %s", e.RetryAt.Std().Format("15:04:05"))
		}
	}
	late := func(code *int64, signal string) {
		if code != nil {
			add("exit %d", *code)
		}
		quote("signal ", signal)
	}
	switch d := d.(type) {
	case *eventlog.Created:
		quote("", d.Title)
		quote("for ", d.Assignee)
		if len(d.Parents) > 0 {
			add("after %s", strings.Join(d.Parents, " "))
		}
		add("-> %s", d.Status)
	case *eventlog.Claimed:
		if d.Holder != "" {
			add("by %s", d.Holder)
		}
		until := "until"
		if d.Origin == projection.OriginDispatch {
			until = "supervisor due by"
		}
		add("%s, %s %s", d.Origin, until, d.Deadline.Std().Format("15:04:05"))
	case *eventlog.Spawned:
		add("supervisor pid %d", d.PID)
	case *eventlog.Exited:
		late(d.ExitCode, d.Signal)
		quote("", d.Evidence)
	case *eventlog.TerminalWorkerReaped:
		late(d.ExitCode, d.Signal)
		quote("", d.Evidence)
	case *eventlog.Heartbeat:
		quote("", d.Note)
	case *eventlog.ClaimExtended:
		add("pid %d is alive, until %s", d.WorkerPID, d.ClaimExpiresNow.Std().Format("15:04:05"))
	case *eventlog.Reclaimed:
		quote("", d.Reason)
		quote("", d.Warning)
		add("-> %s", d.To)
	case *eventlog.ReclaimDeferred:
		quote("", d.Reason)
	case *eventlog.TerminationRequested:
		quote("", d.Reason)
		quote("", d.Detail)
	case *eventlog.Crashed:
		end(d.End)
	case *eventlog.ProtocolViolation:
		end(d.End)
	case *eventlog.RateLimited:
		end(d.End)
	case *eventlog.TimedOut:
		end(d.End)
	case *eventlog.Stale:
		end(d.End)
	case *eventlog.SpawnFailed:
		end(d.End)
	case *eventlog.GaveUp:
		quote("", d.Reason)
	case *eventlog.Completed:
		quote("", d.Summary)
		quote("result ", d.Result)
	case *eventlog.ReviewRequested:
		quote("", d.Summary)
		quote("reviewer ", d.Reviewer)
	case *eventlog.Failed:
		quote("", d.Reason)
	case *eventlog.Deferred:
		quote("", d.Reason)
		add("until %s", d.RetryAt)
	case *eventlog.Blocked:
		quote("", d.Reason)
		quote("-> ", d.To)
	case *eventlog.BlockLoop:
		add("%s, %d times in a row, -> triage", d.BlockKind, d.Times)
	case *eventlog.ChangesRequested:
		quote("", d.Reason)
		add("work of run %d, -> %s", d.Reviewed, d.To)
	case *eventlog.Linked:
		add("waits for %s", d.Parent)
		quote("-> ", d.To)
	case *eventlog.Unlinked:
		add("no longer waits for %s", d.Parent)
		quote("-> ", d.To)
	case *eventlog.Edited:
		parts = append(parts, edited(d)...)
	case *eventlog.Reopened:
		quote("", d.Reason)
		add("-> %s", d.To)
	case *eventlog.Retracted:
		add("%s was reopened, %s -> %s", d.Ancestor, d.From, d.To)
	case *eventlog.Archived:
		quote("", d.Reason)
	case *eventlog.Paused:
		quote("", d.Reason)
	case *eventlog.Resumed: // the kind says it all
	case *eventlog.Unblocked:
		add("-> %s", d.To)
	case *eventlog.Assigned:
		add("%s -> %s", orDash(d.From), orDash(d.Assignee))
	case *eventlog.Promoted:
		add("%s -> %s", d.Reason, d.To)
	case *eventlog.Commented:
		quote("", d.Text)
	case *eventlog.Fenced:
		open := "no run is open"
		if d.Current != 0 {
			open = fmt.Sprintf("the open run is %d", d.Current)
		}
		add("%s by run %d refused, %s", d.Verb, d.Presented, open)
	default:
		add("%s", compact(d))
	}
	return strings.Join(parts, ", ")
}

// edited names the fields that were changed and what they are now.
func edited(d *eventlog.Edited) (parts []string) {
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	words := func(name string, s *string) {
		switch {
		case s == nil:
		case *s == "":
			add("%s: none", name)
		default:
			first, _, _ := strings.Cut(shorten(*s, 100), "\n")
			add("%s: %s", name, first)
		}
	}
	words("title", d.Title)
	if d.Body != nil {
		add("body: %d bytes", len(*d.Body))
	}
	if d.Priority != nil {
		add("priority: %d", *d.Priority)
	}
	words("tenant", d.Tenant)
	if d.NoTags || len(d.Tags) > 0 {
		add("tags: %s", orDash(strings.Join(d.Tags, " ")))
	}
	if d.MaxRuntimeSeconds != nil {
		add("max runtime: %ds", *d.MaxRuntimeSeconds)
	}
	if d.MaxRetries != nil {
		add("max retries: %d", *d.MaxRetries)
	}
	if d.NotBefore != nil {
		add("not before: %s", *d.NotBefore)
	}
	words("result", d.Result)
	words("reviewer", d.Reviewer)
	if d.To != "" {
		add("-> %s", d.To)
	}
	return parts
}
