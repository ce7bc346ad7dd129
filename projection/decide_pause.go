package projection

import "kanlog/eventlog"

// Pause says that a dispatcher starts nothing on the board, whatever runs goes on
// and is booked.
type Pause struct {
	//lint:ignore U1000 msgpack reads its tag through reflection
	_msgpack struct{} `msgpack:",as_array"`

	Since  eventlog.Time
	By     string
	Reason string
}

var keyPause = []byte("pause")

// Paused returns the pause of the board, nil if there is none.
func (v View) Paused() (*Pause, error) {
	b := v.r.Get(tabBoard, keyPause)
	if b == nil {
		return nil, nil
	}
	p := new(Pause)
	return p, decodeRow(b, p)
}

// String says who paused the board, since when, why, and what ends it.
func (p *Pause) String() string {
	return "the board is paused since " + toSecond(p.Since) + " by " + p.By + colon(p.Reason) + "; kanlog resume lets it go on"
}

// PauseBoard lets dispatchers start nothing until somebody resumes.
func PauseBoard(reason string, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if err := checkText("the reason", reason, MaxReason); err != nil {
			return Decision{}, err
		}
		p, err := boardWord(v, "pause", w)
		if err != nil {
			return Decision{}, err
		}
		if p != nil && (reason == "" || reason == p.Reason) {
			return already("", p.String()), nil
		}
		return decided("", event("", 0, &eventlog.Paused{Reason: reason})), nil
	}
}

// ResumeBoard ends a pause.
func ResumeBoard(w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		p, err := boardWord(v, "resume", w)
		if err != nil {
			return Decision{}, err
		}
		if p == nil {
			return already("", "the board is not paused"), nil
		}
		return decided("", event("", 0, &eventlog.Resumed{})), nil
	}
}

// boardWord is the pause that there is; a worker has no say about the board.
func boardWord(v View, verb string, w Writer) (*Pause, error) {
	if w.InWorker() {
		return nil, &refusal{ErrFenced, verb + " refused: this process is a worker of " + w.Card + ", and the board is not its to " + verb}
	}
	return v.Paused()
}

func (f *folder) paused(d *eventlog.Paused) error {
	f.w.Put(tabBoard, keyPause, encodeRow(&Pause{Since: f.c.At, By: f.c.Actor, Reason: d.Reason}))
	return nil
}

func (f *folder) resumed() error {
	f.w.Delete(tabBoard, keyPause)
	return nil
}
