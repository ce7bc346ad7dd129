package tick

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kanlog/eventlog"
	"kanlog/projection"
)

// start claims what may start and starts it. Preparing and starting run beside
// each other, so that a slow card holds up no other; claims are made one by
// one, each checked against the caps in its transaction.
func (t *tick) start(ctx context.Context, at reading) error {
	picks, release, err := t.pick(at)
	// Counted and claimed without another board's dispatcher in between.
	defer release()
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var fatalMu sync.Mutex
	var stop error
	for _, card := range picks {
		fatalMu.Lock()
		failed := stop != nil
		fatalMu.Unlock()
		if failed || ctx.Err() != nil {
			break
		}
		if t.hostRefused.Load() {
			t.wait(card.ID, "the host refused to start another worker in this tick")
			continue
		}
		starter := card.Starter()
		p, known := t.Policy.Profiles[starter]
		if !known {
			// Nothing that was read so far may claim a card for nobody.
			t.wait(card.ID, fmt.Sprintf("no profile %q in the settings", starter))
			continue
		}
		grace := t.Policy.LaunchGrace
		if card.WorkspaceKind != projection.Scratch {
			grace += t.Policy.PrepareGrace
		}
		// Not by when the tick began: it may have waited for the host's lock for as long
		// as a start may take, and a later tick would find the claim overdue.
		events, err := t.update(t.Clock(), projection.Claim(projection.ClaimFor{
			Task: card.ID, Origin: projection.OriginDispatch, Assignee: starter, Reviewer: p.Reviewer,
			Claimer: t.World.Claimer(), TTL: t.Policy.Limits.ClaimTTL, LaunchGrace: grace,
			OnCleanExit: p.OnCleanExit, MaxRuntime: p.MaxRuntime, Limits: t.Policy.Limits,
			Caps: t.Policy.caps(starter),
		}, projection.Writer{}))
		switch {
		case errors.Is(err, projection.ErrState):
			t.wait(card.ID, err.Error())
			continue
		case err != nil:
			// Includes a commit whose outcome is unknown: what may not be
			// claimed is not forked.
			wg.Wait()
			return err
		}
		if _, claimed := events[0].Data.(*eventlog.Claimed); !claimed {
			continue // its budgets are used up; the report says so
		}
		run := events[0].Run
		if t.o.DryRun {
			t.spawned(Spawned{Task: card.ID, Assignee: starter})
			continue
		}
		t.Hook("dispatch.claimed")
		l := Launch{Task: card, Run: run, Profile: p}
		if t.o.Detach != nil {
			own := &tick{Dispatcher: t.Dispatcher, Board: t.beside(), o: t.o, rep: newReport(false), now: t.now, hostRefused: t.hostRefused}
			// Who is told to end sees to what it has begun: broken off, it would be
			// the next dispatcher's to find out what became of it.
			t.o.Detach(func() (*Report, error) { return own.rep, own.launch(context.WithoutCancel(ctx), l) })
			continue
		}
		wg.Go(func() {
			if err := t.launch(ctx, l); err != nil {
				fatalMu.Lock()
				stop = errors.Join(stop, err)
				fatalMu.Unlock()
			}
		})
	}
	release()
	wg.Wait()
	return stop
}

// beside is the board for what goes on when the tick has ended.
func (t *tick) beside() Board {
	if t.Beside == nil {
		return t.Board
	}
	return apart{t.Beside, t.Dispatcher}
}

