package projection

import (
	"fmt"

	"kanlog/eventlog"
)

// droppedByRestore is the evidence of these ends; to take them once more they are known by it.
const droppedByRestore = "dropped by a restore; no process was looked at or signalled"

// EndForRestore ends what a run still has when its board is put back to commit
// number at. Its worker belongs to a time that is over: what ended it then is not
// known to this log, and nobody here may signal what is not proven to be this
// board's. So the run ends as interrupted, which counts for nothing, and a worker on
// record is dropped. A card that somebody had claimed by hand is held, as when the
// claim runs out: somebody may still be working on it.
func EndForRestore(run, at uint64, l Limits) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		r, err := v.Run(run)
		if err != nil || r == nil || !r.Open() && !r.HasWorker {
			return Decision{}, err
		}
		t, err := v.MustTask(r.Task)
		if err != nil {
			return Decision{}, err
		}
		reason := fmt.Sprintf("restore: the board was put back to commit %d", at)
		if !r.Open() {
			more, err := afterlife(v, t, r, now)
			exited := &eventlog.Exited{Evidence: droppedByRestore}
			return decided(t.ID, append([]eventlog.Event{event(t.ID, r.ID, exited)}, more...)...), err
		}
		d := eventlog.Reclaimed{Reason: reason, Interrupted: true, Evidence: droppedByRestore}
		switch {
		case r.EndRequestedAt != 0:
			// What somebody wished for the card holds.
			return closeAs(v, t, r, r.EndReason, r.EndDetail, now, d)
		case r.Origin == OriginManual:
			d.To = Blocked
			held := &eventlog.Blocked{Reason: fmt.Sprintf("%s; until then it was claimed%s (run %d)", reason, by(r), r.ID), BlockKind: NeedsInput}
			return decided(t.ID, event(t.ID, r.ID, &d), event(t.ID, 0, held)), nil
		}
		if d.To, err = statusWithout(v, t, now, ""); err != nil {
			return Decision{}, err
		}
		return l.interrupted(v, t, r, d)
	}
}
