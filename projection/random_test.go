package projection

import (
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	"kanlog/eventlog"
)

var walkSeed = flag.Int64("walk", 0, "seed of one random walk, as a failed TestRandomWalk prints it")

// TestRandomWalk throws commands at a board that are often late, foreign or
// wrong, under a clock that jumps, and checks after each what must never break.
// The fixed seeds together reach every kind of event.
func TestRandomWalk(t *testing.T) {
	const fixed, steps = 15, 400
	seeds := []int64{time.Now().UnixNano()}
	for seed := range int64(fixed) {
		seeds = append(seeds, seed+1)
	}
	if *walkSeed != 0 {
		seeds = []int64{*walkSeed}
	}
	reached := map[eventlog.Kind]int{}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := &walk{board: newBoard(t), r: rand.New(rand.NewSource(seed)), log: newWitness(), reached: map[eventlog.Kind]int{}}
			if seed <= fixed {
				w.reached = reached // what counts must not hang on the hour
			}
			w.auditor.fresh = eventlog.NewMem(w.s.Mem.UUID())
			for i := range steps {
				name, actor, do := w.command()
				if err := w.step(actor, do); err != nil {
					t.Fatalf("go test ./projection -run TestRandomWalk -walk %d\nstep %d, %s by %s: %v", seed, i, name, actor, err)
				}
			}
		})
	}
	if *walkSeed != 0 {
		return
	}
	for _, k := range eventlog.Kinds() {
		if reached[k] == 0 {
			t.Errorf("no walk reached an event %s: the walks prove less than they seem to", k)
		}
	}
}

type walk struct {
	*board
	r       *rand.Rand
	auditor auditor
	log     *witness
	reached map[eventlog.Kind]int
	titles  []string
}

// step runs a command and compares everything with everything.
func (w *walk) step(actor string, do Decider) error {
	head := w.head()
	if err := w.twice(do); err != nil {
		return err
	}
	_, err := w.try(actor, do)
	events := w.since(head.Commit)
	if err != nil {
		if errors.Is(err, ErrInconsistent) {
			return err
		}
		fenced := len(events) == 1 && events[0].Kind() == eventlog.KindFenced && errors.Is(err, ErrFenced)
		if len(events) > 0 && !fenced {
			return fmt.Errorf("refused with %q, yet it left %s", err, brief(events))
		}
	}
	if len(events) == 0 {
		if diff := compare(w.auditor.fresh, w.s.Mem); diff != "" {
			return errors.New("nothing was decided, yet " + diff)
		}
		return w.sameIndexes()
	}
	err = w.s.Mem.Read(head.Commit+1, func(c eventlog.Commit) error {
		for i, e := range c.Events {
			w.reached[e.Kind()]++
			if err := w.log.event(c.Actor, c.Seq+uint64(i), e); err != nil {
				return fmt.Errorf("%s: %w", brief(c.Events), err)
			}
		}
		return w.auditor.commit(c)
	})
	if err != nil {
		return err
	}
	if diff := compare(w.auditor.fresh, w.s.Mem); diff != "" {
		return errors.New(diff)
	}
	if err := w.flow(); err != nil {
		return fmt.Errorf("%s: %w", brief(events), err)
	}
	return w.sameIndexes()
}

