package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

// followEvery is how often a follower looks whether the store has changed if nobody
// tells it: two short reads, without the lock.
const followEvery = time.Second

func eventsCmd(a *app) *cobra.Command {
	var kinds []string
	var after uint64
	var limit int
	var follow bool
	var run uint64
	var actor, since, until string
	cmd := &cobra.Command{
		Use:   "events [ID]",
		Short: "Print the log, oldest first",
		Long: `events prints the log, one event per line, the oldest first; kanlog history tells
it of one card in sentences. What is given narrows it: events that fit all of it are
printed. --actor takes a whole actor (operator:ann), or the beginning of one up to a
colon or a slash (operator, worker:t_1a2b). --since and --until are times or how long
ago; a clock that was set back makes an event look older than those before it.`,
		Example: `  kanlog events t_1a2b
  kanlog events --kind crashed,gave_up --json
  kanlog events --actor operator --since 24h
  kanlog events --after 1200 --follow --json`,
		Args: between(0, 1, "at most one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, k := range kinds {
				if !slices.Contains(eventlog.Kinds(), eventlog.Kind(k)) {
					return usage("--kind %q is no kind of event; there are %s", k, kindList())
				}
			}
			if limit < 0 {
				return usage("--limit %d is negative", limit)
			}
			e := &eventPrinter{a: a, kinds: kinds, after: after, left: limit, bounded: limit > 0, ofOne: run, actor: actor}
			for _, t := range []struct {
				flag, text string
				to         *eventlog.Time
			}{{"since", since, &e.since}, {"until", until, &e.until}} {
				if t.text == "" {
					continue
				}
				at, err := a.timeOf(t.text)
				if err != nil {
					return usage("--%s %v", t.flag, err)
				}
				*t.to = at
			}
			switch {
			case e.until != 0 && e.until < e.since:
				return usage("--until %s lies before --since %s", until, since)
			case e.until != 0 && follow:
				return usage("--until and --follow: one of them")
			}
			if cmd.Flags().Changed("run") {
				if err := e.ofRun(); err != nil {
					return err
				}
			}
			if len(args) > 0 {
				id, err := a.resolve(args[0])
				if err != nil {
					return err
				}
				if e.task != "" && e.task != id {
					return notFound("no such run: %s has no run %d (kanlog runs %s shows all)", id, run, id)
				}
				e.task = id
			}
			return e.run(follow)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&kinds, "kind", nil, "only these kinds, separated by commas")
	f.Var(&number[uint64]{&after}, "after", "only events with a higher number")
	f.Var(&number[int]{&limit}, "limit", "at most this many (0: all)")
	f.Var(&number[uint64]{&run}, "run", "only events of this run")
	f.StringVar(&actor, "actor", "", "only what this actor decided, or all whose names begin so")
	f.StringVar(&since, "since", "", "only events from this time on (2026-11-30T14:00:00Z), or from so long ago (2h)")
	f.StringVar(&until, "until", "", "only events up to this time, or up to so long ago")
	f.BoolVar(&follow, "follow", false, "go on with what is appended, until interrupted")
	return cmd
}

func kindList() string {
	var names []string
	for _, k := range eventlog.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, " ")
}

// quietKinds only say that something goes on: who looks on is not told of them.
var quietKinds = []eventlog.Kind{eventlog.KindHeartbeat, eventlog.KindClaimExtended}

type eventPrinter struct {
	a       *app
	task    string
	kinds   []string
	skip    []eventlog.Kind
	after   uint64
	left    int
	bounded bool
	next    uint64 // the first commit not seen yet
	ofOne   uint64 // a run; 0: any
	actor   string // "": anybody
	since   eventlog.Time
	until   eventlog.Time // 0: without an end
	board   string        // said with each event where several boards are printed, else ""
}

var errEnough = errors.New("enough")

// ofRun narrows the reading to the card of the run.
func (p *eventPrinter) ofRun() error {
	return p.a.view(func(v projection.View) error {
		r, err := v.Run(p.ofOne)
		if err == nil && r == nil {
			return &notFoundError{fmt.Sprintf("no such run: %d", p.ofOne)}
		}
		if err == nil {
			p.task = r.Task
		}
		return err
	})
}

// fits tells whether an event is one of those that were asked for.
func (p *eventPrinter) fits(c eventlog.Commit, i int) bool {
	e := c.Events[i]
	switch {
	case c.Seq+uint64(i) <= p.after, p.task != "" && e.Task != p.task, slices.Contains(p.skip, e.Kind()),
		len(p.kinds) > 0 && !slices.Contains(p.kinds, string(e.Kind())),
		p.ofOne != 0 && c.RunOf(i) != p.ofOne, c.At < p.since, p.until != 0 && c.At > p.until:
		return false
	}
	rest, ok := strings.CutPrefix(c.Actor, p.actor)
	return ok && (p.actor == "" || rest == "" || rest[0] == ':' || rest[0] == '/')
}

func (p *eventPrinter) run(follow bool) error {
	store, err := p.a.board()
	if err != nil {
		return err
	}
	// The commit that holds event number after cannot be higher than after.
	p.next = 1
	if p.after > 0 {
		if p.next, err = store.CommitOf(p.after); err != nil {
			return err
		}
	}
	var hint <-chan struct{}
	if follow {
		m := p.a.watch()
		defer m.stop()
		hint = m.C
	}
	for {
		was := store.Stamp()
		if err := p.pass(store); err != nil {
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		}
		if !follow {
			return nil
		}
		for store.Stamp() == was {
			select {
			case <-hint:
			case <-time.After(followEvery):
			}
		}
	}
}

func (p *eventPrinter) pass(store *projection.Store) error {
	each := func(c eventlog.Commit) error {
		p.next = c.Number + 1
		return p.commit(c)
	}
	if p.task != "" {
		return store.TaskCommits(p.task, p.next, each)
	}
	return store.Commits(p.next, each)
}

func (p *eventPrinter) commit(c eventlog.Commit) error {
	for i := range c.Events {
		if !p.fits(c, i) {
			continue
		}
		if p.bounded && p.left == 0 {
			return errEnough
		}
		p.left--
		var err error
		if p.a.asJSON {
			j := newEventJSON(c, i)
			j.Board = p.board
			err = p.a.jsonLine(j)
		} else {
			line := p.a.eventLine(c, i)
			if p.board != "" {
				line = "board " + p.board + ": " + line
			}
			err = p.a.printf("%s\n", line)
		}
		if err != nil {
			return err
		}
	}
	if p.bounded && p.left == 0 {
		return errEnough
	}
	return nil
}

// eventLine is one event for people.
func (a *app) eventLine(c eventlog.Commit, i int) string {
	j := newEventJSON(c, i)
	run := ""
	if j.Run != nil {
		run = fmt.Sprintf("/%v", j.Run)
	}
	what := describe(c.Events[i].Data)
	if what != "" {
		what = ": " + what
	}
	return clean(fmt.Sprintf("%5d  %s  %s%s  %s by %s%s", j.Seq, c.At.Std().Format("2006-01-02 15:04:05"), cmp.Or(c.Events[i].Task, "the board"), run, j.Kind, c.Actor, what), false)
}
