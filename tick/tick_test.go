package tick

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

func TestTheLockIsHeldAroundEverything(t *testing.T) {
	b := newBench(t)
	b.create("a")
	b.ticks()
	equal(t, "first", b.trace[0], "lock")
	equal(t, "last", b.trace[len(b.trace)-1], "unlock")
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
	b.must(projection.Block(b.cards["a"], "help", "", projection.DefaultLimits(), projection.Writer{Card: b.cards["a"], Run: run}))
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
