package main_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fail the n-th operation: a session of the real program, in which the n-th call
// of one kind fails, or its process dies there. Afterwards everything must be
// whole, what was acknowledged must be there, what was said must be true, and
// plain ticks must bring every card to its end without running one twice.
//
// strace counts each thread's calls by itself and injects into every process of
// a step, so that a failure may strike a dispatcher, its supervisors and what
// their workers call at once. What was struck is read from its log.

var (
	injectAll   = flag.Bool("inject.all", false, "TestInject tries every n of every call; scripts/inject prints it as a table")
	injectSeed  = flag.Uint64("inject.seed", 1, "what TestInject draws its sample by")
	injectCount = flag.Int("inject.count", 48, "how many failures TestInject draws")
	injectOnly  = flag.String("inject.only", "", "STEP[/CALL[/N[/FAILURE]]]: only these, as a failed TestInject prints them")
)

// injection is one failure of one call in one step.
type injection struct {
	step    *injectStep
	call    string
	n       int
	failure string // an error's name, or KILL
}

func (j injection) String() string {
	return fmt.Sprintf("%s/%s/%d/%s", j.step.name, j.call, j.n, j.failure)
}

func (j injection) expression() string {
	if j.failure == "KILL" {
		return fmt.Sprintf("%s:signal=KILL:when=%d", j.call, j.n)
	}
	return fmt.Sprintf("%s:error=%s:when=%d", j.call, j.failure, j.n)
}

// wanted tells whether --inject.only allows it.
func (j injection) wanted() bool {
	return *injectOnly == "" || j.String() == *injectOnly || strings.HasPrefix(j.String(), *injectOnly+"/")
}

func TestInject(t *testing.T) {
	if err := straceWorks(t.TempDir()); err != nil {
		t.Fatalf("needs strace: %v", err)
	}
	b := newInjectBench(t)
	var all []injection
	for _, step := range injectSteps {
		for call, numbers := range points(b.count(step)) {
			for _, n := range numbers {
				for _, failure := range append([]string{"KILL"}, failures(call)...) {
					if j := (injection{step, call, n, failure}); j.wanted() {
						all = append(all, j)
					}
				}
			}
		}
	}
	// The order of a map is no order to draw from.
	slices.SortFunc(all, func(a, b injection) int {
		return cmp.Or(cmp.Compare(slices.Index(injectSteps, a.step), slices.Index(injectSteps, b.step)),
			cmp.Compare(a.call, b.call), cmp.Compare(a.n, b.n), cmp.Compare(a.failure, b.failure))
	})
	if len(all) == 0 {
		t.Fatalf("nothing to fail for -inject.only %q", *injectOnly)
	}
	chosen := all
	if !*injectAll && *injectOnly == "" {
		chosen = sample(all)
	}
	table := b.run(chosen)
	t.Logf("%d of %d failures tried, sample %d\n%s", len(chosen), len(all), *injectSeed, table)
}

// sample draws few of many: per step the syncs and the calls that put something
// in its place, which are the ones that matter most, then any.
func sample(all []injection) []injection {
	r := rand.New(rand.NewPCG(*injectSeed, 0))
	rest := slices.Clone(all)
	r.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	var first []injection
	seen := map[string]bool{}
	rest = slices.DeleteFunc(rest, func(j injection) bool {
		switch j.call {
		case "fdatasync", "pwrite64", "renameat":
			if key := j.step.name + j.call; !seen[key] {
				seen[key], first = true, append(first, j)
				return true
			}
		}
		return false
	})
	picked := append(first, rest...)
	return picked[:min(len(picked), *injectCount)]
}

// run tries them, two at a time, and returns a table of what came of it.
func (b *injectBench) run(list []injection) string {
	type row struct{ tried, zero, one, killed, other, missed, faults int }
	rows := map[string]*row{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan injection)
	for range min(2, runtime.NumCPU()) {
		wg.Go(func() {
			for j := range next {
				c := b.try(j)
				mu.Lock()
				name := fmt.Sprintf("%-16s %s", j.step.name, j.call)
				if rows[name] == nil {
					rows[name] = &row{}
				}
				r := rows[name]
				r.tried++
				switch {
				case !c.struck:
					r.missed++
				case c.code == 0:
					r.zero++
				case c.code == 1:
					r.one++
				case c.code < 0:
					r.killed++
				default:
					r.other++
				}
				if len(c.faults) > 0 {
					r.faults++
					b.t.Errorf("%s:\n  %s\n  go test ./cmd/kanlog -run TestInject -inject.only %s", j, strings.Join(c.faults, "\n  "), j)
				}
				mu.Unlock()
			}
		})
	}
	for _, j := range list {
		next <- j
	}
	close(next)
	wg.Wait()
	var text bytes.Buffer
	fmt.Fprintf(&text, "%-34s %6s %6s %6s %6s %6s %7s %6s\n", "step and call", "tried", "exit 0", "exit 1", "killed", "other", "missed", "faults")
	var sum row
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range rows {
			if !yield(name) {
				return
			}
		}
	}) {
		r := rows[name]
		fmt.Fprintf(&text, "%-34s %6d %6d %6d %6d %6d %7d %6d\n", name, r.tried, r.zero, r.one, r.killed, r.other, r.missed, r.faults)
		sum = row{sum.tried + r.tried, sum.zero + r.zero, sum.one + r.one, sum.killed + r.killed, sum.other + r.other, sum.missed + r.missed, sum.faults + r.faults}
	}
	fmt.Fprintf(&text, "%-34s %6d %6d %6d %6d %6d %7d %6d\n", "all", sum.tried, sum.zero, sum.one, sum.killed, sum.other, sum.missed, sum.faults)
	if sum.missed*2 > sum.tried {
		b.t.Errorf("%d of %d failures struck nothing: this proves little", sum.missed, sum.tried)
	}
	return text.String()
}

