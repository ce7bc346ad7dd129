package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
	"kanlog/tick"
)

type decisionsJSON struct {
	Retaken int               `json:"retaken"`
	Differ  []differingJSON   `json:"differ"`
	Untold  map[string]int    `json:"untold"`
	Set     map[string]string `json:"set"`
}

type differingJSON struct {
	Seq   uint64        `json:"seq"`
	At    eventlog.Time `json:"at"`
	Task  any           `json:"task"`
	Run   any           `json:"run"`
	Actor string        `json:"actor"`
	Was   string        `json:"was"`
	Now   string        `json:"now"`
}

// replayDecisions takes every decision on record once more.
func (a *app) replayDecisions(r replaying) error {
	what, set, err := whatIf(r.set)
	if err != nil {
		return err
	}
	store, task, told, done, err := a.overLog(r.task)
	if err != nil {
		return err
	}
	defer done()
	profiles := map[string]bool{}
	d, err := retakeAll(store, task, what, told, profiles)
	if err != nil {
		return err
	}
	done()
	d.Set = set
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if profile, _, ok := strings.Cut(name, "."); ok && !profiles[profile] {
			a.warn("--set %s changes nothing: no run on this board was one of %q", name, profile)
		}
	}
	if a.asJSON {
		err = a.json(d)
	} else {
		err = a.printDecisions(d)
	}
	if err == nil && len(d.Differ) > 0 && len(set) == 0 {
		return &codedError{exitFailed}
	}
	return err
}

// retakeAll takes the decisions of a log once more, each on the board before it, and notes
// the profiles that its runs were of.
func retakeAll(store *projection.Store, task string, what tick.WhatIf, told func(uint64), profiles map[string]bool) (*decisionsJSON, error) {
	d := &decisionsJSON{Differ: []differingJSON{}, Untold: map[string]int{}}
	past := store.Before()
	return d, store.Commits(1, func(c eventlog.Commit) error {
		told(c.Number)
		for _, e := range c.Events {
			if claimed, ok := e.Data.(*eventlog.Claimed); ok {
				profiles[claimed.Assignee] = true
			}
		}
		if task == "" || c.Events[0].Task == task {
			err := past.View(func(v projection.View) error {
				r, err := tick.Retake(v, c, what)
				d.note(r)
				return err
			})
			if err != nil {
				return fmt.Errorf("commit %d: %w", c.Number, err)
			}
		}
		return past.Apply(c)
	})
}

func (d *decisionsJSON) note(r projection.Retaken) {
	switch {
	case r.Untold != "":
		d.Untold[r.Untold]++
		return
	case r.Differs():
		d.Differ = append(d.Differ, differingJSON{r.Seq, r.At, text(r.Task), count(r.Run), r.Actor, r.Was, r.Now})
	}
	d.Retaken++
}

func (a *app) printDecisions(d *decisionsJSON) error {
	for _, r := range d.Differ {
		card, run := "the board", ""
		if r.Task != nil {
			card = fmt.Sprint(r.Task)
		}
		if r.Run != nil {
			run = fmt.Sprintf("/%v", r.Run)
		}
		words := fmt.Sprintf("%5d  %s  %s%s by %s\n       on record: %s\n       today:     %s", r.Seq, r.At.Std().Format("2006-01-02 15:04:05"),
			card, run, r.Actor, r.Was, r.Now)
		if err := a.printf("%s\n", clean(words, true)); err != nil {
			return err
		}
	}
	words := fmt.Sprintf("%s taken once more, %d would come out otherwise", plural(d.Retaken, "decision", "decisions"), len(d.Differ))
	for _, why := range slices.Sorted(maps.Keys(d.Untold)) {
		words += fmt.Sprintf("\n%s not: %s", plural(d.Untold[why], "was", "were"), why)
	}
	return a.printf("%s\n", clean(words, true))
}

// whatIf reads the values of --set.
func whatIf(set []string) (w tick.WhatIf, values map[string]string, err error) {
	values = map[string]string{}
	var limits []func(*projection.Limits)
	var policy []func(*tick.Policy)
	var caps []func(string, *projection.Caps)
	var runtimes []func(string, *time.Duration)
	for _, s := range set {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return w, nil, usage("--set %q is not of the form failure_limit=5", s)
		}
		if _, twice := values[name]; twice {
			return w, nil, usage("--set %s is given twice", name)
		}
		values[name] = value
		profile, key, ofProfile := strings.Cut(name, ".")
		if !ofProfile {
			profile, key = "", name
		}
		mine := func(assignee string) bool { return !ofProfile || assignee == profile }
		n, numberErr := strconv.ParseInt(value, 10, 32)
		d, durationErr := parseDuration(value)
		number, span := func(fn func()) error {
			if numberErr != nil || n < 1 {
				return usage("--set %s: %q is no number of at least 1", name, value)
			}
			fn()
			return nil
		}, func(fn func()) error {
			if durationErr != nil {
				return usage("--set %s: %v", name, durationErr)
			}
			fn()
			return nil
		}
		switch {
		case key == "failure_limit" && !ofProfile:
			err = number(func() { limits = append(limits, func(l *projection.Limits) { l.FailureLimit = n }) })
		case key == "violation_limit" && !ofProfile:
			err = number(func() { limits = append(limits, func(l *projection.Limits) { l.ViolationLimit = n }) })
		case key == "block_limit" && !ofProfile:
			err = number(func() { limits = append(limits, func(l *projection.Limits) { l.BlockLimit = n }) })
		case key == "retry_backoff" && !ofProfile:
			err = span(func() { limits = append(limits, func(l *projection.Limits) { l.RetryBackoff = d }) })
		case key == "rate_limit_cooldown" && !ofProfile:
			err = span(func() { limits = append(limits, func(l *projection.Limits) { l.RateLimitCooldown = d }) })
		case key == "heartbeat_stale" && !ofProfile:
			err = span(func() { policy = append(policy, func(p *tick.Policy) { p.Limits.HeartbeatStale = d }) })
		case key == "terminal_grace" && !ofProfile:
			err = span(func() { policy = append(policy, func(p *tick.Policy) { p.TerminalGrace = d }) })
		case key == "max_runtime":
			err = span(func() {
				runtimes = append(runtimes, func(assignee string, limit *time.Duration) {
					if mine(assignee) {
						*limit = d
					}
				})
			})
		case key == "max_in_progress":
			err = number(func() {
				caps = append(caps, func(assignee string, c *projection.Caps) {
					switch {
					case !ofProfile:
						c.Board = int(n)
					case mine(assignee):
						c.Profile = int(n)
					}
				})
			})
		default:
			err = usage("--set %s: no such setting, or none that decisions on record can be taken by; there are failure_limit, violation_limit, block_limit, retry_backoff, rate_limit_cooldown, heartbeat_stale, terminal_grace, max_runtime, max_in_progress, and PROFILE.max_runtime, PROFILE.max_in_progress", name)
		}
		if err != nil {
			return w, nil, err
		}
	}
	if limits != nil {
		w.Limits = func(l *projection.Limits) { each(limits, l) }
	}
	if policy != nil {
		w.Policy = func(p *tick.Policy) { each(policy, p) }
	}
	if caps != nil {
		w.Caps = func(assignee string, c *projection.Caps) {
			for _, fn := range caps {
				fn(assignee, c)
			}
		}
	}
	if runtimes != nil {
		w.MaxRuntime = func(assignee string, limit *time.Duration) {
			for _, fn := range runtimes {
				fn(assignee, limit)
			}
		}
	}
	return w, values, nil
}

func each[T any](list []func(*T), v *T) {
	for _, fn := range list {
		fn(v)
	}
}
