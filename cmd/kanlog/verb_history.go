package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

func historyCmd(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "Tell the story of a card: what happened, how long it took, and who did it",
		Long: `history tells what happened to a card in plain sentences, the oldest first, each
with the time since the one before. What only says that something goes on
(heartbeats without a note, leases moved) is left out unless --all is given.
kanlog events has every event with all of its data.`,
		Example: "  kanlog history t_1a2b\n  kanlog history t_1a2b --json | jq -r '.story[].text'",
		Args:    exactly(1, "one id"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.history(args[0], all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "also what only says that something goes on")
	return cmd
}

type historyJSON struct {
	Task   string      `json:"task"`
	Title  string      `json:"title"`
	Status string      `json:"status"`
	Runs   int         `json:"runs"`
	Worked float64     `json:"worked_seconds"`
	Story  []storyJSON `json:"story"`
}

type storyJSON struct {
	Seq   uint64        `json:"seq"`
	At    eventlog.Time `json:"at"`
	Since float64       `json:"since_previous_seconds"`
	Kind  eventlog.Kind `json:"kind"`
	Run   any           `json:"run"`
	Actor string        `json:"actor"`
	Text  string        `json:"text"`
}

func (a *app) history(prefix string, all bool) error {
	var t *projection.Task
	err := a.view(func(v projection.View) error {
		id, err := v.Resolve(prefix)
		if err == nil {
			t, err = v.MustTask(id)
		}
		return err
	})
	if err != nil {
		return err
	}
	store, err := a.reads()
	if err != nil {
		return err
	}
	h := historyJSON{Task: t.ID, Title: t.Title, Status: t.Status, Story: []storyJSON{}}
	s, last := newTeller(), eventlog.Time(0)
	err = store.TaskCommits(t.ID, 0, func(c eventlog.Commit) error {
		for i, e := range c.Events {
			if e.Task != t.ID {
				continue
			}
			line := storyJSON{Seq: c.Seq + uint64(i), At: c.At, Kind: e.Kind(), Run: count(c.RunOf(i)), Actor: c.Actor, Text: s.tell(c, i)}
			if !all && quietly(e.Data) {
				continue
			}
			if last != 0 {
				line.Since = c.At.Since(last).Seconds()
			}
			last = c.At
			h.Story = append(h.Story, line)
		}
		return nil
	})
	if err != nil {
		return err
	}
	h.Runs, h.Worked = s.runs, s.lasted.Seconds()
	if a.asJSON {
		return a.json(h)
	}
	return a.historyText(&h, s)
}

// quietly tells what is no part of the story.
func quietly(d eventlog.Payload) bool {
	beat, ok := d.(*eventlog.Heartbeat)
	_, extended := d.(*eventlog.ClaimExtended)
	return ok && beat.Note == "" || extended
}

func (a *app) historyText(h *historyJSON, s *teller) error {
	if err := a.printf("%s  %s\n\n", h.Task, clean(h.Title, false)); err != nil {
		return err
	}
	day := ""
	for i, l := range h.Story {
		if d := l.At.Std().Format("2006-01-02"); d != day {
			day = d
			if err := a.printf("%s\n", day); err != nil {
				return err
			}
		}
		since := ""
		if i > 0 {
			since = "+" + length(time.Duration(l.Since*float64(time.Second)))
		}
		if err := a.printf("  %s %9s  %s\n", l.At.Std().Format("15:04:05"), since, clean(l.Text, false)); err != nil {
			return err
		}
	}
	words := "it is " + h.Status
	if h.Runs > 0 {
		words += fmt.Sprintf(" after %s, whose commands ran for %s", plural(h.Runs, "run", "runs"), length(s.lasted))
	}
	return a.printf("\n%s\n", words)
}