// flow checks what holds between a card and what it waits for, whoever linked,
// reopened or put away what and when.
func (w *walk) flow() error {
	v := w.view()
	all, err := v.TasksAfter("", 1<<30)
	if err != nil {
		return err
	}
	for _, t := range all {
		open, err := v.openParents(t.ID, "")
		if err != nil {
			return err
		}
		switch t.Status {
		case Ready, Scheduled, Review, Done:
			if len(open) > 0 {
				return fmt.Errorf("card %s is %s, but waits for %s", t.ID, t.Status, nameParents(open))
			}
		case Todo:
			if len(open) == 0 {
				return fmt.Errorf("card %s waits in todo for nothing", t.ID)
			}
		}
		switch over := t.Status == Done || t.Status == Archived; {
		case over && t.ReviewedRun != 0, t.Status == Ready && t.ReviewedRun != 0, t.Status == Review && t.ReviewedRun == 0:
			return fmt.Errorf("card %s is %s with run %d in review", t.ID, t.Status, t.ReviewedRun)
		}
		for _, p := range v.Parents(t.ID) {
			if cycle := v.path(p, t.ID); cycle != nil {
				return fmt.Errorf("card %s waits for itself: %v", t.ID, cycle)
			}
			if !slices.Contains(v.Children(p), t.ID) {
				return fmt.Errorf("card %s waits for %s, which does not know", t.ID, p)
			}
		}
	}
	return nil
}

// twice asks a decider two times before it counts: the same tables and the same
// time must give the same answer. That asking changes no table shows when the step
// compares them all.
func (w *walk) twice(do Decider) error {
	d1, err1 := do(w.view(), w.now)
	d2, err2 := do(w.view(), w.now)
	if fmt.Sprint(err1, d1.Refused) != fmt.Sprint(err2, d2.Refused) || d1.Task != d2.Task || d1.Note != d2.Note || !reflect.DeepEqual(d1.Events, d2.Events) {
		return fmt.Errorf("asked twice it decides %s (%v), then %s (%v)", brief(d1.Events), err1, brief(d2.Events), err2)
	}
	return nil
}