// pick reads the startable cards, at most as many for each profile as could
// start or be named in the report, and admits some. The host is asked only if there
// are any; until release is called no other board of the home admits.
func (t *tick) pick(at reading) (picks []*projection.Task, release func(), err error) {
	release = func() {}
	var cards, others []*projection.Task
	var s *slots
	profiles := map[string]bool{}
	for name := range t.Policy.Profiles {
		profiles[name] = true
	}
	err = t.Board.View(func(v projection.View) error {
		active, err := at.activeIn(v)
		if err != nil {
			return err
		}
		if s, err = readSlots(v, active, t.Policy, t.now); err != nil {
			return err
		}
		t.rep.Paused = s.paused()
		if t.o.ID == "" {
			cards, others, err = t.candidates(v, active, profiles, s.free())
			return err
		}
		c, err := v.MustTask(t.o.ID)
		if err != nil {
			return err
		}
		if c.Startable(t.now) && profiles[c.Starter()] {
			cards = append(cards, c)
		} else {
			others = append(others, c)
		}
		return nil
	})
	if err != nil {
		return nil, release, err
	}
	if len(cards) > 0 {
		// Not inside the view: another board's dispatcher may be at this one.
		if s.host, release, err = t.World.Host(t.o.DryRun); err != nil {
			return nil, release, err
		}
	}
	for _, c := range cards {
		if why := s.host.Broken[c.Starter()]; why != "" {
			if t.rep.Broken == nil {
				t.rep.Broken = map[string]string{}
			}
			t.rep.Broken[c.Starter()] = why
		}
	}
	picks, waiting := admit(cards, s, t.o.Max)
	t.rep.HostFull = len(waiting) > 0 && s.hostFull()
	for _, w := range waiting {
		t.wait(w.Task, w.Reason)
	}
	if len(others) == 0 {
		return picks, release, nil
	}
	return picks, release, t.Board.View(func(v projection.View) error {
		for _, c := range others {
			why, err := v.Why(c, t.now, projection.Admission{Profiles: profiles, Full: s.full})
			if err != nil {
				return err
			}
			if why == "" {
				// It runs, or it is over.
				why = c.Status
				t.rep.NotWaiting = append(t.rep.NotWaiting, Waiting{c.ID, why})
			}
			t.wait(c.ID, why)
		}
		return nil
	})
}

