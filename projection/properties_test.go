package projection

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid" // finds the smallest case that fails; only in tests

	"kanlog/eventlog"
)

// rapidly sets how many histories rapid makes in a test, and of how many commands
// on average.
func rapidly(t *testing.T, checks, steps int) {
	t.Helper()
	for name, n := range map[string]int{"checks": checks, "steps": steps} {
		f := flag.Lookup("rapid." + name)
		old := f.Value.String()
		t.Cleanup(func() { _ = f.Value.Set(old) })
		if err := f.Value.Set(fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// endedRun is a run that was closed somehow, or is still open.
func endedRun(id uint64) *rapid.Generator[*Run] {
	return rapid.Custom(func(t *rapid.T) *Run {
		r := &Run{ID: id, Outcome: rapid.SampledFrom([]string{
			"", OutCompleted, OutBlocked, OutFailed, OutDeferred, OutCrashed, OutRateLimited, OutTimedOut, OutStale, OutReclaimed, OutSpawnFailed,
		}).Draw(t, "outcome")}
		switch r.Outcome {
		case OutFailed, OutTimedOut:
			r.Counted = true
		case OutCrashed:
			r.Violation = rapid.Bool().Draw(t, "violation")
			r.Counted = !r.Violation
		case OutSpawnFailed:
			r.Counted = rapid.Bool().Draw(t, "counted")
		case OutReclaimed:
			r.Interrupted = rapid.Bool().Draw(t, "interrupted")
		}
		return r
	})
}

// Budgets stop loops, so what happens may never take back what was counted: one
// more end adds at most one to each count, and lowers none but a streak that it
// breaks.
func TestCountOnlyGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var runs []*Run
		for i := range rapid.IntRange(0, 40).Draw(t, "runs") {
			runs = append(runs, endedRun(uint64(i+1)).Draw(t, "run"))
		}
		from := rapid.Uint64Range(0, uint64(len(runs))).Draw(t, "fresh from")
		c := Count(runs, from)
		next := endedRun(uint64(len(runs)+1)).Draw(t, "next")
		d := Count(append(slices.Clone(runs), next), from)
		closed := next.Outcome != ""
		if !closed && c != d {
			t.Fatalf("an open run counts: %+v, then %+v", c, d)
		}
		for _, x := range []struct {
			name        string
			was, is     int64
			adds, never bool // this end adds one; no end takes away
		}{
			{"failures", c.Failures, d.Failures, closed && next.Counted, true},
			{"uncounted", c.Uncounted, d.Uncounted, closed && !next.Counted && next.Outcome != OutSpawnFailed, true},
			{"violations", c.Violations, d.Violations, next.Violation, !closed || next.Violation || next.Outcome == OutRateLimited},
			{"limited", c.Limited, d.Limited, next.Outcome == OutRateLimited || next.Outcome == OutDeferred, !closed},
			{"interrupted", c.Interrupted, d.Interrupted, next.Interrupted, !closed},
			{"stale", c.Stale, d.Stale, next.Outcome == OutStale, !closed},
		} {
			switch {
			case x.adds && x.is != x.was+1, !x.adds && x.never && x.is != x.was, !x.adds && !x.never && x.is != 0:
				t.Fatalf("%s: %d, and %d after %+v", x.name, x.was, x.is, *next)
			}
		}
		// Each end is in one of the two sums or in none, and a streak in its sum.
		if d.Failures+d.Uncounted > int64(len(runs)+1)-int64(from) || max(d.Violations, d.Limited, d.Interrupted, d.Stale) > d.Uncounted {
			t.Fatalf("%d runs, fresh from %d: %+v", len(runs)+1, from, d)
		}
		// A fresh start forgets, and only what lies before it.
		if e := Count(runs, min(from+1, uint64(len(runs)))); e.Failures > c.Failures || e.Uncounted > c.Uncounted {
			t.Fatalf("a later fresh start makes it more: %+v, %+v", c, e)
		}
		if e := Count(runs, uint64(len(runs))); e != (Counts{}) {
			t.Fatalf("all forgotten: %+v", e)
		}
	})
}

