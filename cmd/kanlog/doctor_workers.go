package main

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// checkRuns looks at every active run as a dispatch would, and does nothing about
// it.
func (d *doctor) checkRuns() ([]finding, error) {
	runs, err := d.active()
	if err != nil {
		return nil, err
	}
	prober := proc.NewProber()
	look := &look{w: &world{a: d.a, uuid: d.uuid, set: &d.set}, prober: prober}
	suspects := map[uint64]finding{}
	for _, r := range runs {
		if f, bad := d.runFinding(look, r); bad {
			suspects[r.ID] = f
		}
	}
	if len(suspects) == 0 {
		return nil, nil
	}
	// A run may have been booked since it was read.
	if runs, err = d.active(); err != nil {
		return nil, err
	}
	var list []finding
	for _, r := range runs {
		if f, bad := suspects[r.ID]; bad {
			list = append(list, f)
		}
	}
	return list, nil
}

func (d *doctor) runFinding(look *look, r *projection.Run) (finding, bool) {
	subject := fmt.Sprintf("run %d", r.ID)
	of := fmt.Sprintf("run %d of %s", r.ID, r.Task)
	switch {
	case r.DeferredReason != "":
		return found(sevWarning, subject, fmt.Sprintf("%s was asked to end, but its process can neither be proven nor ruled out: %s", of, r.DeferredReason),
			"the card waits for it for ever: what is not proven is never signalled. Look first whether something of it still works",
			d.run("reclaim", r.Task, "--force", "--reason", "looked after by hand")), true
	case r.HasWorker:
		e := look.Worker(r)
		switch {
		case e.Answer == tick.Dead || e.Answer == tick.Orphaned:
			return found(sevWarning, subject, of+": "+e.Why, "its end is not booked: the card and a slot wait for the next dispatch", d.run("dispatch")), true
		case e.Answer == tick.Alive && look.prober.Stopped(r.PID):
			return found(sevWarning, subject, fmt.Sprintf("the supervisor of %s, process %d, is stopped", of, r.PID),
				"it neither passes a signal on nor books the end of its worker", fmt.Sprintf("kill -CONT %d", r.PID)), true
		}
		return d.overdueFinding(r, e)
	case r.Origin == projection.OriginDispatch:
		if e := look.Claimer(r); e.Answer == tick.Dead {
			return found(sevWarning, subject, of+" was claimed and its dispatcher is gone: "+e.Why,
				"nothing was started; the card waits for the next dispatch", d.run("dispatch")), true
		}
	}
	return finding{}, false
}

// overdueFinding finds a run whose time is over and whose end nobody has asked for.
// Beside a daemon it is ended within a moment; one that does not is checkDaemon's.
func (d *doctor) overdueFinding(r *projection.Run, e tick.Evidence) (finding, bool) {
	since := r.OverdueSince(d.a.now)
	if since == 0 || e.Answer == tick.Alive && d.a.daemonOf() != nil {
		return finding{}, false
	}
	subject := fmt.Sprintf("run %d", r.ID)
	message := fmt.Sprintf("run %d of %s is over its time (max_runtime) since %s and goes on", r.ID, r.Task, since)
	if e.Answer != tick.Alive {
		return found(sevWarning, subject, message+": its process can neither be proven nor ruled out: "+e.Why,
			"what is not proven is never signalled. Look first whether something of it still works",
			d.run("reclaim", r.Task, "--force", "--reason", "looked after by hand")), true
	}
	return found(sevWarning, subject, message, "a tick ends it, and none came: the card, a slot and what the worker costs wait for the next one", d.run("dispatch")), true
}

// strayPause is how long a process may take to end behind its last booking.
const strayPause = time.Second

// checkStrays finds processes of runs that the board has done with. They are
// looked for before the rows are read: a run is on the board before its first
// process is there.
func (d *doctor) checkStrays() ([]finding, error) {
	board := hex.EncodeToString(d.uuid[:])
	marked, err := proc.NewProber().Marked(board)
	if err != nil {
		return []finding{found(sevNote, "", fmt.Sprintf("strays cannot be looked for: %v", err), "", "")}, nil
	}
	strays, err := d.strays(marked)
	if err != nil || len(strays) == 0 {
		return nil, err
	}
	// A supervisor lives on for an instant behind the end that it booked.
	time.Sleep(strayPause)
	if marked, err = proc.NewProber().Marked(board); err != nil {
		return nil, nil
	}
	var list []finding
	still := map[proc.Marked]bool{}
	for _, m := range marked {
		still[m] = true
	}
	for _, s := range strays {
		if !still[s.Marked] {
			continue
		}
		list = append(list, found(sevWarning, fmt.Sprintf("process %d", s.PID), fmt.Sprintf("process %d (%s) carries the token of run %s, %s", s.PID, eventlog.CommandOf(s.PID), s.Run, s.what),
			"kanlog ends nothing that it has no run for: it works on beside whatever runs next", fmt.Sprintf("kill %d", s.PID)))
	}
	return list, nil
}

type stray struct {
	proc.Marked
	what string
}

// strays are those of runs that are not there, or closed with nothing on record.
func (d *doctor) strays(marked []proc.Marked) (list []stray, err error) {
	err = d.view(func(v projection.View) error {
		for _, m := range marked {
			n, err := strconv.ParseUint(m.Run, 10, 64)
			if err != nil {
				continue // no token of ours
			}
			r, err := v.Run(n)
			switch {
			case err != nil:
				return err
			case r != nil && r.Token != "" && r.Token != m.Token:
				continue // of a copy of this board, which has the same id and run
			case r == nil:
				list = append(list, stray{m, "which this board does not know (a copy of it may)"})
			case !r.Open() && !r.HasWorker:
				list = append(list, stray{m, "which is over (" + r.Task + ", " + r.Outcome + ")"})
			}
		}
		return nil
	})
	return list, err
}

// checkProgram finds supervisors of another kanlog than this one: as a rule it
// was replaced while they ran.
func (d *doctor) checkProgram() ([]finding, error) {
	runs, err := d.active()
	if err != nil {
		return nil, err
	}
	var list []finding
	look := (&world{a: d.a, uuid: d.uuid, set: &d.set}).Look(nil)
	for _, r := range runs {
		if !r.HasWorker || look.Worker(r).Answer != tick.Alive {
			continue
		}
		if path, other := proc.OtherProgram(r.PID); other {
			list = append(list, found(sevNote, fmt.Sprintf("run %d", r.ID),
				fmt.Sprintf("the supervisor of run %d of %s, process %d, runs another kanlog than this one: %s", r.ID, r.Task, r.PID, path),
				"it goes on as it began; if the store's format has moved on, it leaves a record that the next dispatch books", ""))
		}
	}
	return list, nil
}
