package tick

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"kanlog/eventlog"
	"kanlog/projection"
)

// Dispatcher runs ticks on one board. All fields must be set before the first
// tick; it may be used by one goroutine at a time.
type Dispatcher struct {
	Board  Board
	World  World
	Policy Policy
	// Beside is the same board for the starts that go on beside the ticks, nil for
	// Board: by it who ticks tells what a tick has written itself from what it has not
	// seen.
	Beside Board
	// Actor is dispatcher:<host>/<instance>.
	Actor string
	// Clock reads the time; once for the sweep, and again for what is booked
	// after a wait.
	Clock func() eventlog.Time
	// Lock takes the board's dispatch lock without waiting; eventlog.ErrBusy if
	// another tick has it.
	Lock func() (release func(), err error)
	// Hook is called at named points where a test may end the process; never
	// nil.
	Hook func(point string)

	// Forks keeps forks apart from this process's use of the store: a child would
	// inherit the locks of an operation in progress until it execs. Who uses the board
	// beside the ticks shares it; nil if nobody does.
	Forks *sync.Mutex
}

// Options are what one tick was asked for.
type Options struct {
	DryRun bool
	// Max bounds how many workers this tick starts, -1 for no bound.
	Max int
	// ID restricts the starts to one card, "" for none.
	ID string
	// Detach, if given, gets each start of a worker to run it beside the tick, for
	// whoever ticks again soon: a slow one then holds up nothing. What is returned
	// is what came of it.
	Detach func(start func() (*Report, error))
}

// Tick looks at every active run once, promotes what is due, and starts what
// may start. It returns when every worker it started has registered or failed,
// at most the launch grace after the last fork. On an error the report holds
// what was done before it.
func (d *Dispatcher) Tick(ctx context.Context, o Options) (*Report, error) {
	rep := newReport(o.DryRun)
	if !o.DryRun {
		release, err := d.Lock()
		if errors.Is(err, eventlog.ErrBusy) {
			rep.SkippedLocked = true
			return rep, nil
		}
		if err != nil {
			// Not dispatching is safe; dispatching without the lock is not.
			return rep, fmt.Errorf("dispatch lock: %w", err)
		}
		defer release()
	}
	t := d.newTick(o, rep)
	if o.DryRun {
		t.Board = projection.Rehearse(d.Board)
	}
	at, err := t.read()
	if err != nil {
		return rep, err
	}
	if err := t.sweep(at.active); err != nil {
		return rep, err
	}
	if err := t.promote(at); err != nil {
		return rep, err
	}
	return rep, t.start(ctx, at)
}

// newTick is one pass that has not begun.
func (d *Dispatcher) newTick(o Options, rep *Report) *tick {
	if d.Forks == nil {
		d.Forks = new(sync.Mutex)
	}
	return &tick{Dispatcher: d, Board: apart{d.Board, d}, o: o, rep: rep, now: d.Clock(), hostRefused: new(atomic.Bool)}
}

// apart is a board that is not used while this process forks.
type apart struct {
	Board
	d *Dispatcher
}

func (b apart) Update(actor string, now eventlog.Time, d projection.Decider) (projection.Result, error) {
	b.d.Forks.Lock()
	defer b.d.Forks.Unlock()
	return b.Board.Update(actor, now, d)
}

func (b apart) View(fn func(projection.View) error) error {
	b.d.Hook("dispatch.read")
	b.d.Forks.Lock()
	defer b.d.Forks.Unlock()
	return b.Board.View(fn)
}

// tick is one pass.
type tick struct {
	*Dispatcher
	// Board is the dispatcher's, in a dry run a rehearsal on it.
	Board Board
	o     Options
	now   eventlog.Time

	hostRefused *atomic.Bool // shared by the starts of one pass

	repMu sync.Mutex
	rep   *Report
}

// update runs a decider and reports what it appended, or in a dry run would
// have.
func (t *tick) update(now eventlog.Time, decide projection.Decider) ([]eventlog.Event, error) {
	res, err := t.Board.Update(t.Actor, now, decide)
	if err != nil {
		return nil, err
	}
	events := res.Commit.Events
	for i := range events {
		events[i].Run = res.Commit.RunOf(i)
	}
	t.repMu.Lock()
	defer t.repMu.Unlock()
	t.rep.note(events)
	return events, nil
}

// sweep judges every active run once. What goes wrong with one run does not
// stop the others; what goes wrong with the store does.
func (t *tick) sweep(active []*projection.Run) error {
	look := t.World.Look(active)
	for _, r := range active {
		e := t.gather(look, r)
		t.Hook("dispatch.judged")
		if err := t.carryOut(look, r, e, judge(r, e, t.now, t.Policy)); err != nil {
			if fatal(err) {
				return err
			}
			t.fail(r.Task, r.ID, err)
		}
	}
	return nil
}

// reading is what a tick begins with, read in one short transaction. What has moved
// since is found by each decider in its own.
type reading struct {
	head   eventlog.Head     // empty in a rehearsal
	active []*projection.Run // open, or closed with a worker on record
	due    []string          // cards whose time has come
	parked []string          // cards that a smaller failure limit holds
}

func (t *tick) read() (at reading, err error) {
	err = t.Board.View(func(v projection.View) (err error) {
		if at.head, err = v.Head(); err != nil && !errors.Is(err, projection.ErrNoLog) {
			return err
		}
		if at.active, err = v.Active(); err != nil {
			return err
		}
		at.due, err = v.Due(t.now)
		at.parked = v.Parked(t.Policy.Limits.FailureLimit)
		return err
	})
	return at, err
}

