package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"kanlog/eventlog"
	"kanlog/projection"
)

// The page is one file that loads nothing. What people wrote goes into it in two
// ways only: as text by html/template, and as JSON that page.js puts in as text.

//go:embed page/page.html
var pageHTML string

//go:embed page/page.css
var pageCSS string

//go:embed page/page.js
var pageJS string

// pageHead is what the template needs.
type pageHead struct {
	Title, At, Paused string
	Board             boardLine
	Counts            []pageCount
	// The policy of the page allows these two parts, by their hashes, and nothing
	// else: neither a script nor a style that somebody smuggled in.
	Style                 template.CSS
	Script                template.JS
	StyleHash, ScriptHash string
}

type pageCount struct {
	Status string
	Cards  int
}

// pageCard is what the lists and the timeline show of a card. Of the times the
// page wants milliseconds.
type pageCard struct {
	ID          string    `json:"id"`
	Title       string    `json:"title"`
	Status      string    `json:"status"`
	Assignee    any       `json:"assignee"`
	Tenant      any       `json:"tenant"`
	Tags        []string  `json:"tags"`
	Priority    int64     `json:"priority"`
	CreatedAt   int64     `json:"created_at"`
	CompletedAt any       `json:"completed_at"`
	Note        string    `json:"note"`
	Runs        []pageRun `json:"runs"`
}

type pageRun struct {
	ID      uint64 `json:"id"`
	Outcome any    `json:"outcome"`
	Start   int64  `json:"start"`
	End     any    `json:"end"`
}

// pageDetail is what is shown when a card is opened.
type pageDetail struct {
	Task     *taskJSON      `json:"task"`
	Runs     []*runJSON     `json:"runs"`
	Comments []*commentJSON `json:"comments"`
}

// pageEvent is an event in the words of kanlog events.
type pageEvent struct {
	Seq   uint64        `json:"seq"`
	At    eventlog.Time `json:"at"`
	Kind  eventlog.Kind `json:"kind"`
	Run   any           `json:"run"`
	Actor string        `json:"actor"`
	Text  string        `json:"text"`
}

// pageSize is how many cards a browser shows without effort.
const pageSize = 20_000

func (a *app) exportHTML(w io.Writer, x *exporting) error {
	b, err := a.exportedOf(x.task, false)
	if err != nil {
		return err
	}
	events, err := b.eventsByCard()
	if err != nil {
		return err
	}
	head := pageHead{
		Title: "Board " + b.board.Board, At: b.board.ExportedAt.Std().Format("2006-01-02 15:04:05"), Board: b.board,
		Style: template.CSS(pageCSS), Script: template.JS(pageJS), StyleHash: sourceHash(pageCSS), ScriptHash: sourceHash(pageJS),
	}
	counts := map[string]int{}
	n := 0
	err = b.cards(func(c *exportedCard) error {
		counts[c.task.Status]++
		n++
		if x.task != "" {
			head.Title = c.task.Title
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n > pageSize {
		a.warn("%d cards make a page that a browser may take long to show; --task ID makes one of a card", n)
	}
	if b.paused != nil {
		head.Paused = b.paused.String()
	}
	for _, s := range projection.Statuses {
		if counts[s] > 0 {
			head.Counts = append(head.Counts, pageCount{s, counts[s]})
		}
	}
	parts, err := template.New("page").Parse(pageHTML)
	if err == nil {
		err = parts.ExecuteTemplate(w, "top", head)
	}
	if err == nil {
		err = b.pageData(w, events)
	}
	if err == nil {
		err = parts.ExecuteTemplate(w, "bottom", head)
	}
	return err
}

// sourceHash is how a content security policy names a script or a style.
func sourceHash(text string) string {
	h := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(h[:])
}

// inScript is JSON for the inside of a script element, on one line. Outside of
// text JSON has none of these characters, and in text their codes mean the same.
func inScript(v any) ([]byte, error) {
	b, err := encodeJSON(v, "")
	if err != nil {
		return nil, err
	}
	b = bytes.TrimSpace(b)
	for _, c := range []byte("<>&") {
		b = bytes.ReplaceAll(b, []byte{c}, fmt.Appendf(nil, "\\u%04x", c))
	}
	return b, nil
}

// eventsByCard are the events of each card, those of the board under "", as JSON
// with commas between.
func (x *exported) eventsByCard() (map[string][]byte, error) {
	by := map[string][]byte{}
	err := x.events(func(c eventlog.Commit, i int) error {
		j, task := newEventJSON(c, i), c.Events[i].Task
		text, err := inScript(pageEvent{j.Seq, j.At, j.Kind, j.Run, j.Actor, describe(c.Events[i].Data)})
		if err != nil {
			return err
		}
		if len(by[task]) > 0 {
			by[task] = append(by[task], ',')
		}
		by[task] = append(by[task], text...)
		return nil
	})
	return by, err
}

// pageData writes the data: the board and, a line each, the cards and what is
// shown when one is opened, so that the page need not parse what nobody opens.
func (x *exported) pageData(w io.Writer, events map[string][]byte) error {
	part := func(id string, fill func(line func(v any, more ...string) error) error) error {
		fmt.Fprintf(w, "<script type=\"application/json\" id=\"%s\">\n", id)
		err := fill(func(v any, more ...string) error {
			text, err := inScript(v)
			if err != nil {
				return err
			}
			if len(more) > 0 {
				_, err = fmt.Fprintf(w, "[%s,[%s]]\n", text, more[0])
			} else {
				_, err = fmt.Fprintf(w, "%s\n", text)
			}
			return err
		})
		if err == nil {
			_, err = io.WriteString(w, "</script>\n")
		}
		return err
	}
	err := part("data-board", func(line func(any, ...string) error) error { return line(x.board, string(events[""])) })
	if err == nil {
		err = part("data-cards", func(line func(any, ...string) error) error {
			return x.cards(func(c *exportedCard) error { return line(newPageCard(c)) })
		})
	}
	if err == nil {
		err = part("data-details", func(line func(any, ...string) error) error {
			return x.cards(func(c *exportedCard) error {
				d := pageDetail{c.task.taskJSON, c.runs, c.comments}
				if d.Runs == nil {
					d.Runs = []*runJSON{}
				}
				if d.Comments == nil {
					d.Comments = []*commentJSON{}
				}
				return line(d, string(events[c.task.ID]))
			})
		})
	}
	return err
}

// newPageCard has beside the title what one would ask first: what holds the card,
// or what came of it.
func newPageCard(c *exportedCard) pageCard {
	t := c.task
	p := pageCard{
		ID: t.ID, Title: t.Title, Status: t.Status, Assignee: t.Assignee, Tenant: t.Tenant, Tags: t.Tags, Priority: t.Priority,
		CreatedAt: t.CreatedAt.Std().UnixMilli(), Runs: []pageRun{},
	}
	if t.CompletedAt != 0 {
		p.CompletedAt = t.CompletedAt.Std().UnixMilli()
	}
	for _, note := range []any{t.BlockReason, t.Result, t.LastError} {
		if s, ok := note.(string); ok {
			p.Note, _ = cutAt(s, 200)
			break
		}
	}
	for _, r := range c.runs {
		run := pageRun{ID: r.ID, Outcome: r.Outcome, Start: r.StartedAt.Std().UnixMilli()}
		if r.EndedAt != 0 {
			run.End = r.EndedAt.Std().UnixMilli()
		}
		p.Runs = append(p.Runs, run)
	}
	return p
}