// command makes up a command. Its arguments come from the whole history of the
// board, so that most of them are stale.
func (w *walk) command() (name, actor string, do Decider) {
	// A clock that runs, stands, leaps and goes back.
	w.wait(time.Duration(w.pick(0, 1, 1, 30, 60, 600, 4000, -1, -60, -4000)) * time.Second)
	if len(w.titles) < 3 || w.r.Intn(30) == 0 {
		return w.creation()
	}
	title := w.titles[w.r.Intn(len(w.titles))]
	id, run := w.id(title), w.someRun(title)
	who := w.someWriter(title, run)
	by := operator
	if who.InWorker() {
		by = fmt.Sprintf("worker:%s/%d", who.Card, who.Run)
	}
	const system = "dispatcher:host/1"
	l := w.limits
	l.FailureLimit, l.BlockLimit = int64(w.pick(1, 2, 2, 3)), int64(w.pick(0, 1, 2))
	commands := []struct {
		name, by string
		do       Decider
	}{
		{"claim", by, Claim(w.claimFor(title), who)},
		{"claim", operator, Claim(w.someClaim(title), Writer{})},
		{"claim and register", system, w.startNow(title)},
		{"claim and register", system, w.startNow(title)},
		{"claim and register", system, w.startNow(title)},
		{"claim by hand", operator, Claim(ClaimFor{Task: id, Origin: OriginManual, Holder: "ann", TTL: time.Minute}, Writer{})},
		{"work", operator, w.work(title)},
		{"register", system, Register(w.registration(title, run))},
		{"register", system, Register(w.registration(title, w.task(title).CurrentRun))},
		{"complete", by, Complete(id, Answer{Summary: "ok", Metadata: []byte("{}")}, who)},
		{"fail", by, Fail(id, "no", l, who)},
		{"defer", by, Defer(id, time.Minute, "later", l, who)},
		{"heartbeat", by, Beat(id, []string{"", "half"}[w.r.Intn(2)], l, who)},
		{"block", by, Block(id, "help", "", l, who)},
		{"unblock", by, Unblock(id, who)},
		{"unblock", operator, Unblock(id, Writer{})},
		{"unblock", operator, Unblock(id, Writer{})},
		{"unblock", operator, Unblock(id, Writer{})},
		{"assign", by, Assign(id, []string{"coder", "other", ""}[w.r.Intn(3)], who)},
		{"comment", by, AddComment(id, "w", "note", who)},
		{"create", by, Create(draft(fmt.Sprint("by ", w.r.Intn(3)), func(d *Draft) { d.Key = fmt.Sprint(w.r.Intn(3)) }), who)},
		{"reclaim", by, Reclaim(id, run, "x", "", w.r.Intn(3) == 0, who)},
		{"reclaim", operator, Reclaim(id, w.owner(title), "x", "", w.r.Intn(3) == 0, Writer{})},
		{"cancel", by, Cancel(id, run, "x", "", who)},
		{"cancel", operator, Cancel(id, w.owner(title), "x", "", Writer{})},
		{"archive", by, Archive(id, run, "x", "", who)},
		{"archive", operator, w.seldom(Archive(id, w.owner(title), "", "", Writer{}))},
		{"pause", operator, w.seldom(PauseBoard("x", Writer{}))},
		{"resume", operator, ResumeBoard(Writer{})},
		{"resume", by, ResumeBoard(who)},
		{"extend", system, Extend(run)},
		{"request end", system, RequestEnd(EndRequest{Run: w.task(title).Worker, Reason: EndMaxRuntime})},
		{"request end", system, RequestEnd(EndRequest{Run: run, Reason: []string{EndReclaim, EndMaxRuntime, EndHeartbeatStale, EndTerminalGrace, EndOrphaned}[w.r.Intn(5)]})},
		{"defer end", system, DeferEnd(run, fmt.Sprint(w.r.Intn(2)), "", time.Duration(w.r.Intn(2))*time.Minute)},
		{"book end", system, BookEnd(w.someEnding(run), l)},
		{"book end", system, BookEnd(w.someEnding(w.task(title).Worker), l)},
		{"book end", system, BookEnd(w.someEnding(w.task(title).Worker), l)},
		{"book cut-off", system, BookCutOff(CutOff{Run: run, Interrupted: w.r.Intn(2) == 0, Infrastructure: w.r.Intn(2) == 0, Error: "x"}, l)},
		{"expire", system, ExpireManual(run)},
		{"promote due", system, PromoteDue(id)},
		{"promote parked", system, PromoteParked(id, l)},
		{"promote", operator, Promote(id, Writer{})},
		{"promote", by, Promote(id, who)},
		{"complete", operator, w.seldom(Complete(id, Answer{}, Writer{}))},
		{"put off", operator, w.seldom(Defer(id, time.Hour, "", l, Writer{}))},
		{"block", by, Block(id, "help", Dependency, l, who)},
		{"link", by, Link(w.id(w.titles[w.r.Intn(len(w.titles))]), id, who)},
		{"link", operator, w.seldom(Link(w.id(w.titles[w.r.Intn(len(w.titles))]), id, Writer{}))},
		{"unlink", operator, w.someUnlink(id, Writer{})},
		{"unlink", by, w.someUnlink(id, who)},
		{"reopen", operator, Reopen(id, "wrong", Writer{})},
		{"reopen", by, Reopen(id, "wrong", who)},
		{"edit", operator, Edit(id, w.someChanges(), l, Writer{})},
		{"edit", by, Edit(id, w.someChanges(), l, who)},
		{"request review", by, RequestReview(id, Answer{Summary: "look"}, []string{"", "other"}[w.r.Intn(2)], nil, who)},
		{"approve", by, Approve(id, Answer{}, 0, who)},
		{"approve", operator, Approve(id, Answer{}, uint64(w.pick(0, 0, int(run))), Writer{})},
		{"request changes", by, RequestChanges(id, "no", 0, l, who)},
		{"request changes", operator, RequestChanges(id, "no", 0, l, Writer{})},
	}
	if w.r.Intn(2) == 0 {
		// As a board at work would go on: without these most runs end by a
		// late reclaim.
		free := w.some(title, func(t *Task) bool { return t.Startable(w.now) || t.CurrentRun != 0 && t.Worker == 0 })
		title = w.some(title, func(t *Task) bool { return t.Owner() != 0 })
		worker := w.task(title).Worker
		commands = commands[:0]
		for _, do := range []Decider{
			w.startNow(free), w.startNow(free), w.startNow(free), w.startNow(free),
			BookEnd(Ending{Run: worker, Record: exited(int64(w.pick(0, 1, ExitTryLater)))}, l),
			BookEnd(Ending{Run: worker, Record: exited(0)}, l), BookEnd(Ending{Run: worker, Record: exited(0)}, l),
			BookEnd(Ending{Run: worker, Record: &ExitRecord{Cause: CauseTerminated, Signal: "SIGTERM"}}, l),
			RequestEnd(EndRequest{Run: worker, Reason: []string{EndMaxRuntime, EndHeartbeatStale}[w.r.Intn(2)]}),
			BookEnd(Ending{Run: worker}, l), BookEnd(Ending{Run: worker}, l),
			BookEnd(Ending{Run: worker, Record: &ExitRecord{Cause: CauseStartFailed}}, l),
			Unblock(w.id(w.some(title, func(t *Task) bool { return t.Status == Blocked })), Writer{}),
			Extend(worker), w.answerNow(title, l), w.answerNow(title, l), w.answerNow(w.some(title, func(t *Task) bool { return t.Status == Review }), l), w.reopenNow(),
			Beat(w.id(title), "", l, w.worker(title, w.task(title).CurrentRun)),
			DeferEnd(worker, fmt.Sprint(w.r.Intn(2)), "", 0),
		} {
			commands = append(commands, struct {
				name, by string
				do       Decider
			}{"go on", system, do})
		}
	}
	c := commands[w.r.Intn(len(commands))]
	return c.name, c.by, c.do
}

