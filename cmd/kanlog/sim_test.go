package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// The simulation: the real deciders, fold, judge, admission, executor and prober
// on a machine that is made up (sim_machine_test.go), with supervisors, workers
// and operators that are made up too (sim_people_test.go). One seed is one
// history. Everybody may be killed or stopped between any two steps, and what was
// read grows old before it is acted on. After every step what must never break is
// checked (sim_check_test.go); at the end, with fair ticks and nothing going wrong
// any more, every card reaches an end or a stated hold.

var (
	simSeed  = flag.Uint64("sim.seed", 0, "run this one history, as a failed TestSimulation prints it")
	simCount = flag.Int("sim.count", 2000, "how many histories TestSimulation runs")
	simFirst = flag.Uint64("sim.first", 1, "the first seed")
)

const simSteps = 400

func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		h := simulate(t, *simSeed, simSteps, 0)
		for _, line := range h.trace {
			t.Log(line)
		}
		if h.failure != "" {
			t.Fatal(h.failure)
		}
		return
	}
	// Histories are short and leave nothing behind: collecting less often is faster.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	reached := newReach()
	for i := range *simCount {
		seed := *simFirst + uint64(i)
		if h := simulate(t, seed, simSteps, 0); h.failure != "" {
			t.Fatal(shrink(t, seed, h))
		} else {
			reached.add(h)
		}
	}
	reached.report(t, *simCount)
}

// A seed that fails is worth something only if it fails again: the order in which
// goroutines run, and what a select or a map happens to choose, must not matter.
func TestOneSeedIsOneHistory(t *testing.T) {
	for i := range uint64(*simCount / 20) {
		seed := *simFirst + i
		first, again := simulate(t, seed, simSteps, 0), simulate(t, seed, simSteps, 0)
		for n, line := range first.trace {
			if n >= len(again.trace) || again.trace[n] != line {
				t.Fatalf("seed %d: the first time\n  %s\nand the second time\n  %s", seed, strings.Join(first.trace[max(0, n-10):n+1], "\n  "),
					strings.Join(again.trace[max(0, n-2):min(n+1, len(again.trace))], "\n  "))
			}
		}
	}
}

// shrink looks for the shortest history of a seed that still fails, with as few
// kinds of trouble as possible, and tells it.
func shrink(t *testing.T, seed uint64, first *sim) string {
	steps, without := first.steps, trouble(0)
	best := first
	for kind := trouble(1); kind < allTrouble; kind <<= 1 {
		if h := simulate(t, seed, simSteps, without|kind); h.failure != "" {
			without, best, steps = without|kind, h, h.steps
		}
	}
	for cut := steps / 2; cut > 0; cut /= 2 {
		for steps > cut {
			h := simulate(t, seed, steps-cut, without)
			if h.failure == "" {
				break
			}
			steps, best = min(steps-cut, h.steps), h
		}
	}
	tail := best.trace[max(0, len(best.trace)-120):]
	return fmt.Sprintf("seed %d fails: %s\nshrunk to %d steps: %s\n  %s\nto see all of it: go test ./cmd/kanlog -run TestSimulation -sim.seed %d",
		seed, first.failure, best.steps, best.failure, strings.Join(tail, "\n  "), seed)
}

// trouble is what may go wrong in a history, as bits that shrink can take away.
type trouble uint

const (
	byKill trouble = 1 << iota
	byStop
	byReboot
	byNoise
	byStrangers
	byOperators
	byClock
	byStore
	bySecondTick
	allTrouble
)

// sim is one history.
type sim struct {
	r       *rand.Rand
	without trouble
	steps   int
	fair    bool
	trace   []string
	failure string

	began  time.Time // of the bubble
	offset time.Duration
	store  *projection.MemStore
	app    *app
	m      *simMachine
	policy tick.Policy
	// second: dispatches come from two PID namespaces. A descendant that closed
	// its output is not found from the other one (not promised), so that in such a
	// history none does.
	second bool

	dispatchers []*simDispatcher
	intents     []*simIntent
	reqMu       sync.Mutex
	requests    []*simRequest
	records     map[uint64]*proc.Record
	forced      map[uint64]bool // runs that were released without proof
	signalling  uint64          // the run for which signals are sent right now
	audit       simAudit
	rules       simRules
	made        int
	cards       []string
}

// simulate runs one history to its end.
func simulate(t *testing.T, seed uint64, steps int, without trouble) *sim {
	var s *sim
	synctest.Test(t, func(t *testing.T) {
		s = newSim(seed, without)
		for range 3 {
			s.newCard()
		}
		for s.steps = 0; s.steps < steps && s.failure == ""; s.steps++ {
			s.step()
		}
		if s.failure == "" {
			s.settle()
		}
		if s.failure == "" {
			if rep := s.store.Verify(); rep.Problem != "" {
				s.fail("verify: %s", rep.Problem)
			}
		}
		// Nothing of the bubble may be left.
		for _, d := range s.dispatchers {
			s.kill(d)
		}
		synctest.Wait()
	})
	return s
}

