package tick

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid" // finds the smallest case that fails; only in tests

	"kanlog/eventlog"
	"kanlog/projection"
)

var someAssignee = rapid.SampledFrom([]string{"coder", "other", "nobody"})

// Admission loses no card and invents none, keeps to every cap, and passes nobody
// over: who waits could not have started.
func TestAdmitLosesNoCardAndKeepsToCaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := testPolicy()
		p.MaxInProgress = rapid.IntRange(1, 8).Draw(t, "board's cap")
		p.Breaker = projection.Breaker{Runs: rapid.Int64Range(0, 4).Draw(t, "breaker"), Pause: time.Minute, Most: time.Hour}
		p.Profiles = map[string]Profile{}
		for _, name := range []string{"coder", "other"} {
			p.Profiles[name] = Profile{Name: name, MaxInProgress: rapid.IntRange(0, 4).Draw(t, "cap of "+name)}
		}
		var active []*projection.Run
		before := map[string]int{}
		for i := range rapid.IntRange(0, 10).Draw(t, "active") {
			r := &projection.Run{ID: uint64(i + 1), Assignee: someAssignee.Draw(t, "of"), Origin: projection.OriginDispatch}
			active, before[r.Assignee] = append(active, r), before[r.Assignee]+1
		}
		var cards []*projection.Task
		for i := range rapid.IntRange(0, 12).Draw(t, "cards") {
			cards = append(cards, &projection.Task{
				ID: string(rune('a' + i)), Assignee: someAssignee.Draw(t, "for"), CreatedSeq: uint64(i),
				Priority: rapid.Int64Range(-2, 2).Draw(t, "priority"), LastError: rapid.SampledFrom([]string{"", "failed"}).Draw(t, "last"),
			})
		}
		s := countSlots(slices.Clone(active), p)
		s.now = noon
		room := map[string]int{}
		for name := range p.Profiles {
			room[name] = -1
			if rapid.Bool().Draw(t, "alike") {
				s.alike[name] = &projection.Alike{
					How: "exited with 1", Runs: rapid.Int64Range(1, 6).Draw(t, "in a row"), Cards: []string{"x", "y"},
					Last: noon.Add(-time.Duration(rapid.IntRange(-5, 90).Draw(t, "ago")) * time.Minute), Seq: rapid.Uint64Range(0, 11).Draw(t, "seq"),
				}
				room[name], _ = p.Breaker.Room(name, s.alike[name], active, noon)
			}
		}
		most := rapid.IntRange(-1, 6).Draw(t, "most")
		all := slices.Clone(cards)
		picks, waiting := admit(cards, s, most)

		seen := map[string]int{}
		started := map[string]int{}
		for _, c := range picks {
			seen[c.ID]++
			started[c.Assignee]++
		}
		for _, w := range waiting {
			seen[w.Task]++
			if w.Reason == "" {
				t.Fatalf("%s waits for no reason", w.Task)
			}
		}
		for _, c := range all {
			if seen[c.ID] != 1 {
				t.Fatalf("%s is there %d times: picked %d, waiting %v", c.ID, seen[c.ID], len(picks), waiting)
			}
		}
		if len(seen) != len(all) {
			t.Fatalf("%d cards became %d", len(all), len(seen))
		}
		if len(picks) > 0 && len(active)+len(picks) > p.MaxInProgress || most >= 0 && len(picks) > most {
			t.Fatalf("%d started beside %d; the cap is %d, at most %d", len(picks), len(active), p.MaxInProgress, most)
		}
		for name, n := range started {
			if most := p.Profiles[name].MaxInProgress; most > 0 && before[name]+n > most {
				t.Fatalf("%d of %s started beside %d; the cap is %d", n, name, before[name], most)
			}
			if most, ok := room[name]; ok && most >= 0 && n > most {
				t.Fatalf("%d of %s started; the breaker has room for %d", n, name, most)
			}
		}
		// Who waits found some cap reached, and it still is.
		for _, w := range waiting {
			c := all[slices.IndexFunc(all, func(c *projection.Task) bool { return c.ID == w.Task })]
			if s.full(c.Assignee) == "" && (most < 0 || len(picks) < most) {
				t.Fatalf("%s waits (%s) beside a free place", c.ID, w.Reason)
			}
		}
		// A card with a higher priority never waits for one of its assignee that is
		// lower, unless it failed while the others fail alike.
		for _, w := range waiting {
			c := all[slices.IndexFunc(all, func(c *projection.Task) bool { return c.ID == w.Task })]
			for _, p := range picks {
				if p.Assignee == c.Assignee && p.Priority < c.Priority && (s.alike[c.Assignee] == nil || c.LastError == "" && p.LastError != "") {
					t.Fatalf("%s (%d) starts, %s (%d) waits", p.ID, p.Priority, c.ID, c.Priority)
				}
			}
		}
	})
}