func (w *walk) creation() (name, actor string, do Decider) {
	title := fmt.Sprint("card ", len(w.titles))
	d := draft(title, func(d *Draft) {
		d.Priority, d.MaxRetries = int64(w.pick(-1, 0, 1)), int64(w.pick(0, 0, 1))
		if len(w.titles) > 0 && w.r.Intn(2) == 0 {
			d.Parents = []string{w.id(w.titles[w.r.Intn(len(w.titles))])}
		}
		if w.r.Intn(4) == 0 {
			d.NotBefore = w.now.Add(time.Hour)
		}
	})
	free := &making{v: w.view()}
	w.titles, w.cards[title] = append(w.titles, title), free.newID(d.ID)
	if w.r.Intn(32) == 0 {
		below := draft(title+" below", func(below *Draft) { below.Parents = []string{title} })
		w.titles, w.cards[below.Title] = append(w.titles, below.Title), free.newID(below.ID)
		return "apply", operator, Apply([]Planned{{below.Title, below}, {title, d}}, Writer{})
	}
	return "create", operator, Create(d, Writer{})
}

func (w *walk) pick(from ...int) int { return from[w.r.Intn(len(from))] }

// seldom lets most calls change nothing: what ends a card for good would leave a
// board on which little happens.
func (w *walk) seldom(d Decider) Decider {
	if w.r.Intn(8) == 0 {
		return d
	}
	return func(View, eventlog.Time) (Decision, error) { return Decision{}, nil }
}

// someRun is the newest run of the card as a rule, else any number.
func (w *walk) someRun(title string) uint64 {
	switch w.r.Intn(6) {
	case 0:
		return uint64(w.r.Intn(int(w.head().Seq) + 3))
	case 1:
		return 0
	}
	return w.task(title).LastRun
}

func (w *walk) someUnlink(id string, who Writer) Decider {
	parents := append(w.view().Parents(id), "t_none")
	return Unlink(parents[w.r.Intn(len(parents))], id, who)
}

func (w *walk) someChanges() (c Changes) {
	title, n, tags, due := fmt.Sprint("title ", w.r.Intn(3)), int64(w.r.Intn(3)), []string{"x"}[:w.r.Intn(2)], w.now.Add(time.Hour)
	switch w.r.Intn(5) {
	case 0:
		c.Title, c.Body = &title, &title
	case 1:
		c.MaxRetries = &n
	case 2:
		c.Tags, c.Priority = &tags, &n
	case 3:
		c.NotBefore = &due
	case 4:
		c.Result = &title
	}
	return c
}

