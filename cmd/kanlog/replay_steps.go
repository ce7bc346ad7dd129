package main

import (
	"kanlog/eventlog"
	"kanlog/projection"
)

type stepJSON struct {
	*eventJSON
	Changes []changeJSON `json:"changes"`
}

// replaySteps prints each event with what it changed.
func (a *app) replaySteps(r replaying) error {
	store, task, told, done, err := a.overLog(r.task)
	if err != nil {
		return err
	}
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
