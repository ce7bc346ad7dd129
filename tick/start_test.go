package tick

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

func TestClaimIsDurableBeforeTheStart(t *testing.T) {
	b := newBench(t)
	b.create("a")
	b.start = func(l Launch) error {
		equal(t, "the open run at the start", b.task("a").CurrentRun, l.Run)
		equal(t, "a worker at the start", b.run(l.Run).HasWorker, false)
		equal(t, "the claimer", b.run(l.Run).Claimer.Fingerprint, "self")
		return nil
	}
	rep := b.ticks()
	equal(t, "the story", b.story(), "claimed a, start a")
	if len(rep.Spawned) != 1 {
		t.Fatalf("spawned: %v", rep.Spawned)
	}
	run := b.task("a").CurrentRun
	equal(t, "the report", rep.Spawned[0], Spawned{Task: b.cards["a"], Run: run, Assignee: "coder", PID: 100 + int(run), Workspace: "/ws/a"})
}

// A card that cannot be started is booked in the same pass, and the next goes
// on.
func TestAFailedStartIsBookedAtOnce(t *testing.T) {
	b := newBench(t)
	b.create("bad", func(d *projection.Draft) { d.Priority = 1 })
	b.create("good")
	b.start = func(l Launch) error {
		if l.Task.Title == "bad" {
			return errors.New("no such directory")
		}
		return nil
	}
	rep := b.ticks()
	r := b.run(b.task("bad").LastRun)
	equal(t, "the outcome", r.Outcome, projection.OutSpawnFailed)
	equal(t, "the error", r.Error, "no such directory")
	equal(t, "counted", r.Counted, true)
	equal(t, "the bad card is held", b.task("bad").Startable(b.now), false)
	equal(t, "the good card", b.task("good").Worker, b.task("good").CurrentRun)
	equal(t, "started", len(rep.Spawned), 1)
	if len(rep.SpawnFailed) != 1 || rep.SpawnFailed[0].Error != "no such directory" {
		t.Errorf("the report says %v", rep.SpawnFailed)
	}
}

func TestFirstWords(t *testing.T) {
	for _, c := range []struct {
		name  string
		start error
		word  FirstWord
		says  string
		count bool
	}{
		{"died", nil, FirstWord{State: Died, Detail: "exit 1"}, "died before it registered: exit 1", true},
		{"refused", nil, FirstWord{State: Refused, Detail: "store refused"}, "was refused: store refused", true},
		{"timed out", nil, FirstWord{State: TimedOut}, "did not register within 30s", true},
		{"the host refused", fmt.Errorf("fork: %w", ErrInfrastructure), FirstWord{}, "the host refused", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.create("a")
			if c.start != nil {
				b.start = func(Launch) error { return c.start }
			}
			b.word = func(context.Context, Launch) FirstWord { return c.word }
			rep := b.ticks()
			r := b.run(b.task("a").LastRun)
			equal(t, "the outcome", r.Outcome, projection.OutSpawnFailed)
			equal(t, "counted", r.Counted, c.count)
			if !strings.Contains(r.Error, c.says) {
				t.Errorf("the error is %q, want %q in it", r.Error, c.says)
			}
			equal(t, "spawned", len(rep.Spawned), 0)
			equal(t, "failed", len(rep.SpawnFailed), 1)
		})
	}
}

// A supervisor that registered while nobody believed in it any more keeps its
// run: nothing is booked against it.
func TestARegistrationThatWonTheRaceIsKept(t *testing.T) {
	b := newBench(t)
	b.create("a")
	b.word = func(ctx context.Context, l Launch) FirstWord {
		b.registers(ctx, l)
		return FirstWord{State: TimedOut}
	}
	rep := b.ticks()
	run := b.task("a").CurrentRun
	if run == 0 || b.task("a").Worker != run {
		t.Errorf("open run %d, worker %d", run, b.task("a").Worker)
	}
	equal(t, "failed", len(rep.SpawnFailed)+len(rep.Errors), 0)
}

// A claim that was taken back while its supervisor started stays taken back.
func TestARefusedSupervisorOfAReclaimedCard(t *testing.T) {
	b := newBench(t)
	b.create("a")
	b.word = func(context.Context, Launch) FirstWord {
		b.must(projection.Reclaim(b.cards["a"], b.task("a").Owner(), "wrong", "", false, projection.Writer{}))
		return FirstWord{State: Refused}
	}
	rep := b.ticks()
	equal(t, "the outcome", b.run(b.task("a").LastRun).Outcome, projection.OutReclaimed)
	equal(t, "failed", len(rep.SpawnFailed)+len(rep.Errors), 0)
}

// Told to stop: the supervisor may still register, so nothing is charged to the
// card.
func TestStoppedWhileASupervisorStarts(t *testing.T) {
	b := newBench(t)
	b.create("a")
	ctx, cancel := context.WithCancel(context.Background())
	b.word = func(ctx context.Context, _ Launch) FirstWord {
		cancel()
		<-ctx.Done()
		return FirstWord{State: TimedOut}
	}
	rep, err := b.d.Tick(ctx, all)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want it canceled", err)
	}
	equal(t, "the story", b.story(), "claimed a, start a")
	equal(t, "failed", len(rep.SpawnFailed), 0)
}

