package main

import (
	"io"

	"kanlog/eventlog"
)

// The lines of an export beside board and task: what the verbs print, each with
// what it is.

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
	if err := line(b.board); err != nil {
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
