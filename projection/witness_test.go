package projection

import (
	"fmt"

	"kanlog/eventlog"
)

// witness follows the events by itself, without the fold: who owns a card, and
// which processes may live.
type witness struct {
	open    map[string]uint64          // card -> its open run
	living  map[string]map[uint64]bool // card -> runs whose worker may live
	outcome map[uint64]eventlog.Kind   // run -> how it ended
}

func newWitness() *witness {
	return &witness{map[string]uint64{}, map[string]map[uint64]bool{}, map[uint64]eventlog.Kind{}}
}

func (w *witness) event(actor string, seq uint64, e eventlog.Event) error {
	// I4: a worker's word about its own card carries the open run. What follows
	// from its word in the same commit (gave_up) has no run of its own to show.
	if card, run, ok := workerOf(actor); ok && card == e.Task {
		switch e.Kind() {
		case eventlog.KindFenced, eventlog.KindGaveUp, eventlog.KindBlockLoop:
		default:
			if run == 0 || run != w.open[card] || e.Run != run {
				return fmt.Errorf("I4: %s wrote %s for run %d; open is %d", actor, e.Kind(), e.Run, w.open[card])
			}
		}
	}
	begin := func() error {
		if w.open[e.Task] != 0 || len(w.living[e.Task]) > 0 {
			return fmt.Errorf("I2: run %d begins beside open run %d and workers %v", seq, w.open[e.Task], w.living[e.Task])
		}
		w.open[e.Task] = seq
		return nil
	}
	end := func(run uint64, gone bool) error {
		if w.open[e.Task] != run || w.outcome[run] != "" {
			return fmt.Errorf("I7: %s ends run %d; open is %d, and it ended before as %q", e.Kind(), run, w.open[e.Task], w.outcome[run])
		}
		w.open[e.Task], w.outcome[run] = 0, e.Kind()
		if gone {
			delete(w.living[e.Task], run)
		}
		return nil
	}
	switch d := e.Data.(type) {
	case *eventlog.Claimed:
		return begin()
	case *eventlog.Spawned:
		if w.open[e.Task] != e.Run || w.living[e.Task][e.Run] {
			return fmt.Errorf("I3: a worker registers for run %d; open is %d", e.Run, w.open[e.Task])
		}
		if w.living[e.Task] == nil {
			w.living[e.Task] = map[uint64]bool{}
		}
		w.living[e.Task][e.Run] = true
	case *eventlog.Completed:
		run := e.Run
		if run == 0 {
			if err := begin(); err != nil {
				return err
			}
			run = seq
		}
		return end(run, d.By == byCleanExit)
	case *eventlog.ReviewRequested:
		run := e.Run
		if run == 0 {
			if err := begin(); err != nil {
				return err
			}
			run = seq
		}
		return end(run, d.By == byCleanExit)
	case *eventlog.ChangesRequested:
		run := e.Run
		if run == 0 {
			if err := begin(); err != nil {
				return err
			}
			run = seq
		}
		return end(run, false)
	case *eventlog.Deferred:
		if e.Run != 0 {
			return end(e.Run, false)
		}
	case *eventlog.Failed:
		return end(e.Run, false)
	case *eventlog.Blocked:
		if e.Run != 0 {
			return end(e.Run, false)
		}
	case *eventlog.Reclaimed, *eventlog.Crashed, *eventlog.ProtocolViolation, *eventlog.RateLimited,
		*eventlog.TimedOut, *eventlog.Stale, *eventlog.SpawnFailed:
		return end(e.Run, true)
	case *eventlog.Exited, *eventlog.TerminalWorkerReaped:
		if !w.living[e.Task][e.Run] || w.open[e.Task] == e.Run {
			return fmt.Errorf("%s of run %d, whose worker is not retained", e.Kind(), e.Run)
		}
		delete(w.living[e.Task], e.Run)
	}
	return nil
}