// A card is tried at most as often as its limits allow between two fresh starts,
// whatever its workers do and in whatever order.
func TestNoCardIsTriedForEver(t *testing.T) {
	rapidly(t, 40, 40)
	rapid.Check(t, func(t *rapid.T) {
		b := newBoard(t)
		b.limits.FailureLimit = rapid.Int64Range(1, 5).Draw(t, "failure limit")
		b.limits.ViolationLimit = rapid.Int64Range(1, 5).Draw(t, "violation limit")
		own := rapid.Int64Range(0, 4).Draw(t, "max retries")
		b.create("a", func(d *Draft) { d.MaxRetries = own })
		limit, violations := b.limits.FailureLimit, b.limits.ViolationLimit
		if own > 0 {
			limit, violations = own, own
		}
		var counted, inRow int64
		t.Repeat(map[string]func(*rapid.T){"": func(t *rapid.T) {
			if counted > limit || inRow > violations {
				t.Fatalf("%d counted ends of at most %d, %d without an answer of at most %d", counted, limit, inRow, violations)
			}
			if status := b.task("a").Status; status != Blocked && (counted == limit || inRow == violations) {
				t.Fatalf("%d of %d counted ends, %d of %d without an answer, and the card is %s", counted, limit, inRow, violations, status)
			}
		}, "attempt": func(t *rapid.T) {
			if b.task("a").Status != Ready {
				t.Skip()
			}
			b.wait(24 * time.Hour)
			run := b.start("a")
			switch how := rapid.SampledFrom([]string{"crash", "clean", "later", "fail", "time", "stop", "never", "reclaim"}).Draw(t, "how"); how {
			case "crash":
				b.ends(run, 1)
				counted, inRow = counted+1, 0
			case "clean":
				b.ends(run, 0)
				inRow++
			case "later":
				b.ends(run, ExitTryLater)
			case "fail":
				b.must(Fail(b.id("a"), "no", b.limits, b.worker("a", run)))
				b.must(BookEnd(Ending{Run: run}, b.limits))
				counted, inRow = counted+1, 0
			case "time":
				b.must(RequestEnd(EndRequest{Run: run, Reason: EndMaxRuntime}))
				b.must(BookEnd(Ending{Run: run, Record: &ExitRecord{Cause: CauseTerminated, Signal: "SIGTERM"}}, b.limits))
				counted, inRow = counted+1, 0
			case "stop":
				b.must(BookEnd(Ending{Run: run, Record: &ExitRecord{Cause: CauseTerminated, Signal: "SIGTERM"}}, b.limits))
				inRow = 0
			case "never":
				b.must(BookEnd(Ending{Run: run, Record: &ExitRecord{Cause: CauseStartFailed, Error: "no such file"}}, b.limits))
				counted, inRow = counted+1, 0
			case "reclaim":
				b.must(Reclaim(b.id("a"), run, "x", "", false, Writer{}))
				b.must(BookEnd(Ending{Run: run}, b.limits))
				counted, inRow = 0, 0 // an operator's word is a fresh start
			}
		}, "unblock": func(t *rapid.T) {
			if b.task("a").Status != Blocked {
				t.Skip()
			}
			b.must(Unblock(b.id("a"), Writer{}))
			counted, inRow = 0, 0
		}})
	})
}

// The wait before another attempt lies between the back-off that was asked for
// and a quarter more than its bound, never shrinks with more failures beyond the
// spread, and is the same in every replay.
func TestRetryAtStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := func(name string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(MaxDuration)).Draw(t, name)).Truncate(time.Microsecond)
		}
		l := Limits{RetryBackoff: span("backoff"), MaxBackoff: span("most")}
		now := eventlog.Time(rapid.Int64Range(1, 253402300799999999).Draw(t, "now"))
		n, run := rapid.Int64Range(0, 1000).Draw(t, "failures"), rapid.Uint64().Draw(t, "run")
		at := l.retryAt(now, n, run)
		if l.RetryBackoff == 0 {
			if at != 0 {
				t.Fatalf("switched off: %d", at)
			}
			return
		}
		wait := time.Duration(at-now) * time.Microsecond
		most := max(l.MaxBackoff, l.RetryBackoff)
		if wait < l.RetryBackoff || wait > most+most/4 {
			t.Fatalf("waits %s; asked for %s, at most %s", wait, l.RetryBackoff, most)
		}
		if at != l.retryAt(now, n, run) {
			t.Fatal("not the same twice")
		}
		if more := l.retryAt(now, n+1, run); more < at {
			t.Fatalf("after %d failures until %d, after one more until %d", n, at, more)
		}
	})
}

// A prefix finds the one card that begins with it, or says why not.
func TestResolveFindsExactlyPrefixes(t *testing.T) {
	id := rapid.StringMatching(`t_[ab]{0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(id, 0, 12, rapid.ID[string]).Draw(t, "ids")
		m := eventlog.NewMem([16]byte{1})
		for _, id := range ids {
			m.Put(tabTasks, []byte(id), encodeRow(&Task{ID: id}))
		}
		prefix := rapid.OneOf(id, rapid.SampledFrom([]string{"", "t", "t_", "T_a", "t_a\x00", "\xff"})).Draw(t, "prefix")
		var found []string
		for _, id := range ids {
			if strings.HasPrefix(id, prefix) {
				found = append(found, id)
			}
		}
		got, err := View{m}.Resolve(prefix)
		switch {
		case prefix == "":
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("an empty one: %q, %v", got, err)
			}
		case slices.Contains(ids, prefix) || len(found) == 1:
			want := prefix
			if len(found) == 1 {
				want = found[0]
			}
			if got != want || err != nil {
				t.Fatalf("%q of %q: %q, %v", prefix, ids, got, err)
			}
		case got != "" || !errors.Is(err, ErrNotFound):
			t.Fatalf("%q of %q: %q, %v", prefix, ids, got, err)
		case len(found) > 1 && !strings.Contains(err.Error(), "beginning of several"):
			t.Fatalf("%q of %q: %v", prefix, ids, err)
		}
	})
}