// candidates are the cards that could start now, as far as there may be room
// for them or the report may name them, and others that wait.
func (t *tick) candidates(v projection.View, active []*projection.Run, profiles map[string]bool, free int) (cards, others []*projection.Task, err error) {
	seen := map[string]bool{}
	lane := func(names []string, read func(name string, fn func(*projection.Task) bool) error) error {
		for _, name := range names {
			left, list := readWaiting-len(others), &others
			if profiles[name] {
				left, list = readWaiting+free, &cards
			}
			if left <= 0 {
				continue
			}
			err := read(name, func(c *projection.Task) bool {
				if left--; !seen[c.ID] {
					*list = append(*list, c)
				}
				return left > 0
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	if t.Policy.Ageing > 0 {
		// Behind what is read by priority may stand what has waited longest.
		for name := range profiles {
			if err := v.OldestOfEach(name, func(c *projection.Task) { cards = append(cards, c) }); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, c := range cards {
		seen[c.ID] = true
	}
	if err := lane(v.ReadyAssignees(), v.Ready); err != nil {
		return nil, nil, err
	}
	if err := lane(v.Reviewers(), v.InReview); err != nil {
		return nil, nil, err
	}
	over, still, err := v.Held(t.now, readWaiting, func(name string) bool { return profiles[name] })
	if err != nil {
		return nil, nil, err
	}
	for _, c := range over {
		if profiles[c.Starter()] {
			cards = append(cards, c)
		} else {
			others = append(others, c)
		}
	}
	others = append(others, still...)
	for _, r := range active {
		if r.Open() {
			continue
		}
		c, err := v.MustTask(r.Task)
		if err != nil {
			return nil, nil, err
		}
		if c.Status == projection.Ready || c.Status == projection.Review {
			others = append(others, c)
		}
	}
	return cards, others, nil
}

// launch starts a claimed card's worker and waits for its first word. Whatever
// keeps it from starting is booked here, in the same pass.
func (t *tick) launch(ctx context.Context, l Launch) error {
	started, err := t.World.Start(l, func(fork func() error) error {
		t.Forks.Lock()
		defer t.Forks.Unlock()
		return fork()
	})
	if held := new(HeldError); errors.As(err, &held) {
		return t.hold(l, held)
	}
	if err != nil {
		// No use in claiming more cards for a host that is full.
		if errors.Is(err, ErrInfrastructure) {
			t.hostRefused.Store(true)
		}
		_, err := t.notStarted(l, err, errors.Is(err, ErrInfrastructure))
		return err
	}
	// From the fork on: a slow preparation must not eat up the supervisor's time.
	ctx, cancel := context.WithTimeout(ctx, t.Policy.LaunchGrace)
	defer cancel()
	t.Hook("dispatch.forked")
	word := started.Await(ctx)
	if word.State == TimedOut && errors.Is(ctx.Err(), context.Canceled) {
		// We were told to stop. The supervisor may still register; if it does
		// not, the next tick finds that its claimer is gone. Booking a failure
		// here would charge the card for our own end.
		return fmt.Errorf("stopped before the supervisor of %s had reported; the next dispatch sees to it: %w", l.Task.ID, context.Canceled)
	}
	if word.State == Registered {
		t.Hook("dispatch.spawned")
		t.spawned(Spawned{Task: l.Task.ID, Run: l.Run, Assignee: l.Profile.Name, PID: started.PID(), Workspace: started.Workspace()})
		return nil
	}
	reason := map[string]string{
		Refused:  "the supervisor was refused",
		Died:     "the supervisor died before it registered",
		TimedOut: "the supervisor did not register within " + t.Policy.LaunchGrace.String(),
	}[word.State]
	if word.Detail != "" {
		reason += ": " + word.Detail
	}
	if word.State == Died {
		t.World.Tidy(l.Task.ID, l.Run)
	}
	settled, err := t.notStarted(l, errors.New(reason), word.Infrastructure)
	if err == nil && !settled && word.State != Refused && t.registered(l.Run) {
		// It did register after all, while we were making up our mind. One that
		// was refused runs nothing, whatever became of its registration.
		t.spawned(Spawned{Task: l.Task.ID, Run: l.Run, Assignee: l.Profile.Name, PID: started.PID(), Workspace: started.Workspace()})
	}
	return err
}

// ErrInfrastructure marks a start that the host refused (no processes, memory
// or disk left): not the card's fault, and not counted.
var ErrInfrastructure = errors.New("the host refused")

// HeldError is the error of a start that somebody has to see to first. It is no failure
// of the card, and nothing was started.
type HeldError struct{ Reason string }

func (e *HeldError) Error() string { return e.Reason }

// hold blocks a claimed card in place of its start. That it may be unblocked and held
// again without end is bounded as for a worker that blocks it.
func (t *tick) hold(l Launch, held *HeldError) error {
	block := projection.Block(l.Task.ID, held.Reason, projection.NeedsInput, t.Policy.Limits, projection.Writer{Card: l.Task.ID, Run: l.Run})
	_, err := t.update(t.Clock(), block)
	switch {
	case err == nil:
		t.wait(l.Task.ID, "held: "+held.Reason)
	case !fatal(err):
		t.fail(l.Task.ID, l.Run, err)
		return nil
	}
	return err
}

// notStarted books that a claimed card has no worker. settled is false only if
// one registered in the meantime after all: nothing is booked then and it lives.
func (t *tick) notStarted(l Launch, cause error, infrastructure bool) (settled bool, err error) {
	events, err := t.update(t.Clock(), projection.BookCutOff(projection.CutOff{
		Run: l.Run, Error: cause.Error(), Infrastructure: infrastructure, Evidence: "no supervisor registered",
	}, t.Policy.Limits))
	if err != nil && !fatal(err) {
		t.fail(l.Task.ID, l.Run, err)
		return true, nil
	}
	return len(events) > 0, err
}

// registered tells whether a supervisor of the run is on record; a board that
// cannot be read right now says no, and only the report lacks the line.
func (t *tick) registered(run uint64) (yes bool) {
	_ = t.Board.View(func(v projection.View) error {
		r, err := v.Run(run)
		yes = r != nil && r.SpawnedAt != 0
		return err
	})
	return yes
}

func (t *tick) spawned(s Spawned) {
	t.repMu.Lock()
	defer t.repMu.Unlock()
	t.rep.Spawned = append(t.rep.Spawned, s)
}