// try makes one call of a step fail and looks at everything afterwards.
func (b *injectBench) try(j injection) *injectCase {
	c := b.begin(j.step)
	defer c.end()
	log := filepath.Join(c.dir, "trace")
	before := c.history()
	code, out, said := c.exec(traced(log, j.expression(), append([]string{"kanlog"}, c.expand(j.step.args)...)))
	c.code = code
	calls, err := readTrace(log)
	if err != nil || len(calls) == 0 {
		c.fault("strace left no log (%v): exit %d: %s", err, code, said)
		return c
	}
	if j.call == "close" && slices.ContainsFunc(calls, func(k call) bool { return k.injected && strings.Contains(k.text, "<pipe:") }) {
		// Linux closes also where close fails; injected, it does not, and whoever
		// reads from the other end of a pipe waits for ever, as nobody ever would.
		return c
	}
	c.judge(j, calls, out, said)
	c.sameHistory(before)
	c.verify()
	c.again(j.step)
	c.drain()
	c.sameHistory(before)
	c.verify()
	c.starts()
	c.quiet()
	return c
}

// judge compares what the step said with what is so.
func (c *injectCase) judge(j injection, calls []call, out, said string) {
	main := calls[0].process
	var mine []call // what was struck of the step's own process
	runtimes, mute := false, false
	for _, k := range calls {
		hit := k.injected || j.failure == "KILL" && k.name == j.call && k.nth == j.n
		if !hit || !k.ours() {
			continue
		}
		c.struck = true
		runtimes = runtimes || k.runtimes()
		if k.process == main {
			mine = append(mine, k)
			// The n-th of a thread is struck: both stdout and stderr may be.
			mute = mute || strings.HasPrefix(k.text, "write(2<")
		}
	}
	words := out + said + c.outputs()
	for _, trace := range []string{"goroutine ", "panic:", "fatal error:", "runtime error", "SIGSEGV", "SIGBUS"} {
		if strings.Contains(words, trace) && !runtimes {
			c.fault("a trace of Go: %s", words)
			break
		}
	}
	if wrong := afterFailedSync(calls); wrong != "" {
		c.fault("%s", wrong)
	}
	unknown := strings.Contains(said, "may or may not be recorded")
	for _, k := range mine {
		if !k.injected || k.name != "fdatasync" && k.name != "fsync" || j.failure == "EINTR" && k.name == "fsync" {
			continue // Go asks again after EINTR; bbolt, for fdatasync, does not
		}
		if c.code != 1 {
			c.fault("%q failed, exit %d: %s%s", short(k.text), c.code, out, said)
		}
		if strings.Contains(k.text, "/board.db>") && !unknown {
			c.fault("%q failed, and it does not say that the outcome is unknown: %s", short(k.text), said)
		}
	}
	if j.failure == "KILL" && len(mine) > 0 && c.code >= 0 {
		c.fault("it was to die in %q, and lives: exit %d", short(mine[0].text), c.code)
	}
	if runtimes && c.code != 0 {
		c.code = -1 // Go's runtime ends a process that it cannot run
	} else if c.code < 0 && j.failure != "KILL" {
		c.fault("it died (exit %d): %s%s", c.code, out, said)
	}
	// A lock whose close fails is still held here, as it never is in reality.
	stuck := j.call == "close" && c.code == 5
	if c.code > 1 && !stuck {
		c.fault("exit %d, which is no word for a failing system: %s%s", c.code, out, said)
	}
	if c.code > 0 && strings.TrimSpace(said) == "" && !mute {
		c.fault("exit %d without a word", c.code)
	}
	if c.code == 0 && j.step.same && out != c.b.usual[j.step.name] {
		c.fault("exit 0 with another answer:\n%s\nusually:\n%s", out, c.b.usual[j.step.name])
	}
	if j.step.lines {
		c.doneAsSaid(out)
	}
	if j.step.effect == nil {
		return
	}
	c.there = c.effect(j.step)
	sure := strings.Contains(said, "recorded, but")
	switch {
	case c.code == 0 && !c.there:
		c.fault("exit 0, but nothing is recorded: %s%s", out, said)
	case c.code > 0 && c.there && !unknown && !sure && !mute:
		c.fault("exit %d without a word that it is recorded: %s", c.code, said)
	case c.code > 0 && !c.there && sure:
		c.fault("it says that it is recorded, and it is not: %s", said)
	}
}

// again does the step once more, without a fault. What is there already is found
// there.
func (c *injectCase) again(step *injectStep) {
	if step.effect != nil && c.there && !step.repeatable {
		return
	}
	code, out, said := c.kanlog(c.expand(step.args)...)
	if code != 0 && code != step.found {
		c.fault("a second time: exit %d: %s%s", code, out, said)
		return
	}
	if step.effect != nil && !c.effect(step) {
		c.fault("a second time: exit 0, but nothing is recorded: %s%s", out, said)
	}
}

// drain ticks until every card that has a profile is done.
func (c *injectCase) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ctx.Err() == nil {
		if code, out, said := c.kanlog("dispatch"); code != 0 {
			c.fault("a plain tick: exit %d: %s%s", code, out, said)
			return
		}
		if c.drained() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	_, list, _ := c.kanlog("list")
	_, events, _ := c.kanlog("events")
	c.fault("plain ticks do not bring it to an end: %s\n%s", list, events)
}
