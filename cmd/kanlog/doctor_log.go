package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// tailCommits bounds how far back the log is read: a log of years costs no more.
const tailCommits = 1000

// newest returns the last commits of the log, oldest first.
func (d *doctor) newest() ([]eventlog.Commit, error) {
	if d.tail != nil || d.head.Commit == 0 {
		return d.tail, nil
	}
	from := uint64(1)
	if d.head.Commit > tailCommits {
		from = d.head.Commit - tailCommits + 1
	}
	errEnd := errors.New("end")
	err := d.file.Read(from, func(c eventlog.Commit) error {
		d.tail = append(d.tail, c)
		if len(d.tail) == 2*tailCommits {
			return errEnd // somebody appends as fast as we read
		}
		return nil
	})
	if errors.Is(err, errEnd) {
		err = nil
	}
	return d.tail, err
}

// clockSlack is how far the newest commit may lie in the future.
const clockSlack = 2 * time.Minute

func (d *doctor) checkClock() ([]finding, error) {
	tail, err := d.newest()
	if err != nil || len(tail) == 0 {
		return nil, err
	}
	last := tail[len(tail)-1]
	ahead := last.At.Since(d.a.clock())
	if ahead <= clockSlack {
		return nil, nil
	}
	fix := "timedatectl set-ntp true"
	if os.Getenv("KANLOG_CLOCK_OFFSET") != "" {
		fix = "unset KANLOG_CLOCK_OFFSET"
	}
	return []finding{found(sevWarning, fmt.Sprintf("commit %d", last.Number),
		fmt.Sprintf("the newest commit (%d, by %s) lies %s in the future: %s, and here it is %s", last.Number, last.Actor, brief(ahead), last.At, d.a.now),
		"the clock is wrong or was: until it has caught up, leases, back-offs and limits are judged by wrong spans", fix)}, nil
}

// stalledAfter is how long a card that nothing holds may wait for a dispatch.
const stalledAfter = 5 * time.Minute

// checkStalled finds that nothing dispatches here. A dispatch that finds nothing
// to do leaves no event: that none was heard of counts only since there is
// something to do.
func (d *doctor) checkStalled() ([]finding, error) {
	if pid, _ := eventlog.Holder(d.a.files().dispatchLock()); pid != 0 {
		return nil, nil // at work; checkDispatchLock tells if it is stopped
	}
	tail, err := d.newest()
	if err != nil {
		return nil, err
	}
	waiting, err := d.startable()
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	t := tailOf(tail)
	var names []string
	longest := time.Duration(0)
	for _, w := range waiting {
		if since := t.startableSince(w); !t.dispatchedAfter(since) && d.a.now.Since(since) > stalledAfter {
			names = append(names, w.ID)
			longest = max(longest, d.a.now.Since(since))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	last := "none among the newest events"
	if t.dispatched != 0 {
		last = d.a.age(t.dispatched)
	}
	return []finding{found(sevWarning, "", fmt.Sprintf("nothing dispatches here: %s could start for up to %s (the last dispatch: %s)", some(names, maxFindings), brief(longest), last),
		"cards start when somebody runs a dispatch (from cron, a timer or a loop) or a daemon", d.run("dispatch"))}, nil
}

// checkDaemon finds that the board's daemon does not do what it said it would.
func (d *doctor) checkDaemon() ([]finding, error) {
	s := d.a.daemonOf()
	if s == nil {
		return nil, nil
	}
	subject := fmt.Sprintf("daemon %d", s.PID)
	why := "no card starts and no end is noticed on time; what runs goes on"
	if proc.NewProber().Stopped(s.PID) {
		return []finding{found(sevError, subject, fmt.Sprintf("the board's daemon, process %d, is stopped", s.PID), why, fmt.Sprintf("kill -CONT %d", s.PID))}, nil
	}
	late, stalled := s.stalled(d.a.now)
	if !stalled {
		return nil, nil
	}
	return []finding{found(sevError, subject,
		fmt.Sprintf("the board's daemon, process %d, is stalled: it last ended a tick %s and is %s late for the next one", s.PID, d.a.age(s.Looked), brief(late)),
		why, fmt.Sprintf("kill -KILL %d; %s", s.PID, d.run("daemon")))}, nil
}

// startable returns the first card of each profile that the next dispatch would
// start.
func (d *doctor) startable() (first []*projection.Task, err error) {
	host := d.a.host(&d.set)
	err = d.view(func(v projection.View) error {
		full, err := tick.Full(v, d.set.dispatchPolicy(), host, d.a.now)
		if err != nil {
			return err
		}
		known := func(name string) bool { _, ok := d.set.policy.Profiles[name]; return ok }
		seen := map[string]bool{}
		add := func(t *projection.Task) bool {
			if name := t.Starter(); known(name) && !seen[name] && full(name) == "" {
				seen[name] = true
				first = append(first, t)
			}
			return false
		}
		for _, name := range v.ReadyAssignees() {
			if err := v.Ready(name, add); err != nil {
				return err
			}
		}
		for _, name := range v.Reviewers() {
			if err := v.InReview(name, add); err != nil {
				return err
			}
		}
		over, _, err := v.Held(d.a.now, 0, known)
		for _, t := range over {
			add(t)
		}
		return err
	})
	return first, err
}

// logTail is what the newest commits tell about dispatches and cards.
type logTail struct {
	dispatched eventlog.Time            // the newest commit of a dispatcher
	freed      eventlog.Time            // when a run last ended or answered: room for another
	card       map[string]eventlog.Time // when something last happened to a card
}

func tailOf(tail []eventlog.Commit) logTail {
	t := logTail{card: map[string]eventlog.Time{}}
	for _, c := range tail {
		who, _, _ := strings.Cut(c.Actor, ":")
		if who == "dispatcher" {
			t.dispatched = c.At
		}
		for _, e := range c.Events {
			switch e.Data.(type) {
			case *eventlog.Commented, *eventlog.Heartbeat, *eventlog.Fenced:
				continue // makes no card startable
			case *eventlog.Created, *eventlog.Spawned:
			default:
				if who == "worker" || who == "supervisor" {
					t.freed = c.At
				}
			}
			t.card[e.Task] = c.At
		}
	}
	return t
}

// startableSince is a moment from which on a card could have been started.
func (t logTail) startableSince(card *projection.Task) eventlog.Time {
	return max(card.CreatedAt, card.HoldUntil, t.card[card.ID], t.freed)
}

func (t logTail) dispatchedAfter(since eventlog.Time) bool { return t.dispatched > since }
