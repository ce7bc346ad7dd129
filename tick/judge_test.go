package tick

import (
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

const noon = eventlog.Time(1_700_000_000_000_000)

func testPolicy() Policy {
	return Policy{
		Limits:      projection.DefaultLimits(), // lease 15m, stale after 1h
		LaunchGrace: 30 * time.Second, KillGrace: 5 * time.Second, TerminalGrace: 2 * time.Minute,
		MaxInProgress: 10,
		Profiles:      map[string]Profile{"coder": {Name: "coder"}},
	}
}

// worker is a run that registered a minute before noon, changed by with.
func worker(with ...func(*projection.Run)) *projection.Run {
	r := &projection.Run{
		ID: 7, Task: "t_1", Origin: projection.OriginDispatch, HasWorker: true,
		StartedAt: noon.Add(-time.Minute), SpawnedAt: noon.Add(-time.Minute),
		TTLSeconds: 900, ClaimExpires: noon.Add(14 * time.Minute),
	}
	for _, f := range with {
		f(r)
	}
	return r
}

func closed(ago time.Duration) func(*projection.Run) {
	return func(r *projection.Run) { r.Outcome, r.EndedAt = projection.OutCompleted, noon.Add(-ago) }
}

func asked(ago time.Duration) func(*projection.Run) {
	return func(r *projection.Run) {
		r.EndRequestedAt, r.EndReason = noon.Add(-ago), projection.EndReclaim
	}
}

func leaseOver(r *projection.Run) { r.ClaimExpires = noon }

func capped(seconds int64) func(*projection.Run) {
	return func(r *projection.Run) { r.MaxRuntimeSeconds = seconds }
}

func beaten(ago time.Duration) func(*projection.Run) {
	return func(r *projection.Run) { r.LastHeartbeat = noon.Add(-ago) }
}

// TestJudgeWorker is the evidence table of the design: each state of a run with
// a worker on record, against each answer. The verdicts are written as brief
// says them.
func TestJudgeWorker(t *testing.T) {
	const (
		alive      = "alive"
		orphaned   = "orphaned"
		dead       = "dead"
		held       = "held"
		unprovable = "unprovable"
		none       = ""
	)
	answers := map[string]Evidence{
		alive: {Answer: Alive}, orphaned: {Answer: Orphaned}, dead: {Answer: Dead},
		held: {Answer: Held}, unprovable: {Answer: Held, Unprovable: true},
	}
	for _, row := range []struct {
		name string
		run  *projection.Run
		want map[string]string
	}{
		{"open", worker(), map[string]string{
			alive: none, orphaned: "request orphaned, term_members", dead: "book", held: none, unprovable: none}},
		{"open, its lease run out", worker(leaseOver), map[string]string{
			alive: "extend", orphaned: "request orphaned, term_members", dead: "book", held: none, unprovable: "book unproven"}},
		{"open, its lease one moment from its end", worker(func(r *projection.Run) { r.ClaimExpires = noon + 1 }), map[string]string{
			alive: none, unprovable: none}},
		{"open, end requested just now", worker(asked(0)), map[string]string{
			alive: "term_supervisor", orphaned: "term_members", dead: "book", held: "defer", unprovable: "defer"}},
		{"open, end requested a grace ago", worker(asked(5 * time.Second)), map[string]string{
			alive: "term_supervisor", orphaned: "kill_members", dead: "book", held: "defer", unprovable: "defer"}},
		{"open, end requested two graces ago", worker(asked(10 * time.Second)), map[string]string{
			alive: "kill_supervisor", orphaned: "kill_members", dead: "book", held: "defer", unprovable: "defer"}},
		{"open, end requested and its lease run out", worker(asked(0), leaseOver), map[string]string{
			alive: "term_supervisor", orphaned: "term_members", dead: "book", held: "defer", unprovable: "book unproven"}},
		{"open, over its time", worker(capped(60)), map[string]string{
			alive: "request max_runtime, term_supervisor", orphaned: "request orphaned, term_members", dead: "book", held: none, unprovable: none}},
		{"open, within its time", worker(capped(61)), map[string]string{alive: none}},
		{"open, over its time and its lease run out", worker(capped(60), leaseOver), map[string]string{
			alive: "request max_runtime, term_supervisor", unprovable: "book unproven"}},
		{"open, over its time, end requested before", worker(capped(60), asked(0)), map[string]string{alive: "term_supervisor"}},
		{"open, silent too long", worker(beaten(time.Hour)), map[string]string{
			alive: "request heartbeat_stale, term_supervisor", orphaned: "request orphaned, term_members", dead: "book", held: none, unprovable: none}},
		{"open, silent not too long", worker(beaten(time.Hour - time.Second)), map[string]string{alive: none}},
		{"open for a day, never beaten", worker(func(r *projection.Run) { r.SpawnedAt = noon.Add(-24 * time.Hour) }), map[string]string{alive: none}},
		{"closed, inside the terminal grace", worker(closed(2*time.Minute - time.Second)), map[string]string{
			alive: none, orphaned: "request orphaned, term_members", dead: "book", held: none, unprovable: none}},
		{"closed, past the terminal grace", worker(closed(2 * time.Minute)), map[string]string{
			alive: "request terminal_grace, term_supervisor", orphaned: "request orphaned, term_members", dead: "book", held: "request terminal_grace", unprovable: "request terminal_grace"}},
		{"closed, its lease run out", worker(closed(time.Second), leaseOver), map[string]string{
			alive: none, held: none, unprovable: "book unproven"}},
		{"closed, over its time or silent: that is over", worker(closed(time.Second), capped(1), beaten(2*time.Hour)), map[string]string{alive: none}},
		{"closed, end requested just now", worker(closed(time.Hour), asked(0)), map[string]string{
			alive: "term_supervisor", orphaned: "term_members", dead: "book", held: "defer", unprovable: "defer"}},
		{"closed, end requested two graces ago", worker(closed(time.Hour), asked(10*time.Second)), map[string]string{
			alive: "kill_supervisor", orphaned: "kill_members"}},

		// The clock went back: what lies in the future happened just now. A
		// lease from the future is over for who is proven alive, and proves
		// nothing about who cannot be looked at.
		{"clock back: a lease from the future", worker(func(r *projection.Run) { r.ClaimExpires = noon.Add(24 * time.Hour) }), map[string]string{
			alive: "extend", dead: "book", held: none, unprovable: none}},
		{"clock back: started in the future", worker(capped(60), func(r *projection.Run) { r.SpawnedAt = noon.Add(time.Hour) }), map[string]string{alive: none}},
		{"clock back: a beat from the future", worker(beaten(-2 * time.Hour)), map[string]string{alive: none}},
		{"clock back: closed in the future", worker(closed(-time.Hour)), map[string]string{alive: none, dead: "book"}},
		{"clock back: end requested in the future", worker(asked(-time.Hour)), map[string]string{
			alive: "term_supervisor", orphaned: "term_members", held: "defer"}},
	} {
		for answer, want := range row.want {
			t.Run(row.name+"/"+answer, func(t *testing.T) {
				if got := judge(row.run, answers[answer], noon, testPolicy()).brief(); got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
}

// TestJudgeClaim judges claims for which nobody registered.
func TestJudgeClaim(t *testing.T) {
	claim := func(age time.Duration) *projection.Run {
		return &projection.Run{ID: 7, Origin: projection.OriginDispatch, StartedAt: noon.Add(-age), ClaimExpires: noon.Add(30*time.Second - age), TTLSeconds: 900}
	}
	manual := func(left time.Duration) *projection.Run {
		return &projection.Run{ID: 7, Origin: projection.OriginManual, StartedAt: noon.Add(-time.Hour), ClaimExpires: noon.Add(left), TTLSeconds: 3600}
	}
	const early, late = 35*time.Second - 1000, 35 * time.Second // launch grace and a kill grace
	for _, c := range []struct {
		name   string
		run    *projection.Run
		answer Answer
		want   string
	}{
		{"claimer alive, before the launch grace", claim(early), Alive, ""},
		{"claimer alive, past the launch grace", claim(late), Alive, "cut off"},
		{"claimer dead, at once", claim(0), Dead, "cut off, interrupted"},
		{"claimer dead, past the launch grace", claim(late), Dead, "cut off, interrupted"},
		{"claimer held, before the launch grace", claim(early), Held, ""},
		{"claimer held, past the launch grace", claim(late), Held, "cut off"},
		{"clock back: claimed in the future, claimer alive", claim(-time.Hour), Alive, ""},
		{"clock back: claimed in the future, claimer dead", claim(-time.Hour), Dead, "cut off, interrupted"},
		{"manual, before the lease", manual(time.Second), NoWorker, ""},
		{"manual, past the lease", manual(0), NoWorker, "expire"},
		{"manual, its claimer is of no interest", manual(time.Second), Dead, ""},
		{"manual, clock back behind its claim", manual(2 * time.Hour), NoWorker, "expire"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judge(c.run, Evidence{Answer: c.answer}, noon, testPolicy()).brief(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The reasons that end up in the log say what was measured.
func TestJudgeSaysWhatItMeasured(t *testing.T) {
	for _, c := range []struct {
		run  *projection.Run
		e    Evidence
		want string
	}{
		{worker(capped(30)), Evidence{Answer: Alive}, "ran 1m0s of at most 30s"},
		{worker(beaten(2 * time.Hour)), Evidence{Answer: Alive}, "silent for 2h0m0s, at most 1h0m0s"},
		{worker(closed(3 * time.Minute)), Evidence{Answer: Alive}, "alive 3m0s after its answer"},
		{worker(), Evidence{Answer: Orphaned, Why: "pid 9 is left"}, "pid 9 is left"},
	} {
		if got := judge(c.run, c.e, noon, testPolicy()).detail; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	off := testPolicy()
	off.Limits.HeartbeatStale = 0
	if got := judge(worker(beaten(48*time.Hour)), Evidence{Answer: Alive}, noon, off).brief(); got != "" {
		t.Errorf("staleness switched off: %q", got)
	}
	if got := judge(worker(), Evidence{}, noon, testPolicy()).brief(); got != "" {
		t.Errorf("no answer at all: %q", got)
	}
}

func (v verdict) brief() string {
	var list []string
	for _, part := range []struct {
		set  bool
		name string
	}{
		{v.requestEnd != "", "request " + v.requestEnd}, {v.signal != NoSignal, string(v.signal)},
		{v.deferEnd, "defer"}, {v.extend, "extend"}, {v.book && !v.unproven, "book"}, {v.unproven, "book unproven"},
		{v.cutOff, "cut off"}, {v.interrupted, "interrupted"}, {v.expireManual, "expire"},
	} {
		if part.set {
			list = append(list, part.name)
		}
	}
	return strings.Join(list, ", ")
}
