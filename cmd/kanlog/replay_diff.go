package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"kanlog/projection"
)

type diffJSON struct {
	From    pastJSON       `json:"from"`
	To      pastJSON       `json:"to"`
	Created []string       `json:"created"`
	Changed []cardDiff     `json:"changed"`
	Started int            `json:"runs_started"`
	Ended   map[string]int `json:"runs_ended"`
}

type cardDiff struct {
	Task    string       `json:"task"`
	Title   string       `json:"title"`
	Created bool         `json:"created"`
	Changes []changeJSON `json:"changes"`

	status string
}

// replayDiff prints what changed between two moments.
func (a *app) replayDiff(from, to, task string) error {
	store, err := a.board()
	if err != nil {
		return err
	}
	var moments [2]projection.Moment
	for i, s := range []string{from, to} {
		if moments[i], err = a.momentOf(s); err != nil {
			return err
		}
	}
	told, done := a.progress("replay", store)
	defer done()
	was, err := store.Past(moments[0], told)
	if err != nil {
		return err
	}
	now, err := store.Past(moments[1], told)
	if err != nil {
		return err
	}
	done()
	if now.Head.Commit < was.Head.Commit {
		return usage("--diff: %s lies behind %s; give the earlier moment first", from, to)
	}
	if task != "" {
		if err := now.View(func(v projection.View) (err error) { task, err = v.Resolve(task); return err }); err != nil {
			return err
		}
	}
	d, err := diffOf(was, now, task)
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.json(d)
	}
	return a.printDiff(d)
}

// diffOf compares the cards that the later moment knows of and that have a commit
// behind the earlier one.
func diffOf(was, now *projection.Past, task string) (*diffJSON, error) {
	d := &diffJSON{From: newPastJSON(was), To: newPastJSON(now), Created: []string{}, Changed: []cardDiff{}, Ended: map[string]int{}}
	var after []*taskJSON
	err := now.EachCard(func(v projection.View, t *projection.Task) error {
		if task != "" && t.ID != task || v.LastCommit(t.ID) <= was.Head.Commit {
			return nil
		}
		form, err := newTaskJSON(v, t)
		after = append(after, form)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = was.View(func(v projection.View) error {
		for _, form := range after {
			before, err := formOf(v, form.ID)
			if err != nil {
				return err
			}
			c := cardDiff{Task: form.ID, Title: form.Title, Created: before == nil, Changes: changes(before, form), status: form.Status}
			if c.Created {
				d.Created = append(d.Created, c.Task)
			}
			if len(c.Changes) > 0 {
				d.Changed = append(d.Changed, c)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	_, err = now.RecentRuns(math.MaxInt, func(r *projection.Run) {
		if task != "" && r.Task != task {
			return
		}
		if r.ID > was.Head.Seq {
			d.Started++
		}
		if !r.Open() && (r.ID > was.Head.Seq || openThen(was, r.ID)) {
			d.Ended[r.Outcome]++
		}
	})
	return d, err
}

func openThen(was *projection.Past, run uint64) (open bool) {
	_ = was.View(func(v projection.View) error {
		r, err := v.Run(run)
		open = r != nil && r.Open()
		return err
	})
	return open
}

// marks are fields that follow from the others or say only that a run goes on; a table
// for people leaves them out.
var marks = []string{
	"worker_pid", "worker_fingerprint", "claim_expires", "workspace_path", "started_at", "completed_at", "last_heartbeat_at", "current_run", "retained_run", "children",
}

func (a *app) printDiff(d *diffJSON) error {
	ended := make([]string, 0, len(d.Ended))
	for _, name := range slices.Sorted(maps.Keys(d.Ended)) {
		ended = append(ended, fmt.Sprintf("%d %s", d.Ended[name], name))
	}
	words := fmt.Sprintf("from %s\nto   %s\n%s made, %d changed; %s started", d.From.inWords(), d.To.inWords(),
		plural(len(d.Created), "card", "cards"), len(d.Changed)-len(d.Created), plural(d.Started, "run", "runs"))
	if len(ended) > 0 {
		words += ", ended: " + strings.Join(ended, ", ")
	}
	if err := a.printf("%s\n", clean(words, true)); err != nil || len(d.Changed) == 0 {
		return err
	}
	if err := a.printf("\n"); err != nil {
		return err
	}
	return a.table(func(w io.Writer) {
		fmt.Fprintln(w, "ID\tWHAT\tTITLE")
		for _, c := range d.Changed {
			what := "made, " + c.status
			if !c.Created {
				var parts []string
				for _, change := range c.Changes {
					if !slices.Contains(marks, change.Field) {
						parts = append(parts, change.inWords())
					}
				}
				what = strings.Join(parts, ", ")
				if len(parts) == 0 {
					what = "its run went on"
				}
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", c.Task, cell(what), cell(c.Title))
		}
	})
}
