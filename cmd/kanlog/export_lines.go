package main

import (
	"io"

	"kanlog/eventlog"
)

// The lines of an export beside task: what the verbs print, each with what it is.

// exportedBoard is the first line. It counts the lines of events, which come last:
// who reads fewer has a file that was cut off.
type exportedBoard struct {
	boardLine
	Events uint64 `json:"events"`
}

type exportedRun struct {
	Type string `json:"type"`
	*runJSON
}

type exportedComment struct {
	Type string `json:"type"`
	*commentJSON
}

type exportedEvent struct {
	Type string `json:"type"`
	*eventJSON
}

// exportLines writes JSON Lines.
func (a *app) exportLines(w io.Writer, x *exporting) error {
	b, err := a.exportedOf(x.task, false)
	if err != nil {
		return err
	}
	line := func(v any) error {
		text, err := encodeJSON(v, "")
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	n, err := b.countEvents()
	if err != nil {
		return err
	}
	if err := line(exportedBoard{b.board, n}); err != nil {
		return err
	}
	err = b.cards(func(c *exportedCard) error {
		err := line(c.task)
		for i := 0; err == nil && i < len(c.runs); i++ {
			err = line(exportedRun{"run", c.runs[i]})
		}
		for i := 0; err == nil && i < len(c.comments); i++ {
			err = line(exportedComment{"comment", c.comments[i]})
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.events(func(c eventlog.Commit, i int) error {
		return line(exportedEvent{"event", newEventJSON(c, i)})
	})
}

// countEvents is how many events are exported: of the board all that it has, of a
// card those that are read once more to be written.
func (x *exported) countEvents() (n uint64, err error) {
	if x.task == "" {
		return x.head.Seq, nil
	}
	err = x.events(func(eventlog.Commit, int) error {
		n++
		return nil
	})
	return n, err
}
