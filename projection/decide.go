package projection

import (
	"kanlog/eventlog"
)

// New transition: a constructor that takes what the caller knows and returns a
// Decider; its events in eventlog (kinds.go); the fold's case; a row in
// the table of decide_*_test.go; the arrow in docs/states.md.

// Decider decides one transition: it reads the tables of the transaction it
// runs in and returns events or a refusal. Everything it was told is a value
// from before that transaction, so it checks every guard again here.
type Decider func(v View, now eventlog.Time) (Decision, error)

// Decision is what a decider wants.
type Decision struct {
	// Events are appended as one commit; none means that nothing changes.
	Events []eventlog.Event
	// Refused is returned to the caller after Events were appended: a refusal
	// that leaves a trace.
	Refused error
	// Task is the card it was about, for callers that did not know the id.
	Task string
	// Note says in words what was found already done, "" otherwise.
	Note string
	// Applied are the cards of a graph, in its order; see Apply.
	Applied []Applied
}

// Result is what a caller gets to know of it, before anything was appended.
func (d Decision) Result() Result {
	return Result{Task: d.Task, Note: d.Note, Applied: d.Applied}
}

func decided(task string, events ...eventlog.Event) Decision {
	return Decision{Events: events, Task: task}
}

func already(task, note string) Decision { return Decision{Task: task, Note: note} }

func event(task string, run uint64, d eventlog.Payload) eventlog.Event {
	return eventlog.Event{Task: task, Run: run, Data: d}
}

// Writer is who wants to write: an operator, or the process of a run.
type Writer struct {
	// Card is the card whose worker this process belongs to, "" for an
	// operator.
	Card string
	// Run is the run the writer presents, 0 if it presents none.
	Run uint64
}

// InWorker tells whether the writer belongs to a run.
func (w Writer) InWorker() bool { return w.Card != "" }

// fence is the one place that decides whether a writer may write to a card in
// the name of a run. It returns the card and its open run (nil if there is
// none, or if an operator without a run asks and there is none).
//
// A late worker must never change what a successor owns, and a worker that
// lost its run number must not pass for an operator: both are refused, and the
// refusal is recorded once for each run that tried.
func fence(v View, verb, id string, w Writer) (*Task, *Run, Decision, error) {
	t, err := v.MustTask(id)
	if err != nil {
		return nil, nil, Decision{}, err
	}
	if w.InWorker() && w.Card != id {
		return nil, nil, Decision{}, refuse(ErrFenced, id, "%s refused: this process is a worker of %s and may not %s another card (comment, show, list and create are open to it)", verb, w.Card, verb)
	}
	var open *Run
	if t.CurrentRun != 0 {
		if open, err = v.runOf(t.CurrentRun); err != nil {
			return nil, nil, Decision{}, err
		}
	}
	if w.Run == 0 && !w.InWorker() || w.Run != 0 && w.Run == t.CurrentRun {
		return t, open, Decision{}, nil
	}
	d, err := fenced(v, verb, t, w)
	return nil, nil, d, err
}

func fenced(v View, verb string, t *Task, w Writer) (Decision, error) {
	// Numbers nobody ever had are refused without a trace: the log must not
	// grow with what a script makes up.
	known := w.Run == 0
	if r, e := v.Run(w.Run); e == nil && r != nil && r.Task == t.ID {
		known = true
	}
	var err error
	switch {
	case w.Run == 0:
		err = refuse(ErrFenced, t.ID, "%s refused: KANLOG_TASK is set but no run is given (KANLOG_RUN or --run), so it cannot be told whether this worker still owns the card", verb)
	case !known && t.CurrentRun == 0:
		err = refuse(ErrFenced, t.ID, "%s refused: no run %d is open%s", verb, w.Run, endedAs(v, t.ID, w.Run))
	case t.CurrentRun == 0:
		err = refuse(ErrFenced, t.ID, "%s refused: run %d is not open any more%s", verb, w.Run, endedAs(v, t.ID, w.Run))
	default:
		err = refuse(ErrFenced, t.ID, "%s refused: run %d is not the card's open run, which is %d%s", verb, w.Run, t.CurrentRun, endedAs(v, t.ID, w.Run))
	}
	if !known || v.r.Get(tabFenced, cat(under(t.ID), num(w.Run))) != nil {
		return Decision{}, err
	}
	return Decision{
		Task:    t.ID,
		Events:  []eventlog.Event{event(t.ID, w.Run, &eventlog.Fenced{Verb: verb, Presented: w.Run, Current: t.CurrentRun})},
		Refused: err,
	}, nil
}

func endedAs(v View, task string, run uint64) string {
	r, err := v.Run(run)
	switch {
	case err == nil && (r == nil || r.Task != task):
		return " (the card never had such a run; kanlog runs " + task + " shows all)"
	case err == nil && !r.Open():
		return " (it ended as " + r.Outcome + " at " + r.EndedAt.String() + ")"
	}
	return ""
}

// fenceAside is the fence for what a worker does beside its own card, where no
// card of its own changes: its run must be open, or be the card's newest and
// closed by its own answer (a worker may answer first and then create the cards
// that follow). A run that was taken away writes nothing more.
func fenceAside(v View, verb string, w Writer) (Decision, error) {
	if !w.InWorker() {
		return Decision{}, nil
	}
	t, err := v.Task(w.Card)
	if err != nil {
		return Decision{}, err
	}
	if t == nil {
		return Decision{}, refuse(ErrFenced, w.Card, "%s refused: this process is a worker of that card, which is not on this board", verb)
	}
	if w.Run != 0 && w.Run == t.LastRun {
		r, err := v.runOf(w.Run)
		if err != nil {
			return Decision{}, err
		}
		switch r.Outcome {
		case "", OutCompleted, OutBlocked, OutFailed, OutDeferred, OutReviewRequested, OutChangesRequested:
			return Decision{}, nil
		}
	}
	return fenced(v, verb, t, w)
}

// statusWithout is the status of a card that nothing runs and nothing blocks:
// todo while a parent is open, scheduled before its time, review while its work is
// being reviewed, else ready. assume names a parent that counts as done.
func statusWithout(v View, t *Task, now eventlog.Time, assume string) (string, error) {
	open, err := v.openParents(t.ID, assume)
	switch {
	case err != nil:
		return "", err
	case len(open) > 0:
		return Todo, nil
	case now < t.NotBefore:
		return Scheduled, nil
	case t.ReviewedRun != 0:
		return Review, nil
	}
	return Ready, nil
}

// freed returns the promotions of the children that waited only for this card.
func freed(v View, parent string, now eventlog.Time) ([]eventlog.Event, error) {
	var events []eventlog.Event
	for _, id := range v.Children(parent) {
		c, err := v.MustTask(id)
		if err != nil {
			return nil, err
		}
		if c.Status != Todo {
			continue
		}
		to, err := statusWithout(v, c, now, parent)
		if err != nil {
			return nil, err
		}
		if to != Todo {
			events = append(events, event(id, 0, &eventlog.Promoted{To: to, Reason: "parents_done"}))
		}
	}
	return events, nil
}
