package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"kanlog/eventlog"
)

// whyAt is why at a moment of the past.
func (a *app) whyAt(at string, args []string) error {
	m, err := a.momentOf(at)
	if err != nil {
		return err
	}
	if err := a.goTo(m); err != nil {
		return err
	}
	moment := newPastJSON(a.past)
	verb := a.whyAll
	if len(args) == 1 {
		verb = func() error { return a.why(args[0]) }
	}
	var last *lastDecision
	if len(args) == 1 {
		if last, err = a.decidedLast(args[0]); err != nil {
			return err
		}
	}
	if !a.asJSON {
		if err := a.printf("as of %s\n", clean(moment.inWords(), false)); err != nil {
			return err
		}
		if err := verb(); err != nil || last == nil {
			return err
		}
		return a.printf("%s", clean(a.decidedInWords(last), true))
	}
	answer, err := a.captured(verb)
	if err != nil {
		return err
	}
	form := map[string]any{"moment": moment, "why": json.RawMessage(answer)}
	if last != nil {
		form["decision"] = newEventJSON(last.commit, last.event)
	}
	return a.json(form)
}

// lastDecision is what was decided about a card last.
type lastDecision struct {
	commit eventlog.Commit
	event  int
}

// noDecisions are events that change nothing about what becomes of a card.
var noDecisions = []eventlog.Kind{eventlog.KindCommented, eventlog.KindHeartbeat, eventlog.KindFenced}

// decidedLast finds it, in what the past knows of.
func (a *app) decidedLast(prefix string) (last *lastDecision, err error) {
	id, err := a.resolve(prefix)
	if err != nil {
		return nil, err
	}
	return last, a.past.TaskCommits(id, 0, func(c eventlog.Commit) error {
		for i, e := range c.Events {
			if e.Task == id && !slices.Contains(noDecisions, e.Kind()) {
				last = &lastDecision{c, i}
			}
		}
		return nil
	})
}

// decidedInWords says what was decided and on what.
func (a *app) decidedInWords(d *lastDecision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "decided last, %s before:\n%s\n", length(a.now.Since(d.commit.At)), a.eventLine(d.commit, d.event))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "       %-9s %s\n", name, text)
		}
	}
	for _, e := range d.commit.Events {
		if e.Task != d.commit.Events[d.event].Task {
			continue
		}
		line("evidence", evidenceOn(e.Data))
		line("limits", limitsOn(e.Data))
		if c, ok := e.Data.(*eventlog.Claimed); ok && c.BoardCap > 0 {
			caps := fmt.Sprintf("%d of %d running on the board", c.Active, c.BoardCap)
			if c.AssigneeCap > 0 {
				caps += fmt.Sprintf(", %d of %d of %s", c.ActiveAssignee, c.AssigneeCap, c.Assignee)
			}
			line("caps", caps)
		}
	}
	return b.String()
}

// evidenceOn is the evidence that an event names.
func evidenceOn(p eventlog.Payload) string {
	fields := struct {
		Evidence string `json:"evidence"`
	}{}
	if text, err := json.Marshal(p); err == nil {
		_ = json.Unmarshal(text, &fields) // one without evidence has none
	}
	return fields.Evidence
}

// limitsOn are the limits that an event names.
func limitsOn(p eventlog.Payload) string {
	w, ok := p.(interface{ By() **eventlog.Limits })
	if !ok || *w.By() == nil {
		return ""
	}
	l, us := *w.By(), func(n int64) string { return (time.Duration(n) * time.Microsecond).String() }
	return fmt.Sprintf("failure_limit %d, violation_limit %d, block_limit %d, retry_backoff %s (at most %s), rate_limit_cooldown %s",
		l.FailureLimit, l.ViolationLimit, l.BlockLimit, us(l.RetryBackoffUS), us(l.MaxBackoffUS), us(l.RateLimitCooldownUS))
}