// The launch grace is the supervisor's, from its fork on: a slow preparation
// takes nothing of it.
func TestTheLaunchGraceRunsFromTheFork(t *testing.T) {
	b := newBench(t)
	b.create("a")
	var forked time.Time
	b.fork = func() { forked = time.Now() }
	b.word = func(ctx context.Context, l Launch) FirstWord {
		until, ok := ctx.Deadline()
		if !ok || until.Before(forked.Add(b.d.Policy.LaunchGrace)) {
			t.Errorf("waits until %s, %s after the fork", until, until.Sub(forked))
		}
		return b.registers(ctx, l)
	}
	b.ticks()
	if forked.IsZero() {
		t.Error("nothing was forked")
	}
}

// No process is forked while this one holds the store: a child would inherit
// its locks.
func TestNoForkWhileTheStoreIsInUse(t *testing.T) {
	b := newBench(t)
	b.d.Policy.MaxInProgress = 40
	for i := range 40 {
		b.create(fmt.Sprint(i))
	}
	var inUse, forks atomic.Int32
	b.before = func(eventlog.Time) error { inUse.Add(1); return nil }
	b.after = func([]eventlog.Event) error { inUse.Add(-1); return nil }
	b.fork = func() {
		forks.Add(1)
		if inUse.Load() != 0 {
			t.Error("forked while the store was in use")
		}
	}
	b.ticks()
	equal(t, "forks", forks.Load(), 40)
}

// One card whose workspace takes for ever does not hold up nine others.
func TestASlowStartHoldsUpNoOther(t *testing.T) {
	b := newBench(t)
	b.create("slow", func(d *projection.Draft) { d.Priority = 1 })
	var others sync.WaitGroup
	for i := range 9 {
		b.create(fmt.Sprint(i))
		others.Add(1)
	}
	b.start = func(l Launch) error {
		if l.Task.Title == "slow" {
			others.Wait() // ends only if the others start beside it
		}
		return nil
	}
	b.word = func(ctx context.Context, l Launch) FirstWord {
		if l.Task.Title != "slow" {
			defer others.Done()
		}
		return b.registers(ctx, l)
	}
	equal(t, "spawned", len(b.ticks().Spawned), 10)
	equal(t, "the slow one was the last", strings.HasSuffix(b.story(), "start slow"), true)
}

// A commit that may or may not be recorded is not started, and no other card is
// claimed by this process.
func TestAClaimOfUnknownOutcomeIsNotStarted(t *testing.T) {
	b := newBench(t)
	b.create("first", func(d *projection.Draft) { d.Priority = 1 })
	b.create("second")
	b.after = func(events []eventlog.Event) error {
		if len(events) > 0 && events[0].Kind() == eventlog.KindClaimed {
			return eventlog.ErrUnknownOutcome
		}
		return nil
	}
	rep, err := b.tick(all)
	if !errors.Is(err, eventlog.ErrUnknownOutcome) {
		t.Errorf("%v", err)
	}
	equal(t, "the story", b.story(), "claimed first")
	equal(t, "spawned", len(rep.Spawned), 0)

	// The next tick finds a claim whose claimer is gone, if it was recorded.
	b.after, b.claimers[b.task("first").CurrentRun] = nil, Evidence{Answer: Dead}
	rep = b.ticks()
	equal(t, "spawned by the next tick", len(rep.Spawned), 2)
	equal(t, "reclaimed by the next tick", strings.Join(rep.Reclaimed, " "), b.cards["first"])
}

// Between the pick and the claim somebody else took the card: it waits, with
// the reason, and the next goes on.
func TestAPickThatSomebodyElseTook(t *testing.T) {
	b := newBench(t)
	b.create("a", func(d *projection.Draft) { d.Priority = 1 })
	b.create("z")
	once := true
	b.before = func(eventlog.Time) error {
		if once {
			once = false
			b.must(projection.Claim(projection.ClaimFor{Task: b.cards["a"], Origin: projection.OriginManual, Holder: "ann", TTL: time.Minute}, projection.Writer{}))
		}
		return nil
	}
	rep := b.ticks()
	equal(t, "the story", b.story(), "claimed z, start z")
	if len(rep.Waiting) != 1 || !strings.Contains(rep.Waiting[0].Reason, "already claimed by ann") {
		t.Errorf("waiting: %v", rep.Waiting)
	}
}

