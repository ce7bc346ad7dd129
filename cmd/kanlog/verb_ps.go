package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

func psCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ps",
		Short: "Show what is at work: every open run, and every process not known to be gone",
		Long: `ps shows the active runs, oldest first, and what each is doing:

  starting  claimed; its supervisor has not registered yet
  running   its command runs under a supervisor
  overdue   the same, and its max runtime is over: a tick has to end it (kanlog
            dispatch, kanlog daemon). --json has running, and overdue_since
  ending    its end was asked for and is not confirmed yet
  retained  it was answered or closed, and its process may still live
  manual    claimed by hand: a lease and no process

PID is the supervisor's. LEASE is when the claim runs out; a process that is alive
then gets it extended by the next dispatch. What ps prints is what is on record;
it looks at no process.`,
		Example: `  kanlog ps
  kanlog ps --json | jq -r '.[] | select(.state == "running").worker_pid'
  watch -n 2 kanlog ps`,
		Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error { return a.ps() },
	}
}

// activeJSON is a run with what ps says of it beside.
type activeJSON struct {
	*runJSON
	Title          string        `json:"title"`
	State          string        `json:"state"`
	RunningSeconds float64       `json:"running_seconds"`
	OverdueSince   eventlog.Time `json:"overdue_since"`
}

func (a *app) ps() error {
	forms := []*activeJSON{}
	var runs []*projection.Run
	err := a.view(func(v projection.View) error {
		var err error
		if runs, err = v.Active(); err != nil {
			return err
		}
		for _, r := range runs {
			t, err := v.MustTask(r.Task)
			if err != nil {
				return err
			}
			forms = append(forms, &activeJSON{a.newRunJSON(r), t.Title, r.State(), a.now.Since(r.StartedAt).Seconds(), r.OverdueSince(a.now)})
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case a.asJSON:
		return a.json(forms)
	case len(forms) == 0:
		a.warn("nothing is at work")
		return nil
	}
	return a.table(func(w io.Writer) {
		fmt.Fprintln(w, "ID\tRUN\tSTATE\tASSIGNEE\tPID\tFOR\tHEARTBEAT\tLEASE\tTITLE")
		for i, r := range runs {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Task, r.ID, a.psState(r), cell(orDash(r.Assignee, r.Holder)),
				psPID(r), brief(a.now.Since(r.StartedAt)), a.age(r.LastHeartbeat), a.lease(r), cell(forms[i].Title))
		}
	})
}

// overdue is what a table says of a run that should have ended. For scripts it is
// running still.
const overdue = "overdue"

func (a *app) psState(r *projection.Run) string {
	if r.OverdueSince(a.now) != 0 {
		return overdue
	}
	return r.State()
}

func psPID(r *projection.Run) string {
	if r.PID == 0 {
		return "-"
	}
	return fmt.Sprint(r.PID)
}

// lease says when a claim runs out; a closed run has none.
func (a *app) lease(r *projection.Run) string {
	if !r.Open() {
		return "-"
	}
	return a.due(r.ClaimExpires)
}
