package projection

import (
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

// What the newest runs of a profile have in common is known after each end.
func TestAlike(t *testing.T) {
	signal := func(name string) func(b *board, run uint64) {
		return func(b *board, run uint64) {
			b.must(BookEnd(Ending{Run: run, Record: &ExitRecord{Cause: CauseSignaled, Signal: name}}, b.limits))
		}
	}
	code := func(n int64) func(b *board, run uint64) { return func(b *board, run uint64) { b.ends(run, n) } }
	asked := func(reason string) func(b *board, run uint64) {
		return func(b *board, run uint64) {
			b.must(RequestEnd(EndRequest{Run: run, Reason: reason}))
			b.must(BookEnd(Ending{Run: run}, b.limits))
		}
	}
	steps := map[string]func(b *board, run uint64){
		"9": code(9), "0": code(0), "75": code(75), "3": code(3), "segv": signal("SIGSEGV"), "kill": signal("SIGKILL"),
		"late": asked(EndMaxRuntime), "silent": asked(EndHeartbeatStale), "reclaim": asked(EndReclaim),
		"reboot": func(b *board, run uint64) { b.must(BookEnd(Ending{Run: run, OtherBoot: true}, b.limits)) },
		"gone":   func(b *board, run uint64) { b.must(BookEnd(Ending{Run: run}, b.limits)) },
		"full": func(b *board, run uint64) {
			b.must(BookEnd(Ending{Run: run, Record: &ExitRecord{Cause: CauseStartFailed, Error: "no room", Infrastructure: true}}, b.limits))
		},
		"missing": func(b *board, run uint64) {
			b.must(BookEnd(Ending{Run: run, Record: &ExitRecord{Cause: CauseStartFailed, Error: "agent: not found"}}, b.limits))
		},
	}
	answers := map[string]func(b *board, title string, w Writer) Decider{
		"done":  func(b *board, title string, w Writer) Decider { return Complete(b.id(title), Answer{}, w) },
		"fail":  func(b *board, title string, w Writer) Decider { return Fail(b.id(title), "quota of ann", b.limits, w) },
		"defer": func(b *board, title string, w Writer) Decider { return Defer(b.id(title), time.Hour, "", b.limits, w) },
		"block": func(b *board, title string, w Writer) Decider {
			return Block(b.id(title), "why?", "", DefaultLimits(), w)
		},
	}
	for _, c := range []struct {
		ends string // one card each
		runs int64
		how  string
	}{
		{"9 9 9", 3, "exited with 9"},
		{"9 3", 1, "exited with 3"},
		{"9 9 done", 0, ""},
		{"9 9 block", 0, ""}, // a worker that can ask can work
		{"9 9 defer", 0, ""},
		{"done 9", 1, "exited with 9"},
		{"0 0", 2, "exited with 0 without an answer"},
		{"75 75", 2, "exited with 75"},
		{"segv segv", 2, "were ended by signal SIGSEGV"},
		{"segv kill", 1, "were ended by signal SIGKILL"},
		{"gone gone", 2, "ended without a trace"},
		{"late late", 2, "exceeded their time"},
		{"silent silent", 2, "fell silent"},
		{"missing missing", 2, "could not be started: agent: not found"},
		{"fail fail", 2, "said that they failed: quota of ann"},
		// What an operator, a reboot or a full disk did says nothing about the
		// worker, and keeps no streak from going on.
		{"9 reclaim reboot full 9", 2, "exited with 9"},
		{"reclaim reboot full", 0, ""},
	} {
		t.Run(c.ends, func(t *testing.T) {
			b := newBoard(t)
			for i, end := range strings.Fields(c.ends) {
				title := string(rune('a' + i))
				b.create(title)
				run := b.start(title)
				if say := answers[end]; say != nil {
					b.must(say(b, title, b.worker(title, run)))
					b.ends(run, 0)
					continue
				}
				steps[end](b, run)
			}
			a, err := b.view().Alike("coder")
			if err != nil {
				t.Fatal(err)
			}
			if c.runs == 0 {
				if a != nil {
					t.Fatalf("%d runs %s; want none", a.Runs, a.How)
				}
				return
			}
			if a == nil {
				t.Fatal("nothing in common")
			}
			equal(t, "how many", a.Runs, c.runs)
			equal(t, "how", a.How, c.how)
		})
	}
}

func TestAManualClaimSaysNothingOfAWorker(t *testing.T) {
	b := newBoard(t)
	b.create("a")
	b.manual("a", "ann", time.Hour)
	b.must(Fail(b.id("a"), "no", b.limits, Writer{}))
	if a, err := b.view().Alike("coder"); a != nil || err != nil {
		t.Errorf("alike: %v, %v", a, err)
	}
}

func TestBreakerRoom(t *testing.T) {
	const now = 1_700_000_000_000_000
	on := Breaker{Runs: 5, Pause: time.Minute, Most: 10 * time.Minute}
	two := []string{"t_1", "t_2"}
	ended := func(runs int64, ago time.Duration) *Alike {
		return &Alike{How: "exited with 9", Runs: runs, Cards: two, Last: eventlog.Time(now).Add(-ago), Seq: 100}
	}
	begun := func(ago time.Duration, ids ...uint64) (list []*Run) {
		for _, id := range ids {
			list = append(list, &Run{ID: id, Assignee: "coder", Origin: OriginDispatch, StartedAt: eventlog.Time(now).Add(-ago)})
		}
		return list
	}
	runs := func(ids ...uint64) []*Run { return begun(0, ids...) }
	others := []*Run{
		{StartedAt: now, ID: 200, Assignee: "coder", Origin: OriginManual}, // a person's
		{StartedAt: now, ID: 201, Assignee: "coder", Origin: OriginDispatch, Outcome: OutFailed, HasWorker: true},
		{StartedAt: now, ID: 202, Assignee: "other", Origin: OriginDispatch},
		{StartedAt: now, ID: 99, Assignee: "coder", Origin: OriginDispatch}, // began before the last end
	}
	for _, c := range []struct {
		name   string
		b      Breaker
		a      *Alike
		active []*Run
		room   int
		says   string
	}{
		{"off", Breaker{}, ended(50, 0), nil, -1, ""},
		{"nothing ended alike", on, nil, nil, -1, ""},
		{"one card that loops", on, &Alike{Runs: 9, Cards: []string{"t_1"}, Last: now}, nil, -1, ""},
		{"near the limit: what is tried can just reach it", on, ended(3, 0), nil, 2, "at most 2 are tried at once"},
		{"with one being tried", on, ended(3, 0), runs(101), 1, "at most 2 are tried at once"},
		{"with two", on, ended(3, 0), runs(101, 102), 0, "at most 2 are tried at once"},
		{"what is no try holds up nobody", on, ended(4, 0), others, 1, "at most 1 are tried at once"},
		{"at the limit: paused", on, ended(5, 0), nil, 0, "coder is paused until 2023-11-14T22:14:20Z: the last 5 runs of coder exited with 9"},
		{"just before the pause ends", on, ended(5, time.Minute-time.Second), nil, 0, "is paused"},
		{"after it one is tried", on, ended(5, time.Minute), others, 1, "one run at a time"},
		{"not two", on, ended(5, time.Minute), runs(101), 0, "one run at a time"},
		{"one that lasts does not fail as they did, or is held: another is tried", on, ended(5, time.Hour), begun(time.Minute, 101), 1, "one run at a time"},
		{"it lasts only when the pause is over", on, ended(6, time.Hour), begun(2*time.Minute-1, 101), 0, "one run at a time"},
		{"nor does it hold up those near the limit", on, ended(3, 0), begun(time.Minute, 101, 102), 2, "at most 2 are tried at once"},
		{"a try from the future is over", on, ended(5, time.Hour), begun(-time.Hour, 101), 1, "one run at a time"},
		{"the probe failed: twice as long", on, ended(6, time.Minute), nil, 0, "is paused"},
		{"and then another", on, ended(6, 2*time.Minute), nil, 1, "one run at a time"},
		{"for ever, not longer than the most", on, ended(500, 10*time.Minute), nil, 1, "one run at a time"},
		{"a longer pause than the most stays what was asked for", Breaker{Runs: 5, Pause: time.Hour, Most: time.Minute}, ended(5, 59*time.Minute), nil, 0, "is paused"},
		{"the clock went back: nobody waits for it to catch up", on, ended(5, -time.Hour), nil, 1, "one run at a time"},
		{"a limit of one", Breaker{Runs: 1, Pause: time.Minute, Most: time.Hour}, ended(2, 0), nil, 0, "is paused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			room, why := c.b.Room("coder", c.a, c.active, now)
			if room != c.room || !strings.Contains(why, c.says) || (c.says == "") != (why == "") {
				t.Errorf("room %d, %q; want %d, %q", room, why, c.room, c.says)
			}
		})
	}
}

// A claim is checked against the breaker in its own transaction: what a tick
// decided before another run failed must not start one more.
func TestClaimAsksTheBreaker(t *testing.T) {
	b := newBoard(t)
	for _, title := range []string{"a", "b", "c"} {
		b.create(title)
	}
	b.ends(b.start("a"), 9)
	b.ends(b.start("b"), 9)
	c := b.claimFor("c")
	c.Caps = Caps{Breaker: Breaker{Runs: 2, Pause: time.Minute, Most: time.Hour}}
	if _, err := b.try(operator, Claim(c, Writer{})); err == nil || !strings.Contains(err.Error(), "coder is paused") {
		t.Errorf("a claim of a paused profile: %v", err)
	}
	b.wait(time.Minute)
	b.must(Claim(c, Writer{}))
}