func TestCapsHoldInATick(t *testing.T) {
	b := newBench(t)
	b.d.Policy.MaxInProgress = 3
	b.d.Policy.Profiles["other"] = Profile{MaxInProgress: 1}
	b.running("r")
	for i := range 3 {
		b.create(fmt.Sprint("o", i), func(d *projection.Draft) { d.Assignee, d.Priority = "other", 1 })
		b.create(fmt.Sprint("c", i))
	}
	rep := b.ticks()
	var got []string
	for _, s := range rep.Spawned {
		got = append(got, b.title(s.Task))
	}
	slices.Sort(got)
	equal(t, "started", strings.Join(got, " "), "c0 o0")
	equal(t, "waiting", len(rep.Waiting), 4)
	equal(t, "started by a second tick", len(b.ticks().Spawned), 0)
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name    string
		o       func(b *bench) Options
		started string
		waits   string
		kind    error
	}{
		{"at most one", func(*bench) Options { return Options{Max: 1} }, "a", "told to start at most 1", nil},
		{"none", func(*bench) Options { return Options{Max: 0} }, "", "told to start at most 0", nil},
		{"one card", func(b *bench) Options { return Options{Max: -1, ID: b.cards["z"]} }, "z", "", nil},
		{"one card that cannot start", func(b *bench) Options { return Options{Max: -1, ID: b.cards["done"]} }, "", "done", nil},
		{"one card without a profile", func(b *bench) Options { return Options{Max: -1, ID: b.cards["pull"]} }, "", `no profile "ann"`, nil},
		{"no such card", func(*bench) Options { return Options{Max: -1, ID: "t_none"} }, "", "", projection.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.create("a", func(d *projection.Draft) { d.Priority = 1 })
			b.create("z")
			b.create("pull", func(d *projection.Draft) { d.Assignee = "ann" })
			b.create("done")
			b.must(projection.Complete(b.cards["done"], projection.Answer{}, projection.Writer{}))
			rep, err := b.tick(c.o(b))
			if !errors.Is(err, c.kind) {
				t.Fatalf("%v, want %v", err, c.kind)
			}
			var got []string
			for _, s := range rep.Spawned {
				got = append(got, b.title(s.Task))
			}
			equal(t, "started", strings.Join(got, " "), c.started)
			if c.waits != "" && !slices.ContainsFunc(rep.Waiting, func(w Waiting) bool { return strings.Contains(w.Reason, c.waits) }) {
				t.Errorf("waiting: %v, want %q", rep.Waiting, c.waits)
			}
		})
	}
}

// The report names a bounded number of waiting cards and says if there are more.
func TestWaitingIsBounded(t *testing.T) {
	for _, c := range []struct {
		assignee string
		cards    int
		named    int
		more     bool
	}{
		{"ann", 100, 100, false}, {"ann", 101, 100, true}, {"ann", 300, 100, true},
		{"coder", 110, 100, false}, {"coder", 111, 100, true},
	} {
		b := newBench(t) // ten may start
		for i := range c.cards {
			b.create(fmt.Sprint(i), func(d *projection.Draft) { d.Assignee = c.assignee })
		}
		rep := b.ticks()
		what := fmt.Sprintf("%d cards of %s: ", c.cards, c.assignee)
		equal(t, what+"named", len(rep.Waiting), c.named)
		equal(t, what+"more", rep.WaitingMore, c.more)
	}
}

// Who waited long for the other boards of the host gives a start its whole time all the
// same: the next tick, beside it, would book it as one that never came.
func TestAStartHasItsTimeAfterAWaitForTheHost(t *testing.T) {
	b := newBench(t)
	b.create("a")
	b.asked = func() { b.now = b.now.Add(b.d.Policy.LaunchGrace + b.d.Policy.KillGrace) }
	var later []func() (*Report, error)
	if _, err := b.tick(Options{Max: -1, Detach: func(start func() (*Report, error)) { later = append(later, start) }}); err != nil {
		t.Fatal(err)
	}
	run := b.task("a").CurrentRun
	equal(t, "due", b.run(run).ClaimExpires, b.now.Add(b.d.Policy.LaunchGrace))
	b.ticks()
	equal(t, "the run that is being started", b.task("a").CurrentRun, run)
	equal(t, "starts", len(later), 1)
}

// besides counts what is written through it.
type besides struct {
	Board
	wrote int
}

func (b *besides) Update(actor string, now eventlog.Time, d projection.Decider) (projection.Result, error) {
	b.wrote++
	return b.Board.Update(actor, now, d)
}

// What a start beside the tick writes the tick has not seen, and it must be possible to
// tell: a slot is free again after a start that failed.
func TestAStartBesideTheTickWritesThroughItsOwnBoard(t *testing.T) {
	b := newBench(t)
	b.create("a")
	b.start = func(Launch) error { return errors.New("no such directory") }
	own, beside := &besides{Board: b}, &besides{Board: b}
	b.d.Board, b.d.Beside = own, beside
	var later func() (*Report, error)
	if _, err := b.tick(Options{Max: -1, Detach: func(start func() (*Report, error)) { later = start }}); err != nil {
		t.Fatal(err)
	}
	equal(t, "written by the tick", own.wrote, 1)
	rep, err := later()
	if err != nil || len(rep.SpawnFailed) != 1 {
		t.Fatalf("the start: %v, %v", rep, err)
	}
	equal(t, "written by the tick after the start", own.wrote, 1)
	equal(t, "written by the start", beside.wrote, 1)
}
