package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"kanlog/eventlog"
	"kanlog/projection"
)

// What an event, or all of them between two moments, changed on a card: the JSON form
// of the contract before and after.

type changeJSON struct {
	Field string `json:"field"`
	Was   any    `json:"was"`
	Now   any    `json:"now"`
}

// formOf is a card's JSON form, nil if there is none.
func formOf(v projection.View, id string) (*taskJSON, error) {
	t, err := v.Task(id)
	if err != nil || t == nil {
		return nil, err
	}
	return newTaskJSON(v, t)
}

// changes compares two forms field by field; was is nil for a card that is new.
func changes(was, now *taskJSON) []changeJSON {
	list := []changeJSON{}
	if now == nil {
		return list
	}
	if was == nil {
		was = &taskJSON{Tags: []string{}, Parents: []string{}, Children: []string{}}
	}
	a, b := reflect.ValueOf(was).Elem(), reflect.ValueOf(now).Elem()
	for i := range a.NumField() {
		x, y := a.Field(i).Interface(), b.Field(i).Interface()
		if !reflect.DeepEqual(x, y) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			list = append(list, changeJSON{name, x, y})
		}
	}
	return list
}

// inWords is a change for people.
func (c changeJSON) inWords() string {
	return fmt.Sprintf("%s %s -> %s", c.Field, valueInWords(c.Was), valueInWords(c.Now))
}

func valueInWords(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		if v == "" {
			return "-"
		}
		return brieflySaid(v)
	case []string:
		if len(v) == 0 {
			return "-"
		}
		return brieflySaid(strings.Join(v, " "))
	case eventlog.Time:
		if v == 0 {
			return "-"
		}
		return v.Std().Format("2006-01-02 15:04:05")
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return brieflySaid(string(b))
}

// brieflySaid is the beginning of the first line of a value.
func brieflySaid(s string) string {
	const most = 60
	first, _, more := strings.Cut(s, "\n")
	if shown, missing := cutAt(first, most); missing > 0 {
		first, more = shown, true
	}
	if more {
		first += "..."
	}
	return first
}

type stepJSON struct {
	*eventJSON
	Changes []changeJSON `json:"changes"`
}

// replaySteps prints each event with what it changed.
func (a *app) replaySteps(r replaying) error {
	store, err := a.board()
	if err != nil {
		return err
	}
	task := ""
	if r.task != "" {
		if task, err = a.resolve(r.task); err != nil {
			return err
		}
	}
	told, done := a.progress("replay", store)
	defer done()
	past, shown := store.Before(), 0
	var was *taskJSON
	err = store.Commits(1, func(c eventlog.Commit) error {
		told(c.Number)
		return past.Step(c, func(i int) (err error) {
			was, err = nil, nil
			if e := c.Events[i]; e.Task != "" && (task == "" || e.Task == task) && c.Seq+uint64(i) > r.after {
				err = past.View(func(v projection.View) (err error) { was, err = formOf(v, e.Task); return err })
			}
			return err
		}, func(i int) error {
			e := c.Events[i]
			if task != "" && e.Task != task || c.Seq+uint64(i) <= r.after {
				return nil
			}
			if r.limit > 0 && shown == r.limit {
				return errEnough
			}
			shown++
			var now *taskJSON
			err := past.View(func(v projection.View) (err error) { now, err = formOf(v, e.Task); return err })
			if err != nil {
				return err
			}
			done()
			return a.printStep(c, i, changes(was, now))
		})
	})
	if err == errEnough {
		return nil
	}
	return err
}

func (a *app) printStep(c eventlog.Commit, i int, list []changeJSON) error {
	if a.asJSON {
		return a.jsonLine(stepJSON{newEventJSON(c, i), list})
	}
	if err := a.printf("%s\n", a.eventLine(c, i)); err != nil {
		return err
	}
	if c.Events[i].Kind() == eventlog.KindCreated {
		return nil // its line says what there is
	}
	for _, change := range list {
		if err := a.printf("       %s\n", clean(change.inWords(), false)); err != nil {
			return err
		}
	}
	return nil
}

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
	_, err = now.RecentRuns(1<<62, func(r *projection.Run) {
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
