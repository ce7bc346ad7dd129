package main

import (
	"fmt"
	"slices"
	"strings"

	"kanlog/tick"
)

// Bounds of what a tick's report says to people: a tick that did much says it on one
// screen, and list, ps and --json tell the rest.
const (
	reportNamed   = 6  // cards on one line
	reportReasons = 10 // lines of one kind
)

// reportText is what a tick did: one line for each kind of thing, one for each
// reason where there are any.
func reportText(rep *tick.Report) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	would := ""
	if rep.DryRun {
		would = "would be "
	}
	if rep.SkippedLocked {
		line("another dispatch is at work on this board; nothing done")
	}
	expired := func(id string) bool { return slices.Contains(rep.Expired, id) }
	for _, part := range []struct {
		what string
		ids  []string
	}{
		{"promoted", rep.Promoted}, {"reclaimed", slices.DeleteFunc(slices.Clone(rep.Reclaimed), expired)}, {"extended", rep.Extended},
		{"asked to end", rep.EndRequested}, {"end deferred", rep.Deferred},
		{"crashed", rep.Crashed}, {"rate limited", rep.RateLimited}, {"ended without an answer", rep.ProtocolViolations},
		{"timed out", rep.TimedOut}, {"stale", rep.Stale}, {"ended after its answer", rep.ReapedTerminalWorkers},
		{"completed", rep.Completed}, {"waiting for review", rep.ReviewRequested}, {"gone after their answer", rep.Exited}, {"blocked", rep.AutoBlocked},
	} {
		if len(part.ids) > 0 {
			line("%s%s: %s", would, part.what, named(part.ids))
		}
	}
	if len(rep.Expired) > 0 {
		line("claim by hand ran out, %sheld for a person (kanlog unblock ID): %s", would, named(rep.Expired))
	}
	for _, g := range grouped(rep.Spawned, func(s tick.Spawned) (string, string) { return s.Task, s.Assignee }) {
		s := rep.Spawned[slices.IndexFunc(rep.Spawned, func(s tick.Spawned) bool { return s.Task == g.ids[0] })]
		if len(g.ids) == 1 && !rep.DryRun {
			line("started: %s run %d (%s, pid %d)", s.Task, s.Run, clean(s.Assignee, false), s.PID)
			continue
		}
		line("%sstarted: %s (%s)", would, named(g.ids), clean(s.Assignee, false))
	}
	reasons(line, "not started", grouped(rep.SpawnFailed, func(f tick.SpawnFailed) (string, string) { return f.Task, f.Error }))
	for _, p := range rep.Paused {
		line("held back: %s", clean(p.Reason, false))
	}
	waiting := slices.DeleteFunc(slices.Clone(rep.Waiting), func(w tick.Waiting) bool { return slices.Contains(rep.NotWaiting, w) })
	reasons(line, "waits", grouped(waiting, func(w tick.Waiting) (string, string) { return w.Task, w.Reason }))
	if rep.WaitingMore {
		line("waits: more cards than a dispatch reads (kanlog list --why shows all)")
	}
	for _, w := range rep.NotWaiting {
		line("nothing to start: %s is %s", w.Task, clean(w.Reason, false))
	}
	if b.Len() == 0 {
		line("nothing to do")
	}
	return b.String()
}

// named are cards in a line, a few of them.
func named(ids []string) string {
	if more := len(ids) - reportNamed; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:reportNamed], " "), more)
	}
	return strings.Join(ids, " ")
}

// group are the cards of which the same is said.
type group struct {
	why string
	ids []string
}

// grouped puts together of which the same is said, in the order of the first of
// each. What is said may name its card.
func grouped[T any](list []T, of func(T) (id, why string)) (groups []group) {
	at := map[string]int{}
	for _, one := range list {
		id, why := of(one)
		key := strings.ReplaceAll(why, id, "ID")
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			groups = append(groups, group{why: why})
		}
		g := &groups[i]
		if g.ids = append(g.ids, id); len(g.ids) > 1 {
			g.why = key
		}
	}
	return groups
}

// reasons prints a line for each group, a few of them.
func reasons(line func(format string, args ...any), what string, groups []group) {
	for i, g := range groups {
		if i == reportReasons {
			more := 0
			for _, g := range groups[i:] {
				more += len(g.ids)
			}
			line("%s: %d more, for other reasons (kanlog list --why)", what, more)
			return
		}
		line("%s: %s: %s", what, named(g.ids), clean(g.why, false))
	}
}