// activeIn is what is active in v, not read once more if nothing was appended since:
// beside a thousand workers that is what a quiet tick takes longest for.
func (at reading) activeIn(v projection.View) ([]*projection.Run, error) {
	if at.head != (eventlog.Head{}) {
		if head, err := v.Head(); err != nil || head == at.head {
			return at.active, err
		}
	}
	return v.Active()
}

func (t *tick) gather(look Look, r *projection.Run) Evidence {
	switch {
	case r.HasWorker:
		return look.Worker(r)
	case r.Origin == projection.OriginManual:
		return Evidence{Answer: NoWorker}
	}
	return look.Claimer(r)
}

// carryOut does what was decided about a run. Each decider checks again, inside
// its transaction, that it still applies.
func (t *tick) carryOut(look Look, r *projection.Run, e Evidence, v verdict) error {
	if gone := v.book && !v.unproven || v.cutOff && v.interrupted; gone && !t.o.DryRun {
		t.World.Tidy(r.Task, r.ID)
	}
	switch {
	case v.book:
		end := projection.Ending{Run: r.ID, OtherBoot: e.OtherBoot, Unproven: v.unproven, Evidence: e.Why}
		var err error
		if end.Record, err = t.World.Record(r); errors.Is(err, ErrInfrastructure) {
			// It may be there and say otherwise: the next tick reads it.
			return err
		} else if err != nil {
			// A record that cannot be read is no record, and is said so.
			end.Evidence += "; " + err.Error()
		}
		_, err = t.update(t.now, projection.BookEnd(end, t.Policy.Limits))
		return err
	case v.extend:
		_, err := t.update(t.now, projection.Extend(r.ID))
		return err
	case v.deferEnd:
		_, err := t.update(t.now, projection.DeferEnd(r.ID, e.Why, string(e.Answer), t.Policy.ReclaimDefer))
		return err
	case v.expireManual:
		events, err := t.update(t.now, projection.ExpireManual(r.ID))
		if len(events) > 0 {
			t.rep.Expired = append(t.rep.Expired, r.Task)
		}
		return err
	case v.cutOff:
		c := projection.CutOff{Run: r.ID, Interrupted: v.interrupted, Evidence: e.String(), Error: "no supervisor registered within the launch grace"}
		_, err := t.update(t.now, projection.BookCutOff(c, t.Policy.Limits))
		return err
	}
	if v.requestEnd != "" {
		request := projection.RequestEnd(projection.EndRequest{
			Run: r.ID, Reason: v.requestEnd, Detail: v.detail, Limit: v.limit, Measured: v.measured, Evidence: e.String(),
		})
		events, err := t.update(t.now, t.again(r.ID, e, v.requestEnd, request))
		if err != nil {
			return err
		}
		if len(events) == 0 {
			// It ended, answered, beat or was asked to end since we looked: the
			// next tick sees.
			return nil
		}
	}
	if v.signal == NoSignal || t.o.DryRun {
		return nil
	}
	t.Hook("dispatch.signal")
	return look.Signal(r, e, v.signal)
}

// again judges a run once more as it stands in the transaction: what was
// decided on an older picture must not end a worker that has answered or beaten
// since.
func (t *tick) again(run uint64, e Evidence, reason string, request projection.Decider) projection.Decider {
	return func(v projection.View, now eventlog.Time) (projection.Decision, error) {
		r, err := v.Run(run)
		if err != nil || r == nil || judge(r, e, now, t.Policy).requestEnd != reason {
			return projection.Decision{}, err
		}
		return request(v, now)
	}
}

// EndNow is the acting half of an operator's reclaim, cancel or archive: it looks at one run whose
// end was requested and does at once what the next tick would do.
func (d *Dispatcher) EndNow(run uint64) (*Report, error) {
	t := d.newTick(Options{}, newReport(false))
	var r *projection.Run
	err := t.Board.View(func(v projection.View) (err error) {
		r, err = v.Run(run)
		return err
	})
	if err != nil || r == nil || !r.HasWorker {
		return t.rep, err
	}
	look := d.World.Look(nil)
	e := t.gather(look, r)
	return t.rep, t.carryOut(look, r, e, judge(r, e, t.now, d.Policy))
}

// promote lets go on what waited for a time or for a higher limit.
func (t *tick) promote(at reading) (err error) {
	for _, id := range at.due {
		if err == nil {
			_, err = t.update(t.now, projection.PromoteDue(id))
		}
	}
	for _, id := range at.parked {
		if err == nil {
			_, err = t.update(t.now, projection.PromoteParked(id, t.Policy.Limits))
		}
	}
	return err
}

func (t *tick) wait(task, reason string) {
	t.repMu.Lock()
	defer t.repMu.Unlock()
	if len(t.rep.Waiting) >= maxWaiting {
		t.rep.WaitingMore = true
		return
	}
	t.rep.Waiting = append(t.rep.Waiting, Waiting{task, reason})
}

func (t *tick) fail(task string, run uint64, err error) {
	t.repMu.Lock()
	defer t.repMu.Unlock()
	t.rep.Errors = append(t.rep.Errors, Failure{task, run, err.Error()})
}

// fatal tells what concerns the store and not one card.
func fatal(err error) bool {
	return errors.Is(err, eventlog.ErrUnknownOutcome) || errors.Is(err, eventlog.ErrDiskFull) ||
		errors.Is(err, eventlog.ErrRefused) || errors.Is(err, eventlog.ErrBusy) || errors.Is(err, eventlog.ErrNoBoard)
}