// newSim is a history before its first step, inside its bubble.
func newSim(seed uint64, without trouble) *sim {
	s := &sim{
		r: rand.New(rand.NewPCG(seed, 7)), without: without, began: time.Now(),
		store:   &projection.MemStore{Mem: eventlog.NewMem([16]byte{9})},
		app:     &app{boardDir: "/board"},
		records: map[uint64]*proc.Record{}, forced: map[uint64]bool{}, audit: newSimAudit(),
		policy: defaults().policy,
	}
	s.m = &simMachine{s: s, machine: "machine", procs: map[simPID]*simProc{}, ticks: 1000, first: map[string]int{"a": 1, "b": 900}}
	s.policy.MaxInProgress = 3
	// Shorter than max runtime, or that would always be first.
	s.policy.Limits.HeartbeatStale = 8 * time.Minute
	s.second = s.r.IntN(2) == 0
	if s.r.IntN(3) == 0 {
		s.policy.Breaker.Runs = 3
	}
	for name, clean := range map[string]string{"coder": projection.CleanViolation, "tool": projection.CleanComplete, "other": projection.CleanReview} {
		s.policy.Profiles[name] = tick.Profile{Name: name, Command: []string{name}, OnCleanExit: clean, MaxRuntime: 20 * time.Minute, MaxInProgress: 2}
	}
	s.policy.Limits.BlockLimit = 2
	coder := s.policy.Profiles["coder"]
	coder.Reviewer = pick(s.r, "", "tool", "coder")
	s.policy.Profiles["coder"] = coder
	return s
}

func (s *sim) now() eventlog.Time {
	return eventlog.TimeOf(time.Unix(1_800_000_000, 0).Add(time.Since(s.began)).Add(s.offset))
}

func (s *sim) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%4d %s ", s.steps, s.now().Std().Format("15:04:05"))+fmt.Sprintf(format, args...))
}

func (s *sim) fail(format string, args ...any) {
	if s.failure == "" {
		s.failure = fmt.Sprintf(format, args...)
		s.note("FAILED: %s", s.failure)
	}
}

// may tells whether a kind of trouble happens now, n times in a thousand.
func (s *sim) may(kind trouble, n int) bool {
	// The number is drawn in any case, so that taking away one kind of trouble
	// changes the rest of the history as little as possible.
	return s.r.IntN(1000) < n && s.without&kind == 0 && !s.fair
}

// step lets one thing happen.
func (s *sim) step() {
	switch {
	case s.may(byKill, 12):
		s.killSomebody()
	case s.may(byStop, 15):
		s.stopSomebody()
	case s.may(byReboot, 2):
		s.reboot()
	case s.may(byNoise, 8):
		s.m.noise = []int{0, 0, 30, 300}[s.r.IntN(4)]
		s.note("one reading of /proc in a thousand fails %d times", s.m.noise)
	case s.may(byStrangers, 40):
		s.stranger()
	case s.may(byOperators, 60):
		s.operate()
	case s.may(byClock, 8):
		jump := []time.Duration{-time.Hour, -30 * time.Second, 20 * time.Second, 3 * time.Hour}[s.r.IntN(4)]
		s.offset += jump
		s.rules.jumped(s.dispatchers)
		s.note("the clock jumps by %s", jump)
	case s.r.IntN(12) == 0:
		s.advance([]time.Duration{time.Millisecond, time.Second, 6 * time.Second, 40 * time.Second, 3 * time.Minute, 16 * time.Minute}[s.r.IntN(6)])
	case s.r.IntN(9) == 0:
		s.newTick("a")
	case s.r.IntN(40) == 0 && s.second:
		s.newTick("b")
	case s.r.IntN(2) == 0 && s.release():
	default:
		s.live()
	}
	synctest.Wait()
	s.check()
}

// advance lets time go by for everybody.
func (s *sim) advance(d time.Duration) {
	s.note("%s go by", d)
	time.Sleep(d)
	s.m.ticks += int(d / (10 * time.Millisecond))
}

// newTick starts a dispatch in a namespace, unless too many are at it.
func (s *sim) newTick(ns string) {
	busy := 0
	for _, d := range s.dispatchers {
		if !d.over {
			busy++
		}
	}
	if busy >= 3 {
		return
	}
	s.made++
	d := &simDispatcher{s: s, n: s.made, die: make(chan struct{})}
	d.proc = s.m.add(ns, nil, "dispatcher")
	s.dispatchers = append(s.dispatchers, d)
	s.note("dispatch %d begins as %s %d", d.n, ns, d.proc.pid)
	go d.tick()
}
