package main

import (
	"fmt"
	"strconv"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// momentHelp is what parseMomentOf takes, for helps.
const momentHelp = "the number of an event, a time (2026-11-30T14:00:00Z), or how long ago (2h)"

// momentOf reads a point of the log.
func (a *app) momentOf(s string) (projection.Moment, error) {
	if n, err := strconv.ParseUint(s, 10, 63); err == nil {
		if n == 0 {
			return projection.Moment{}, usage("%q: the first event has the number 1", s)
		}
		return projection.Moment{Seq: n}, nil
	}
	at, err := a.timeOf(s)
	if err != nil {
		return projection.Moment{}, usage("%q is neither the number of an event, nor a time (2026-11-30T14:00:00Z), nor how long ago (2h)", s)
	}
	return projection.Moment{At: at}, nil
}

// timeOf reads a time that has passed: a moment, or how long ago it was.
func (a *app) timeOf(s string) (eventlog.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil && t.Unix() > 0 {
		return eventlog.TimeOf(t), nil
	}
	d, err := parseDuration(s)
	if err != nil {
		return 0, usage("%q is neither a time (2026-11-30T14:00:00Z) nor how long ago (2h)", s)
	}
	return a.now.Add(-d), nil
}

// goTo makes the reading verbs read the board as it was, and its time theirs.
func (a *app) goTo(m projection.Moment) error {
	store, err := a.board()
	if err != nil {
		return err
	}
	told, done := a.progress("replay", store)
	past, err := store.Past(m, told)
	done()
	if err != nil {
		return err
	}
	a.past = past
	switch {
	case m.At != 0:
		a.now = m.At
	case past.At != 0:
		a.now = past.At
	}
	return nil
}

// pastJSON is which moment a board is shown at.
type pastJSON struct {
	Seq    uint64        `json:"seq"`
	Commit uint64        `json:"commit"`
	At     eventlog.Time `json:"at"`
	Actor  any           `json:"actor"`
	Hash   any           `json:"hash"`
}

func newPastJSON(p *projection.Past) pastJSON {
	j := pastJSON{Seq: p.Head.Seq, Commit: p.Head.Commit, At: p.At, Actor: text(p.Actor)}
	if p.Head.Commit > 0 {
		j.Hash = fmt.Sprintf("%x", p.Head.Hash)
	}
	return j
}

// inWords names a moment for people.
func (j pastJSON) inWords() string {
	if j.Commit == 0 {
		return "before the first event"
	}
	return fmt.Sprintf("event %d (commit %d, %s, %v)", j.Seq, j.Commit, j.At.Std().Format("2006-01-02 15:04:05"), j.Actor)
}
