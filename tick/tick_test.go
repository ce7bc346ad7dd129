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

func TestTheLockIsHeldAroundEverything(t *testing.T) {
	b := newBench(t)
	b.create("a")
	b.ticks()
	equal(t, "first", b.trace[0], "lock")
	equal(t, "last", b.trace[len(b.trace)-1], "unlock")
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

// What goes wrong with one run does not stop the others.
func TestAnErrorOfOneRun(t *testing.T) {
	b := newBench(t)
	first, second := b.running("first"), b.running("second")
	b.create("ready")
	b.evidence[first], b.evidence[second] = Evidence{Answer: Dead}, Evidence{Answer: Dead}
	n := 0
	b.before = func(eventlog.Time) error {
		if n++; n == 1 {
			return errors.New("odd")
		}
		return nil
	}
	rep := b.ticks()
	equal(t, "the first stays", b.run(first).Open(), true)
	equal(t, "the second is booked", b.run(second).Outcome, projection.OutCrashed)
	equal(t, "spawned", len(rep.Spawned), 1)
	if len(rep.Errors) != 1 || rep.Errors[0] != (Failure{b.cards["first"], first, "odd"}) {
		t.Errorf("errors: %v", rep.Errors)
	}
}

func TestAFailedSignalOfOneRun(t *testing.T) {
	b := newBench(t)
	first, second := b.running("first"), b.running("second")
	b.evidence[first], b.evidence[second] = Evidence{Answer: Orphaned}, Evidence{Answer: Orphaned}
	b.signal = func(run uint64) error {
		if run == first {
			return errors.New("not permitted")
		}
		return nil
	}
	rep := b.ticks()
	equal(t, "the story", b.story(), "termination_requested first, term_members first, termination_requested second, term_members second")
	equal(t, "errors", len(rep.Errors), 1)
}

// What goes wrong with the store stops the tick where it is.
func TestAStoreErrorStops(t *testing.T) {
	for _, cause := range []error{eventlog.ErrUnknownOutcome, eventlog.ErrDiskFull, eventlog.ErrRefused, eventlog.ErrBusy, eventlog.ErrNoBoard} {
		b := newBench(t)
		first, second := b.running("first"), b.running("second")
		b.create("ready")
		b.evidence[first], b.evidence[second] = Evidence{Answer: Dead}, Evidence{Answer: Dead}
		updates := 0
		b.before = func(eventlog.Time) error { updates++; return fmt.Errorf("write: %w", cause) }
		if _, err := b.tick(all); !errors.Is(err, cause) {
			t.Errorf("%v, want %v", err, cause)
		}
		equal(t, cause.Error()+": updates tried", updates, 1)
		equal(t, cause.Error()+": the story", b.story(), "")
	}
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

func TestDispatchLock(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     error
		skipped bool
	}{
		{"busy", &eventlog.BusyError{Path: "dispatch.lock"}, true},
		{"cannot be taken", errors.New("permission denied"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			run := b.running("a")
			b.evidence[run] = Evidence{Answer: Dead}
			b.create("ready")
			b.d.Lock = func() (func(), error) { return nil, c.err }
			rep, err := b.tick(all)
			if c.skipped != (err == nil) || err != nil && !errors.Is(err, c.err) {
				t.Errorf("the tick ends with %v", err)
			}
			equal(t, "skipped", rep.SkippedLocked, c.skipped)
			equal(t, "calls of the board", b.calls, 0)
			equal(t, "looks at processes", b.looks, 0)
		})
	}
}

// A dry run says what a tick would do and leaves no trace of itself.
func TestDryRun(t *testing.T) {
	b := newBench(t)
	b.d.Policy.Profiles["coder"] = Profile{MaxRuntime: time.Minute}
	dead, orphan, long := b.running("dead"), b.running("orphan"), b.running("long")
	b.create("ready")
	b.create("due", func(d *projection.Draft) { d.NotBefore = b.now.Add(time.Hour) })
	b.now = b.now.Add(2 * time.Hour)
	b.evidence[dead], b.evidence[orphan] = Evidence{Answer: Dead}, Evidence{Answer: Orphaned}
	b.d.Lock = func() (func(), error) { t.Error("took the lock"); return func() {}, nil }
	before := b.head()
	rep, err := b.tick(Options{Max: -1, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the story", b.story(), "")
	equal(t, "the last commit", b.head(), before)
	equal(t, "marked", rep.DryRun, true)
	equal(t, "crashed", strings.Join(rep.Crashed, " "), b.cards["dead"])
	equal(t, "promoted", strings.Join(rep.Promoted, " "), b.cards["due"])
	equal(t, "to be ended", strings.Join(rep.EndRequested, " "), b.cards["orphan"]+" "+b.cards["long"])
	// What the tick itself would promote, it would start too.
	want := []Spawned{{Task: b.cards["ready"], Assignee: "coder"}, {Task: b.cards["due"], Assignee: "coder"}}
	if !slices.Equal(rep.Spawned, want) {
		t.Errorf("spawned: %v, want %v", rep.Spawned, want)
	}
	equal(t, "the run over its time", b.run(long).EndRequestedAt, 0)

	// The real tick does what was said.
	b.d.Lock = func() (func(), error) { return func() {}, nil }
	did := b.ticks()
	for _, c := range []struct {
		what      string
		said, did []string
	}{
		{"promoted", rep.Promoted, did.Promoted}, {"crashed", rep.Crashed, did.Crashed}, {"reclaimed", rep.Reclaimed, did.Reclaimed},
		{"end requested", rep.EndRequested, did.EndRequested}, {"extended", rep.Extended, did.Extended},
		{"blocked", rep.AutoBlocked, did.AutoBlocked}, {"spawned", ids(rep.Spawned), ids(did.Spawned)},
	} {
		equal(t, c.what+", in fact", strings.Join(sorted(c.did), " "), strings.Join(sorted(c.said), " "))
	}
}

func ids(list []Spawned) (ids []string) {
	for _, s := range list {
		ids = append(ids, s.Task)
	}
	return ids
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// The decision to end a run is durable before the first signal.
func TestTerminationIsDurableBeforeTheSignal(t *testing.T) {
	b := newBench(t)
	run := b.running("a")
	b.evidence[run] = Evidence{Answer: Orphaned}
	b.signal = func(run uint64) error {
		equal(t, "asked to end at the signal", b.run(run).EndReason, projection.EndOrphaned)
		return nil
	}
	b.ticks()
	equal(t, "the story", b.story(), "termination_requested a, term_members a")

	b.before = func(eventlog.Time) error { return eventlog.ErrUnknownOutcome }
	second := newBench(t)
	run = second.running("a")
	second.evidence[run] = Evidence{Answer: Orphaned}
	second.before = b.before
	if _, err := second.tick(all); !errors.Is(err, eventlog.ErrUnknownOutcome) {
		t.Errorf("%v", err)
	}
	equal(t, "the story of one that could not be recorded", second.story(), "")
}

// The ending path, tick by tick, until it is confirmed.
func TestTheEndingPath(t *testing.T) {
	b := newBench(t)
	b.d.Policy.MaxInProgress = 1
	b.d.Policy.Profiles["coder"] = Profile{MaxRuntime: time.Minute}
	run := b.running("a")
	for _, c := range []struct {
		name string
		wait time.Duration
		e    Evidence
		want string
	}{
		{"within its time", 0, Evidence{Answer: Alive}, ""},
		{"over its time", time.Minute, Evidence{Answer: Alive}, "termination_requested a, term_supervisor a"},
		{"again", time.Second, Evidence{Answer: Alive}, "term_supervisor a"},
		{"hidden", time.Second, Evidence{Answer: Held, Why: "unreadable"}, "reclaim_deferred a"},
		{"hidden as before", time.Second, Evidence{Answer: Held, Why: "unreadable"}, ""},
		{"hangs", 10 * time.Second, Evidence{Answer: Alive}, "kill_supervisor a"},
		{"its children are left", 0, Evidence{Answer: Orphaned}, "kill_members a"},
		{"gone", 0, Evidence{Answer: Dead}, "timed_out a"},
	} {
		b.now = b.now.Add(c.wait)
		b.evidence[run] = c.e
		b.ticks()
		equal(t, c.name, b.story(), c.want)
	}
	equal(t, "the outcome", b.run(run).Outcome, projection.OutTimedOut)
}

// Between the look and the append the board moved on: what was decided on the
// old picture must not touch what is there now.
func TestStaleEvidence(t *testing.T) {
	for _, c := range []struct {
		name    string
		given   func(b *bench, run uint64)
		e       Evidence
		between func(b *bench, run uint64)
		want    string // what everybody appends from the look on
	}{
		{"over its time, but it answered", func(b *bench, _ uint64) { b.now = b.now.Add(2 * time.Hour) }, Evidence{Answer: Alive},
			func(b *bench, run uint64) { b.complete("a", run) }, "completed a"},
		{"silent, but it answered", func(b *bench, run uint64) {
			b.must(projection.Beat(b.cards["a"], "", b.d.Policy.Limits, projection.Writer{Card: b.cards["a"], Run: run}))
			b.now = b.now.Add(time.Hour)
		}, Evidence{Answer: Alive}, func(b *bench, run uint64) { b.complete("a", run) }, "completed a"},
		{"silent, but it beat", func(b *bench, run uint64) {
			b.must(projection.Beat(b.cards["a"], "", b.d.Policy.Limits, projection.Writer{Card: b.cards["a"], Run: run}))
			b.now = b.now.Add(time.Hour)
		}, Evidence{Answer: Alive}, func(b *bench, run uint64) {
			b.must(projection.Beat(b.cards["a"], "", b.d.Policy.Limits, projection.Writer{Card: b.cards["a"], Run: run}))
		}, "heartbeat a"},
		{"its lease ran out, but it answered", func(b *bench, _ uint64) { b.now = b.now.Add(15 * time.Minute) }, Evidence{Answer: Alive},
			func(b *bench, run uint64) { b.complete("a", run) }, "completed a"},
		{"its lease ran out, but it beat", func(b *bench, _ uint64) { b.now = b.now.Add(15 * time.Minute) }, Evidence{Answer: Alive},
			func(b *bench, run uint64) {
				b.must(projection.Beat(b.cards["a"], "", b.d.Policy.Limits, projection.Writer{Card: b.cards["a"], Run: run}))
			}, "heartbeat a"},
		{"elsewhere with its lease run out, but it beat", func(b *bench, _ uint64) { b.now = b.now.Add(15 * time.Minute) },
			Evidence{Answer: Held, Unprovable: true}, func(b *bench, run uint64) {
				b.must(projection.Beat(b.cards["a"], "", b.d.Policy.Limits, projection.Writer{Card: b.cards["a"], Run: run}))
			}, "heartbeat a"},
		{"dead, but its answer was on the way: the answer stays", nil, Evidence{Answer: Dead},
			func(b *bench, run uint64) { b.complete("a", run) }, "completed a, exited a"},
		{"dead, but its supervisor booked it", nil, Evidence{Answer: Dead},
			func(b *bench, run uint64) {
				b.must(projection.BookEnd(projection.Ending{Run: run}, b.d.Policy.Limits))
			}, "crashed a"},
		{"over its time, but an operator asked first", func(b *bench, _ uint64) { b.now = b.now.Add(2 * time.Hour) }, Evidence{Answer: Alive},
			func(b *bench, run uint64) {
				b.must(projection.Reclaim(b.cards["a"], b.task("a").Owner(), "x", "", false, projection.Writer{}))
			}, "termination_requested a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.d.Policy.Profiles["coder"] = Profile{}
			if strings.HasPrefix(c.name, "over its time") {
				b.d.Policy.Profiles["coder"] = Profile{MaxRuntime: time.Hour}
			}
			run := b.running("a")
			if c.given != nil {
				c.given(b, run)
			}
			b.evidence[run] = c.e
			head := b.head()
			once := true
			b.d.Hook = func(point string) {
				if point == "dispatch.judged" && once {
					once = false
					c.between(b, run)
				}
			}
			b.ticks()
			equal(t, "the log", b.kindsAfter(head), c.want)
			if strings.Contains(b.story(), "_supervisor") || strings.Contains(b.story(), "_members") {
				t.Errorf("somebody was signalled: %s", b.story())
			}
			equal(t, "judged", once, false)
		})
	}
}

// A supervisor that registers after its claimer was seen dead keeps its run.
func TestStaleEvidenceOfAClaim(t *testing.T) {
	b := newBench(t)
	b.create("a")
	run := b.claim("a")
	b.claimers[run] = Evidence{Answer: Dead}
	b.d.Hook = func(point string) {
		if point == "dispatch.judged" {
			b.must(registration(b.cards["a"], run))
		}
	}
	b.ticks()
	equal(t, "the story", b.story(), "")
	equal(t, "the worker", b.task("a").Worker, run)
}

// A claim stranded by a dispatcher that is gone runs again in the same tick.
func TestACutOffClaimIsStartedInTheSameTick(t *testing.T) {
	b := newBench(t)
	b.create("a")
	run := b.claim("a")
	b.claimers[run] = Evidence{Answer: Dead, Why: "no such process"}
	rep := b.ticks()
	equal(t, "the story", b.story(), "reclaimed a, claimed a, start a")
	equal(t, "spawned", len(rep.Spawned), 1)
	equal(t, "counted", b.run(run).Counted, false)
}

func TestAManualClaimThatRanOutIsHeld(t *testing.T) {
	b := newBench(t)
	b.create("a")
	b.must(projection.Claim(projection.ClaimFor{Task: b.cards["a"], Origin: projection.OriginManual, Holder: "ann", TTL: time.Minute}, projection.Writer{}))
	b.ticks()
	equal(t, "the story before", b.story(), "")
	b.now = b.now.Add(time.Minute)
	b.ticks()
	equal(t, "the story after", b.story(), "reclaimed a, blocked a")
	b.ticks()
	equal(t, "the story of the next tick", b.story(), "")
}

// A worker that lives on after its answer keeps its card from starting again.
func TestARetainedWorkerKeepsItsCard(t *testing.T) {
	b := newBench(t)
	run := b.running("a")
	b.must(projection.Block(b.cards["a"], "help", "", projection.Writer{Card: b.cards["a"], Run: run}))
	b.must(projection.Unblock(b.cards["a"], projection.Writer{}))
	rep := b.ticks()
	equal(t, "the story", b.story(), "")
	if len(rep.Waiting) != 1 || !strings.Contains(rep.Waiting[0].Reason, fmt.Sprintf("the process of run %d has not ended", run)) {
		t.Errorf("waiting: %v", rep.Waiting)
	}
	b.evidence[run] = Evidence{Answer: Dead}
	b.ticks()
	equal(t, "the story once it is gone", b.story(), "exited a, claimed a, start a")
}

func TestTheRecordSpeaks(t *testing.T) {
	code := int64(0)
	for _, c := range []struct {
		name string
		rec  *projection.ExitRecord
		want string
		says string
	}{
		{"exit 0", &projection.ExitRecord{Cause: projection.CauseExited, ExitCode: &code}, projection.OutCompleted, ""},
		{"a record that cannot be read is said so", nil, projection.OutCrashed, "the record is cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			run := b.running("a")
			b.evidence[run], b.records[run] = Evidence{Answer: Dead, Why: "nothing is left"}, c.rec
			head := b.head()
			b.ticks()
			equal(t, "the outcome", b.run(run).Outcome, c.want)
			if err := b.store.Mem.Read(head+1, func(x eventlog.Commit) error {
				if d, ok := x.Events[0].Data.(*eventlog.Crashed); ok && !strings.Contains(d.Evidence, c.says) {
					t.Errorf("the evidence is %q", d.Evidence)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestPromotionsComeBeforeStarts(t *testing.T) {
	b := newBench(t)
	b.create("due", func(d *projection.Draft) { d.NotBefore = b.now.Add(time.Hour) })
	b.now = b.now.Add(time.Hour)
	b.ticks()
	equal(t, "the story", b.story(), "promoted due, claimed due, start due")
}

func TestARaisedLimitFreesACard(t *testing.T) {
	b := newBench(t)
	b.d.Policy.Limits.FailureLimit = 1
	run := b.running("a")
	b.evidence[run] = Evidence{Answer: Dead}
	b.ticks()
	equal(t, "the story", b.story(), "crashed a, gave_up a")
	b.ticks()
	equal(t, "the story of the next tick", b.story(), "")
	b.d.Policy.Limits.FailureLimit = 2
	b.ticks()
	equal(t, "the story under a higher limit", b.story(), "promoted a, claimed a, start a")
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

// EndNow does at once what the next tick would do about one run.
func TestEndNow(t *testing.T) {
	b := newBench(t)
	run := b.running("a")
	b.must(projection.Reclaim(b.cards["a"], b.task("a").Owner(), "wrong", "", false, projection.Writer{}))
	if _, err := b.d.EndNow(run); err != nil {
		t.Fatal(err)
	}
	equal(t, "the story", b.story(), "term_supervisor a")
	b.evidence[run] = Evidence{Answer: Dead}
	rep, err := b.d.EndNow(run)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "reclaimed", strings.Join(rep.Reclaimed, " "), b.cards["a"])
	for _, gone := range []uint64{run, 99} {
		if _, err := b.d.EndNow(gone); err != nil {
			t.Errorf("run %d: %v", gone, err)
		}
	}
	equal(t, "the story in the end", b.story(), "term_supervisor a, reclaimed a")
}

// I10: the cost of a tick grows with what is active, never with the board.
func TestTheCostOfATickIsThatOfTheActive(t *testing.T) {
	reads := func(t *testing.T, idle int) int {
		b := newBench(t)
		b.d.Policy.MaxInProgress = 4
		for i := range idle {
			title := fmt.Sprint("idle ", i)
			b.create(title, func(d *projection.Draft) {
				switch i % 4 {
				case 1:
					d.Blocked, d.BlockReason = true, "x"
				case 2:
					d.NotBefore = b.now.Add(24 * time.Hour)
				case 3:
					d.MaxRetries = 1 // gives up under a limit of its own
				}
			})
			switch i % 4 {
			case 0:
				b.must(projection.Complete(b.cards[title], projection.Answer{}, projection.Writer{}))
			case 3:
				run := b.claim(title)
				b.must(projection.BookCutOff(projection.CutOff{Run: run, Error: "x"}, b.d.Policy.Limits))
			}
		}
		run := b.running("active")
		b.evidence[run] = Evidence{Answer: Dead}
		for i := range 10 {
			b.create(fmt.Sprint("ready ", i))
		}
		b.reads = 0
		rep := b.ticks()
		if len(rep.Spawned) != 4 || len(rep.Crashed) != 1 {
			t.Fatalf("a tick that did not do its work: %+v", rep)
		}
		return b.reads
	}
	small, big := reads(t, 100), reads(t, 10_000)
	equal(t, "rows read on the bigger board", big, small)
}