// someWriter is an operator, the card's worker, a worker of another card, or
// one that lost its number.
func (w *walk) someWriter(title string, run uint64) Writer {
	switch w.r.Intn(5) {
	case 0:
		return Writer{}
	case 1:
		return Writer{Run: run}
	case 2:
		other := w.titles[w.r.Intn(len(w.titles))]
		return Writer{Card: w.id(other), Run: w.someRun(other)}
	}
	return Writer{Card: w.id(title), Run: run}
}

func (w *walk) someClaim(title string) ClaimFor {
	c := w.claimFor(title)
	c.OnCleanExit = []string{CleanViolation, CleanComplete, CleanReview}[w.r.Intn(3)]
	if w.r.Intn(3) == 0 {
		c.Caps = Caps{Board: 3, Profile: 2}
	}
	return c
}

// startNow claims a card, or registers a worker if it is claimed already: a
// board on which work gets done shows more than one that only refuses.
func (w *walk) startNow(title string) Decider {
	if run := w.task(title).CurrentRun; run != 0 {
		return Register(w.registration(title, run))
	}
	return Claim(w.someClaim(title), Writer{})
}

// work is a pull worker on a card.
func (w *walk) work(title string) Decider {
	return Work(w.someClaim(title), func(run uint64) (Registration, error) { return w.registration(title, run), nil }, Writer{})
}

// some is a card that is as wanted, if there is one, else the one given.
func (w *walk) some(title string, wanted func(*Task) bool) string {
	first := w.r.Intn(len(w.titles))
	for i := range w.titles {
		if other := w.titles[(first+i)%len(w.titles)]; wanted(w.task(other)) {
			return other
		}
	}
	return title
}

// answerNow is what a card's worker says in the end, or now and then an operator for
// a card that nobody runs. A board on which nothing gets done has nothing to take
// back.
func (w *walk) answerNow(title string, l Limits) Decider {
	id, who, review := w.id(title), Writer{}, w.task(title).ReviewedRun != 0
	if run := w.task(title).CurrentRun; run != 0 {
		who = w.worker(title, run)
	}
	answers := []Decider{
		Complete(id, Answer{Summary: "ok"}, who), Fail(id, "no", l, who), Defer(id, time.Minute, "", l, who),
		Block(id, "help", "", l, who), RequestReview(id, Answer{Summary: "look"}, []string{"", "other"}[w.r.Intn(2)], nil, who),
	}
	if review {
		answers = []Decider{Approve(id, Answer{}, 0, who), RequestChanges(id, "no", 0, l, who), Fail(id, "no", l, who)}
	}
	do := answers[w.r.Intn(len(answers))]
	if who.Run == 0 && !review {
		return w.seldom(do)
	}
	return do
}

// reopenNow takes back a card that is done and on which another one is built.
func (w *walk) reopenNow() Decider {
	for _, title := range w.titles {
		id := w.id(title)
		if w.task(title).Status == Done && len(w.view().Children(id)) > 0 && w.r.Intn(3) == 0 {
			return Reopen(id, "wrong", Writer{})
		}
	}
	return func(View, eventlog.Time) (Decision, error) { return Decision{}, nil }
}

func (w *walk) someEnding(run uint64) Ending {
	e := Ending{Run: run, OtherBoot: w.r.Intn(4) == 0, Unproven: w.r.Intn(4) == 0, Evidence: "x"}
	switch w.r.Intn(4) {
	case 0, 1:
		e.Record = exited(int64(w.pick(0, 0, 1, ExitTryLater, ExitFinal)))
	case 2:
		e.Record = &ExitRecord{Cause: []string{CauseSignaled, CauseTerminated, CauseStartFailed, CauseNeverStarted}[w.r.Intn(4)], Signal: "KILL"}
	}
	return e
}
