package tick

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kanlog/eventlog"
	"kanlog/projection"
)

// Until the moment that nextLook names, judge says the same about a run, whatever
// is found of its processes: who sleeps until then misses nothing. What is signalled
// is said again by every tick and may be said later.
func TestNextLookMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := testPolicy()
		p.Limits.HeartbeatStale = rapid.SampledFrom([]time.Duration{0, 90 * time.Second, time.Hour}).Draw(t, "stale")
		ago := func(what string) eventlog.Time {
			return noon.Add(-time.Duration(rapid.IntRange(-3, 400).Draw(t, what)) * time.Second)
		}
		maybe := func(what string, set func()) {
			if rapid.Bool().Draw(t, what) {
				set()
			}
		}
		started := ago("started")
		r := &projection.Run{
			ID: 7, Task: "t_1", Origin: rapid.SampledFrom([]string{projection.OriginDispatch, projection.OriginManual}).Draw(t, "origin"),
			StartedAt: started, TTLSeconds: 300, ClaimExpires: started.Add(300 * time.Second),
		}
		maybe("worker", func() { r.HasWorker, r.SpawnedAt = true, started })
		maybe("capped", func() { r.MaxRuntimeSeconds = 200 })
		maybe("beaten", func() { r.LastHeartbeat = ago("last beat") })
		maybe("asked", func() { r.EndRequestedAt = ago("asked to end") })
		maybe("closed", func() {
			if r.HasWorker {
				r.Outcome, r.EndedAt = projection.OutCompleted, ago("ended")
			}
		})
		e := Evidence{
			Answer:     rapid.SampledFrom([]Answer{Alive, Orphaned, Held, NoWorker}).Draw(t, "answer"),
			Unprovable: rapid.Bool().Draw(t, "unprovable"),
		}
		said := func(now eventlog.Time) verdict {
			v := judge(r, e, now, p)
			v.detail, v.measured = "", 0 // how long it has been, which goes on
			return v
		}
		next := nextLook(r, noon, p)
		if next != 0 && next <= noon {
			t.Fatalf("the next look is to be at %s, which has passed at %s", next, noon)
		}
		until := next
		if until == 0 {
			until = noon.Add(24 * time.Hour)
		}
		for _, at := range []eventlog.Time{until - 1, noon.Add(time.Duration(until-noon) * time.Microsecond / 2)} {
			if now, then := said(noon), said(at); !reflect.DeepEqual(now, then) {
				t.Fatalf("at %s judge says %+v, at %s %+v, and the next look is to be at %s", noon, now, at, then, next)
			}
		}
	})
}

// A board on which nothing can happen by itself is not looked at again; one that
// waits for something is, at the first moment that counts.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(b *bench)
		want time.Duration // after the bench's now, 0 for never
	}{
		{"nothing there", func(b *bench) {}, 0},
		{"a card that nobody starts", func(b *bench) { b.create("x", func(d *projection.Draft) { d.Assignee = "nobody" }) }, 0},
		{"the launch grace of a claim", func(b *bench) { b.create("a"); b.claim("a") }, 35 * time.Second},
		{"a card that is due", func(b *bench) {
			b.create("a")
			b.must(projection.Defer(b.cards["a"], 3*time.Minute, "", b.d.Policy.Limits, projection.Writer{}))
		}, 3 * time.Minute},
		{"the lease of a worker", func(b *bench) { b.running("a") }, 15 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			c.with(b)
			var next eventlog.Time
			err := b.View(func(v projection.View) (err error) {
				next, err = Next(v, b.d.Policy, b.now)
				return err
			})
			want := eventlog.Time(0)
			if c.want != 0 {
				want = b.now.Add(c.want)
			}
			if err != nil || next != want {
				t.Errorf("next %s, want %s (%v)", next, want, err)
			}
		})
	}
}
