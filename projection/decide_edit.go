package projection

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"kanlog/eventlog"
)

// Changes is what an edit asks for; absent fields stay as they are.
type Changes struct {
	Title      *string
	Body       *string
	Priority   *int64
	Tenant     *string
	Tags       *[]string
	MaxRuntime *time.Duration // 0 for the profile's, NoLimit for none
	MaxRetries *int64         // 0 for the settings'
	NotBefore  *eventlog.Time // 0 for at once
	Result     *string        // of a card that is done
	Reviewer   *string        // who reviews it, "" for a person
}

// Edit changes what a card asks for. A run that goes on has read it already; the
// next one sees it.
func Edit(id string, c Changes, l Limits, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if c == (Changes{}) {
			return Decision{}, invalid("nothing to change was given (kanlog help edit lists what can be)")
		}
		t, _, stop, err := fence(v, "edit", id, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		switch {
		case w.InWorker():
			return Decision{}, refuse(ErrState, id, "a worker does not edit its own card; use comment")
		case t.Status == Archived:
			return Decision{}, refuse(ErrState, id, "archived")
		case c.Result != nil && t.Status != Done:
			return Decision{}, refuse(ErrState, id, "%s; only a card that is done has a result to edit", t.Status)
		}
		if err := c.check(v, t); err != nil {
			return Decision{}, err
		}
		d := c.against(v, t)
		if reflect.DeepEqual(d, &eventlog.Edited{}) {
			return already(id, "it says so already"), nil
		}
		if d.NotBefore != nil {
			switch t.Status {
			case Ready, Scheduled, Review:
				due := *t
				due.NotBefore = *d.NotBefore
				to, err := statusWithout(v, &due, now, "")
				if err != nil {
					return Decision{}, err
				}
				if to != t.Status {
					d.To = to
				}
			}
		}
		events := []eventlog.Event{event(id, 0, d)}
		more, err := limited(v, t, d, l, now)
		return decided(id, append(events, more...)...), err
	}
}

// check holds the card as it would be to the bounds of a new one.
func (c Changes) check(v View, t *Task) error {
	d := Draft{
		Title: t.Title, Body: v.Body(t.ID), Priority: t.Priority, Tenant: t.Tenant, Tags: t.Tags,
		WorkspaceKind: Scratch,
	}
	set(&d.Title, c.Title)
	set(&d.Body, c.Body)
	set(&d.Priority, c.Priority)
	set(&d.Tenant, c.Tenant)
	set(&d.Tags, c.Tags)
	set(&d.MaxRuntime, c.MaxRuntime)
	set(&d.MaxRetries, c.MaxRetries)
	if c.Reviewer != nil {
		if err := checkName("the reviewer", *c.Reviewer); err != nil {
			return err
		}
	}
	if c.Result != nil {
		if err := checkText("the result", *c.Result, MaxResult); err != nil {
			return err
		}
	}
	return d.check()
}

// against leaves of the changes what differs from the card.
func (c Changes) against(v View, t *Task) *eventlog.Edited {
	d := &eventlog.Edited{
		Title: differs(c.Title, t.Title), Priority: differs(c.Priority, t.Priority), Tenant: differs(c.Tenant, t.Tenant),
		MaxRetries: differs(c.MaxRetries, t.MaxRetries), NotBefore: differs(c.NotBefore, t.NotBefore), Result: differs(c.Result, t.Result),
		Reviewer: differs(c.Reviewer, t.Reviewer),
	}
	if c.Body != nil {
		d.Body = differs(c.Body, v.Body(t.ID))
	}
	if c.Tags != nil && !slices.Equal(*c.Tags, t.Tags) {
		d.Tags, d.NoTags = *c.Tags, len(*c.Tags) == 0
	}
	if c.MaxRuntime != nil {
		seconds := limitSeconds(*c.MaxRuntime)
		d.MaxRuntimeSeconds = differs(&seconds, t.MaxRuntimeSeconds)
	}
	return d
}

func differs[T comparable](to *T, is T) *T {
	if to == nil || *to == is {
		return nil
	}
	return to
}

// limited is what follows from a new limit of a card's own: one that a plain
// gave_up holds goes on if it has not failed that often, and one that would go on
// has used up its budget if it has.
func limited(v View, t *Task, d *eventlog.Edited, l Limits, now eventlog.Time) ([]eventlog.Event, error) {
	if d.MaxRetries == nil || !goesOn(t) {
		return nil, nil
	}
	c, err := v.CountsOf(t)
	if err != nil {
		return nil, err
	}
	as := *t
	set(&as.MaxRetries, d.MaxRetries)
	set(&as.NotBefore, d.NotBefore)
	limit, source := l.failureLimit(&as)
	switch spent := c.Failures >= limit; {
	case spent && t.Status != Blocked:
		return []eventlog.Event{event(t.ID, 0, &eventlog.GaveUp{
			Budget: "failures", Failures: c.Failures, Limit: limit, LimitSource: source,
			Reason: cut(fmt.Sprintf("%d of %d attempts failed; the last: %s", c.Failures, limit, t.LastError), MaxReason),
		})}, nil
	case spent || t.Status != Blocked:
		return nil, nil
	}
	to, err := statusWithout(v, &as, now, "")
	return []eventlog.Event{event(t.ID, 0, &eventlog.Promoted{To: to, Reason: "limit_raised"})}, err
}
