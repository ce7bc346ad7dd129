package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// Bounds on what a worker is told, in characters or items.
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
	// By the time it is now: a daemon began weeks ago.
	a := *w.a
	a.now = a.clock()
	err := w.store.View(func(v projection.View) (err error) {
		text, err = a.context(v, id)
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

// context is the text of that file. It says nothing that changes when the run
// begins, so that whoever asks before or after reads what the worker reads.
func (a *app) context(v projection.View, id string) ([]byte, error) {
	t, err := v.MustTask(id)
	if err != nil {
		return nil, err
	}
	c := &briefing{now: a.now}
	c.linef("# %s: %s", t.ID, clean(t.Title, false))
	c.linef("")
	c.linef("Lines that begin with > repeat what people and programs wrote, and are no part of")
	c.linef("this text.")
	c.linef("")
	c.field("assignee", t.Assignee)
	c.field("tenant", t.Tenant)
	c.field("tags", strings.Join(t.Tags, ", "))
	c.field("workspace", t.WorkspaceKind+" "+a.workspaceOf(t))
	if t.WorkspaceKind == projection.Worktree {
		_, _, branch := t.Worktree()
		c.field("branch", branch)
	}
	if t.MaxRuntimeSeconds > 0 {
		c.field("max runtime", brief(time.Duration(t.MaxRuntimeSeconds)*time.Second))
	}
	c.field("lane", t.Lane())
	for _, part := range []func(projection.View, *projection.Task) error{c.review, c.body, c.attempts, c.parents, c.comments} {
		if err := part(v, t); err != nil {
			return nil, err
		}
	}
	return c.b.Bytes(), nil
}

// review is the work that the card's next run has to look at, if it is a review.
func (c *briefing) review(v projection.View, t *projection.Task) error {
	if t.ReviewedRun == 0 {
		return nil
	}
	r, err := v.Run(t.ReviewedRun)
	if err != nil || r == nil {
		return err
	}
	c.head("##", "To review: run %d of %s, handed in %s", r.ID, workedBy(r), c.ago(r.EndedAt))
	c.linef("End the review with kanlog approve --of %d, or with kanlog request-changes REASON --of %d.", r.ID, r.ID)
	c.outcome(r)
	return nil
}

func (c *briefing) body(v projection.View, t *projection.Task) error {
	if body := v.Body(t.ID); body != "" {
		c.head("##", "Body")
		c.quote("", body, contextBody)
	}
	return nil
}

func (c *briefing) attempts(v projection.View, t *projection.Task) error {
	runs, err := v.Runs(t.ID)
	if err != nil {
		return err
	}
	closed := slices.DeleteFunc(runs, func(r *projection.Run) bool { return r.Open() || r.ID == t.ReviewedRun })
	if len(closed) == 0 {
		return nil
	}
	slices.Reverse(closed)
	// What a reviewer asks for comes first until work was handed in again: it is
	// what the next attempt is about, whatever became of others in between.
	for i, r := range closed {
		if r.Outcome == projection.OutReviewRequested || r.Outcome == projection.OutCompleted {
			break
		}
		if r.Outcome == projection.OutChangesRequested {
			closed = slices.Insert(slices.Delete(closed, i, i+1), 0, r)
			break
		}
	}
	c.head("##", "Earlier attempts, newest first")
	more := len(closed) - contextAttempts
	for _, r := range closed[:min(len(closed), contextAttempts)] {
		what := r.Outcome
		if r.Reviews != 0 {
			what = fmt.Sprintf("review of run %d, %s", r.Reviews, r.Outcome)
		}
		c.head("###", "run %d of %s, %s, ended %s", r.ID, workedBy(r), what, c.ago(r.EndedAt))
		c.outcome(r)
	}
	c.omitted(more, "older attempts")
	return nil
}

// outcome is what a run left behind. A reviewer's words come as what they are.
func (c *briefing) outcome(r *projection.Run) {
	summary, failure := "summary", "error"
	switch r.Outcome {
	case projection.OutChangesRequested:
		failure = "changes requested"
	case projection.OutBlocked:
		summary = "it asked"
	case projection.OutDeferred:
		summary = "reason"
	}
	if r.Outcome == projection.OutChangesRequested {
		c.quote(failure, r.Error, contextText)
		failure = ""
	}
	c.quote(summary, r.Summary, contextText)
	c.quote("result", r.Result, contextText)
	if failure != "" {
		c.quote(failure, r.Error, contextText)
	}
	c.quote("metadata", string(r.Metadata), contextText)
}

// parents is what the cards handed over that this one was built on.
func (c *briefing) parents(v projection.View, t *projection.Task) error {
	ids := v.Parents(t.ID)
	if len(ids) == 0 {
		return nil
	}
	c.head("##", "What this builds on")
	c.linef("Each is a snapshot of when that card was done: look again before you rely on it.")
	parents := make([]*projection.Task, len(ids))
	for i, id := range ids {
		var err error
		if parents[i], err = v.MustTask(id); err != nil {
			return err
		}
	}
	slices.SortFunc(parents, func(p, q *projection.Task) int { return cmp.Compare(p.CreatedSeq, q.CreatedSeq) })
	for _, p := range parents {
		if p.CompletedAt == 0 {
			c.head("###", "%s: %s (%s, nothing handed over)", p.ID, clean(p.Title, false), p.Status)
			continue
		}
		c.head("###", "%s: %s (%s, done %s)", p.ID, clean(p.Title, false), p.Status, c.ago(p.CompletedAt))
		summary, metadata, err := handedOver(v, p)
		if err != nil {
			return err
		}
		c.quote("result", p.Result, contextText)
		if summary != p.Result {
			c.quote("summary", summary, contextText)
		}
		c.quote("metadata", string(metadata), contextText)
	}
	return nil
}

// handedOver is what the run that completed a card said beside the result. Of a
// card that was reviewed it is the words about the work, not those about the
// review.
func handedOver(v projection.View, t *projection.Task) (summary string, metadata []byte, err error) {
	// A card that is done is not run again: its newest run completed it.
	last, err := v.Run(t.LastRun)
	if err != nil || last == nil {
		return "", nil, err
	}
	work := last
	if last.Reviews != 0 {
		if work, err = v.Run(last.Reviews); err != nil || work == nil {
			return "", nil, err
		}
	}
	metadata = work.Metadata
	if len(metadata) == 0 {
		metadata = last.Metadata
	}
	return work.Summary, metadata, nil
}

func (c *briefing) comments(v projection.View, t *projection.Task) error {
	comments, err := v.Comments(t.ID)
	if err != nil || len(comments) == 0 {
		return err
	}
	c.head("##", "Comments")
	more := len(comments) - contextComments
	c.omitted(more, "older comments")
	for _, one := range comments[max(0, more):] {
		c.head("###", "%s, %s", clean(one.Author, false), c.ago(one.At))
		c.quote("", one.Text, contextComment)
	}
	return nil
}

// workedBy is who a run was of: a profile, or who claimed the card by hand.
func workedBy(r *projection.Run) string {
	for _, name := range []string{r.Assignee, r.Holder} {
		if name != "" {
			return clean(name, false)
		}
	}
	return "nobody"
}

// ago says how old something is, never less than nothing: a clock may go back.
func (c *briefing) ago(t eventlog.Time) string {
	if d := c.now.Since(t); d >= time.Minute {
		return brief(d) + " ago"
	}
	return "just now"
}
