package projection

import (
	"fmt"
	"slices"
	"time"

	"kanlog/eventlog"
)

// Alike is how the newest runs of an assignee ended, for as long as they end
// alike. A backend that is down makes every card of its workers fail in the same
// way; that is not the fault of the cards, and no budget of theirs should pay
// for it to the end.
type Alike struct {
	//lint:ignore U1000 msgpack reads its tag through reflection
	_msgpack struct{} `msgpack:",as_array"`

	How  string // what the ends have in common, in words
	Runs int64  // how many in a row
	// Cards are some of the cards, each once: one card that loops is the matter
	// of its own budget.
	Cards []string
	Last  eventlog.Time
	// Seq is the number of the last end: runs above it began after it.
	Seq uint64
}

// alikeCards is how many cards an Alike remembers.
const alikeCards = 2

// alikeness is what the end of a run has in common with others, "" if nothing.
// breaks says that it is the answer of a worker that can work.
func alikeness(r *Run) (how string, breaks bool) {
	if r.Origin != OriginDispatch {
		return "", false
	}
	const mostWords = 200
	switch r.Outcome {
	case OutCompleted, OutBlocked, OutDeferred, OutReviewRequested, OutChangesRequested:
		return "", true
	case OutFailed:
		return "said that they failed" + colon(cut(r.Error, mostWords)), false
	case OutTimedOut:
		return "exceeded their time", false
	case OutStale:
		return "fell silent", false
	case OutRateLimited:
		return "exited with 75", false
	case OutSpawnFailed:
		if r.Counted {
			return "could not be started" + colon(cut(r.Error, mostWords)), false
		}
	case OutCrashed:
		switch {
		case r.Violation:
			return "exited with 0 without an answer", false
		case r.Signal != "":
			return "were ended by signal " + r.Signal, false
		case r.ExitCode != nil:
			return fmt.Sprintf("exited with %d", *r.ExitCode), false
		}
		return "ended without a trace", false
	}
	// Reclaimed, or refused by the host: says nothing about the worker.
	return "", false
}

// Alike returns how the newest runs of an assignee ended, nil if not alike.
func (v View) Alike(assignee string) (*Alike, error) {
	b := v.r.Get(tabAlike, under(assignee))
	if b == nil {
		return nil, nil
	}
	a := new(Alike)
	return a, decodeRow(b, a)
}

// alike takes note of how a run ended.
func (f *folder) alike(r *Run) {
	how, breaks := alikeness(r)
	if breaks {
		if f.w.Get(tabAlike, under(r.Assignee)) != nil {
			f.w.Delete(tabAlike, under(r.Assignee))
		}
		return
	}
	if how == "" {
		return
	}
	a, err := f.Alike(r.Assignee)
	if err != nil {
		f.err = err
		return
	}
	if a == nil || a.How != how {
		a = &Alike{How: how}
	}
	a.Runs, a.Last, a.Seq = a.Runs+1, f.c.At, f.seq
	if len(a.Cards) < alikeCards && !slices.Contains(a.Cards, r.Task) {
		a.Cards = append(a.Cards, r.Task)
	}
	f.w.Put(tabAlike, under(r.Assignee), encodeRow(a))
}

// Shared tells whether more than one card had part in it.
func (a *Alike) Shared() bool { return len(a.Cards) >= alikeCards }

// Breaker pauses an assignee whose runs end alike, on more than one card. The
// zero value never does.
type Breaker struct {
	Runs  int64         // how many in a row; 0 is off
	Pause time.Duration // after the last of them; doubles with each more
	Most  time.Duration // the longest pause
}

// Room is how many more runs of the assignee may start, -1 for no bound, and why
// not more. The nearer the limit, the fewer are tried at once, so that beside what
// ran when the first one failed not many more than the limit can fail. After the
// pause one is tried at a time, until one ends otherwise.
//
// Runs that began before the last end are no such try, and one that has gone on for
// as long as the pause is none any more: it does not fail as the others did, or it
// is held and nobody can end it. Neither may hold up everything.
func (b Breaker) Room(assignee string, a *Alike, active []*Run, now eventlog.Time) (room int, why string) {
	if b.Runs == 0 || a == nil || !a.Shared() {
		return -1, ""
	}
	pause := b.pause(a)
	tried := 0
	for _, r := range active {
		if r.Assignee == assignee && r.Origin == OriginDispatch && r.Open() && r.ID > a.Seq && within(r.StartedAt, pause, now) {
			tried++
		}
	}
	same := fmt.Sprintf("the last %d runs of %s %s", a.Runs, assignee, a.How)
	if a.Runs < b.Runs {
		most := int(b.Runs - a.Runs)
		return max(0, most-tried), fmt.Sprintf("%s: until one does not, at most %d are tried at once", same, most)
	}
	if within(a.Last, pause, now) {
		return 0, fmt.Sprintf("%s is paused until %s: %s", assignee, a.Last.Add(pause), same)
	}
	return max(0, 1-tried), fmt.Sprintf("%s is tried with one run at a time: %s", assignee, same)
}

func (b Breaker) pause(a *Alike) time.Duration {
	pause := b.Pause
	for n := a.Runs; n > b.Runs && pause < b.Most; n-- {
		pause *= 2
	}
	return min(pause, max(b.Most, b.Pause))
}

// Next is the first moment after now at which Room may be another, 0 if that does
// not hang on time.
func (b Breaker) Next(assignee string, a *Alike, active []*Run, now eventlog.Time) (next eventlog.Time) {
	if b.Runs == 0 || a == nil || !a.Shared() {
		return 0
	}
	or := func(t eventlog.Time) {
		if t > now && (next == 0 || t < next) {
			next = t
		}
	}
	pause := b.pause(a)
	or(a.Last.Add(pause))
	for _, r := range active {
		if r.Assignee == assignee {
			or(r.StartedAt.Add(pause))
		}
	}
	return next
}

// within tells whether less than d has passed since a moment. One from the future
// has passed: the clock went back.
func within(since eventlog.Time, d time.Duration, now eventlog.Time) bool {
	return now < since.Add(d) && since <= now.Add(ClockSlack)
}