// The evidence table for runs and looks of every kind, also such as cannot be:
// it always answers, a process that may be a stranger's is never signalled, and
// nothing is booked or given up beside a process that may live.
func TestJudgeIsTotalAndNeverTouchesWhatItCannotProve(t *testing.T) {
	moment := rapid.Custom(func(t *rapid.T) eventlog.Time {
		if rapid.Bool().Draw(t, "absent") {
			return 0
		}
		return noon.Add(time.Duration(rapid.Int64Range(-2*86400, 2*86400).Draw(t, "seconds")) * time.Second)
	})
	rapid.Check(t, func(t *rapid.T) {
		r := &projection.Run{
			ID: 7, Task: "t_1", HasWorker: rapid.Bool().Draw(t, "worker"),
			Origin:    rapid.SampledFrom([]string{projection.OriginDispatch, projection.OriginManual, "work", ""}).Draw(t, "origin"),
			Outcome:   rapid.SampledFrom([]string{"", projection.OutCompleted, projection.OutReclaimed}).Draw(t, "outcome"),
			StartedAt: moment.Draw(t, "started"), SpawnedAt: moment.Draw(t, "spawned"), EndedAt: moment.Draw(t, "ended"),
			ClaimExpires: moment.Draw(t, "lease"), LastHeartbeat: moment.Draw(t, "beat"), EndRequestedAt: moment.Draw(t, "asked"),
			TTLSeconds: rapid.Int64Range(0, 86400).Draw(t, "ttl"), MaxRuntimeSeconds: rapid.Int64Range(-1, 86400).Draw(t, "max runtime"),
		}
		e := Evidence{
			Answer:     rapid.SampledFrom([]Answer{NoWorker, Alive, Orphaned, Dead, Held}).Draw(t, "answer"),
			Unprovable: rapid.Bool().Draw(t, "unprovable"), Why: "why",
		}
		p := testPolicy()
		span := func(name string) time.Duration {
			return time.Duration(rapid.Int64Range(0, 7200).Draw(t, name)) * time.Second
		}
		p.LaunchGrace, p.KillGrace, p.TerminalGrace = span("launch grace"), span("kill grace"), span("terminal grace")
		p.Limits.HeartbeatStale = span("stale")
		was := *r
		v := judge(r, e, noon, p)
		switch {
		case v != judge(r, e, noon, p):
			t.Fatalf("not the same twice: %s", v.brief())
		case r.EndRequestedAt != was.EndRequestedAt || r.Outcome != was.Outcome || r.ClaimExpires != was.ClaimExpires:
			t.Fatal("the run was changed")
		case e.Answer == Held && v.signal != NoSignal:
			t.Fatalf("a signal to what is held: %s", v.brief())
		case r.HasWorker && (e.Answer == Alive || e.Answer == Orphaned) && (v.book || v.cutOff || v.expireManual):
			t.Fatalf("given up beside a process that lives: %s", v.brief())
		case r.HasWorker && e.Answer == Held && (v.book || v.cutOff || v.expireManual) && !(v.unproven && e.Unprovable && r.LeasePast(noon)):
			t.Fatalf("given up beside a process that may live: %s", v.brief())
		case r.HasWorker && e.Answer == Dead && !v.book:
			t.Fatalf("a death that is not booked: %q", v.brief())
		case v.signal != NoSignal && r.EndRequestedAt == 0 && v.requestEnd == "":
			t.Fatalf("a signal before anybody decided to send one: %s", v.brief())
		case v.requestEnd != "" && r.EndRequestedAt != 0:
			t.Fatalf("decided twice: %s", v.brief())
		case v.book && (v.requestEnd != "" || v.signal != NoSignal || v.extend || v.deferEnd):
			t.Fatalf("booked and gone on with: %s", v.brief())
		case v.extend && (e.Answer != Alive || !r.Open() || r.EndRequestedAt != 0):
			t.Fatalf("a lease is extended for nothing: %s", v.brief())
		case !r.HasWorker && v.signal != NoSignal:
			t.Fatalf("a signal to a worker that never was: %s", v.brief())
		case (v.signal == KillSupervisor || v.signal == KillMembers) && noon.Since(r.EndRequestedAt) < p.KillGrace:
			t.Fatalf("killed before the grace was over: %s", v.brief())
		}
	})
}
