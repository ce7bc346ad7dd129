package projection

import (
	"strings"

	"kanlog/eventlog"
)

// The fold of what concerns a card and no run.

func (f *folder) created(id string, d *eventlog.Created) error {
	if id == "" {
		return inconsistent("event %d creates a card without an id", f.seq)
	}
	if was, err := f.Task(id); err != nil || was != nil {
		return inconsistent("event %d creates card %s a second time", f.seq, id)
	}
	t := &Task{
		ID: id, Title: d.Title, Assignee: d.Assignee, Status: d.Status, Priority: d.Priority,
		Tenant: d.Tenant, Tags: d.Tags, Key: d.Key,
		CreatedAt: f.c.At, CreatedBy: f.c.Actor, CreatedSeq: f.seq,
		MaxRuntimeSeconds: d.MaxRuntimeSeconds, MaxRetries: d.MaxRetries,
		WorkspaceKind: d.WorkspaceKind, WorkspacePath: d.WorkspacePath, Branch: d.Branch,
		NotBefore: d.NotBefore, BlockReason: d.BlockReason, Reviewer: d.Reviewer,
	}
	if d.Status == Blocked {
		t.BlockKind = NeedsInput
	}
	if d.Body != "" {
		f.w.Put(tabBodies, []byte(id), []byte(d.Body))
	}
	for _, p := range d.Parents {
		f.w.Put(tabParents, cat(under(id), []byte(p)), nil)
		f.w.Put(tabChildren, cat(under(p), []byte(id)), nil)
	}
	if d.Key != "" {
		f.w.Put(tabKeys, []byte(d.Key), cat(under(id), asked(d)))
	}
	putTask(f.w, nil, t)
	if _, n, ok := workerOf(f.c.Actor); ok {
		// A worker that lost its run number is refused before; an older program may
		// have let one through.
		if r, err := f.Run(n); err != nil {
			return err
		} else if r != nil {
			r.Created++
			putRun(f.w, r)
		}
	}
	return nil
}

// again makes a card one that is to be done once more. What it was keeps standing
// in its runs.
func (f *folder) again(t *Task, to string) {
	t.Status, t.CompletedAt, t.Result, t.LastError = to, 0, "", ""
	t.ReviewedRun, t.FreshFrom = 0, f.seq
	if to != Blocked && to != Triage {
		t.BlockKind, t.BlockReason, t.ParkedLimit = "", "", 0
	}
	t.HoldSince, t.HoldUntil, t.HoldReason = 0, 0, ""
}

// byHand is the name of the person who answered for a card that nobody claimed.
func byHand(actor string) string {
	name, _ := strings.CutPrefix(actor, "operator:")
	return name
}

// reviewed is the run whose work is under review, nil if none is.
func (f *folder) reviewed(t *Task) *Run {
	if t.ReviewedRun == 0 {
		return nil
	}
	r, err := f.Run(t.ReviewedRun)
	if err != nil {
		f.err = err
	}
	return r
}

func (f *folder) edited(id string, d *eventlog.Edited) error {
	return f.task(id, func(t *Task) error {
		set(&t.Title, d.Title)
		set(&t.Priority, d.Priority)
		set(&t.Tenant, d.Tenant)
		if d.NoTags || len(d.Tags) > 0 {
			t.Tags = d.Tags
		}
		set(&t.MaxRuntimeSeconds, d.MaxRuntimeSeconds)
		set(&t.MaxRetries, d.MaxRetries)
		set(&t.NotBefore, d.NotBefore)
		set(&t.Result, d.Result)
		set(&t.Reviewer, d.Reviewer)
		switch {
		case d.Body == nil:
		case *d.Body == "":
			f.w.Delete(tabBodies, []byte(id))
		default:
			f.w.Put(tabBodies, []byte(id), []byte(*d.Body))
		}
		t.Status = or(d.To, t.Status)
		return nil
	})
}

func set[T any](field *T, to *T) {
	if to != nil {
		*field = *to
	}
}
