package main

import (
	"bytes"
	"fmt"
	"os"

	"kanlog/projection"
)

// Bounds on what a worker is told, in bytes or items.
const (
	contextBody     = 8 << 10
	contextAttempts = 10
	contextText     = 4 << 10
	contextComments = 30
	contextComment  = 2 << 10
)

// writeContext writes the file with everything known about a card. It is made
// aside and renamed, so that a worker never reads half of it.
func (w *world) writeContext(path, id string) error {
	var text []byte
	err := w.store.View(func(v projection.View) (err error) {
		text, err = w.a.context(v, id)
		return err
	})
	if err != nil {
		return err
	}
	aside := path + ".new"
	if err := os.WriteFile(aside, text, 0o600); err != nil {
		return err
	}
	return os.Rename(aside, path)
}

// context is the text of that file: the body, earlier attempts with their
// errors, the parents' results, comments.
func (a *app) context(v projection.View, id string) ([]byte, error) {
	t, err := v.MustTask(id)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s: %s\n\n", t.ID, t.Title)
	fmt.Fprintf(&b, "assignee: %s · priority: %d · workspace: %s\n", t.Assignee, t.Priority, t.WorkspaceKind)
	if body := v.Body(id); body != "" {
		fmt.Fprintf(&b, "\n## Body\n\n%s\n", shorten(body, contextBody))
	}
	runs, err := v.Runs(id)
	if err != nil {
		return nil, err
	}
	var closed []*projection.Run
	for _, r := range runs {
		if !r.Open() {
			closed = append(closed, r)
		}
	}
	if len(closed) > 0 {
		fmt.Fprintf(&b, "\n## Earlier attempts\n\n")
		if n := len(closed) - contextAttempts; n > 0 {
			fmt.Fprintf(&b, "(%d older attempts not shown)\n", n)
			closed = closed[n:]
		}
		for _, r := range closed {
			fmt.Fprintf(&b, "- run %d, %s, %s: %s\n", r.ID, a.age(r.EndedAt), r.Outcome, shorten(orDash(r.Error, r.Summary), contextText))
		}
	}
	if parents := v.Parents(id); len(parents) > 0 {
		fmt.Fprintf(&b, "\n## Results of what this builds on\n\n")
		for _, p := range parents {
			pt, err := v.MustTask(p)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "- %s %s (%s): %s\n", p, pt.Title, pt.Status, shorten(orDash(pt.Result), contextText))
		}
	}
	comments, err := v.Comments(id)
	if err != nil {
		return nil, err
	}
	if len(comments) > 0 {
		fmt.Fprintf(&b, "\n## Comments\n\n")
		if n := len(comments) - contextComments; n > 0 {
			fmt.Fprintf(&b, "(%d older comments not shown)\n", n)
			comments = comments[n:]
		}
		for _, c := range comments {
			fmt.Fprintf(&b, "- %s, %s: %s\n", c.Author, a.age(c.At), shorten(c.Text, contextComment))
		}
	}
	return b.Bytes(), nil
}

// shorten cuts text visibly.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return fmt.Sprintf("%s\n[%d more bytes not shown]", s[:most], len(s)-most)
}

func orDash(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return "-"
}
