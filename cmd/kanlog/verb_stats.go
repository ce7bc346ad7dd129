package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

// Bounds of what stats says about runs.
const (
	statsPeriod = 24 * time.Hour
	// statsRuns is how many of the newest runs are looked at. A run may last for
	// ever, so nothing but the end of them says that no older one ended lately.
	statsRuns = 10_000
)

func statsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stats",
		Short: "Count the cards by status and assignee, and how the runs of the last day ended",
		Long: fmt.Sprintf(`stats counts the cards of the board by status and by assignee (archived cards only
by status), tells for how long the oldest startable card could have been started,
and how the runs that ended in the last 24 hours did. It looks at the newest %d runs
at most, and says so if there are more. That a card is ready counts from when it was
made, was due, its hold or its last run ended or what it waited for was done, the
latest of these; that somebody unblocked or promoted it is not counted.

Each card stands in one place: startable (the next dispatch starts it if there is
room), running, held (until the clock or the end of a process lets it go on),
waiting (for another card, a time, or somebody who takes it), stuck (only a person
moves it: kanlog list --stuck) or terminal (done, archived). What is startable is
the backlog.`, statsRuns),
		Example: `  kanlog stats
  kanlog stats --json | jq .by_standing.startable
  kanlog stats --json | jq .oldest_startable_ready_seconds`,
		Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error { return a.stats() },
	}
}

type statsJSON struct {
	Now      eventlog.Time  `json:"now"`
	Cards    int            `json:"cards"`
	ByStatus map[string]int `json:"by_status"`
	// ByStanding counts each card once; see projection.Standings.
	ByStanding map[string]int `json:"by_standing"`
	// ByAssignee has the cards of each by status; "" stands for nobody.
	ByAssignee map[string]map[string]int `json:"by_assignee"`
	// The oldest card that the next dispatch could start, and for how long it could;
	// null if there is none. See projection.View.ReadySince.
	OldestStartable             any `json:"oldest_startable"`
	OldestStartableReadySeconds any `json:"oldest_startable_ready_seconds"`
	// The oldest card that is ready, whether or not anybody starts it, and how long
	// ago it was made; null if none is.
	OldestReady           any `json:"oldest_ready"`
	OldestReadyAgeSeconds any `json:"oldest_ready_age_seconds"`
	// What ended in the last 24 hours. RunsComplete is false if older runs than
	// those looked at may have ended in them too.
	RunsByOutcome map[string]int `json:"runs_by_outcome"`
	RunsComplete  bool           `json:"runs_complete"`
	// Daemon is the board's daemon, Paused what somebody said who paused the board;
	// null if there is none.
	Daemon *daemonJSON `json:"daemon"`
	Paused any         `json:"paused"`
}

type daemonJSON struct {
	PID    int           `json:"pid"`
	Since  eventlog.Time `json:"since"`
	Looked eventlog.Time `json:"looked_at"`
	Next   eventlog.Time `json:"next_at"`
	// Stalled: it is later for its next tick than its own work explains.
	Stalled bool `json:"stalled"`
}

// daemonNow is the board's daemon in JSON and in words.
func (a *app) daemonNow() (j *daemonJSON, words string) {
	s := a.daemonOf()
	if s == nil {
		return nil, "none; cards start when somebody runs kanlog dispatch"
	}
	late, stalled := s.stalled(a.now)
	j = &daemonJSON{PID: s.PID, Since: s.Since, Looked: s.Looked, Next: s.Next, Stalled: stalled}
	switch {
	case stalled:
		return j, fmt.Sprintf("process %d, STALLED: %s late for its next tick (kanlog doctor)", s.PID, brief(late))
	case s.Looked == 0:
		return j, fmt.Sprintf("process %d, in its first tick", s.PID)
	}
	return j, fmt.Sprintf("process %d, last tick %s", s.PID, a.age(s.Looked))
}

func (a *app) stats() error {
	store, err := a.reads()
	if err != nil {
		return err
	}
	profiles, err := a.starters()
	if err != nil {
		return err
	}
	s := statsJSON{Now: a.now, ByStatus: map[string]int{}, ByStanding: map[string]int{}, ByAssignee: map[string]map[string]int{}, RunsByOutcome: map[string]int{}}
	for _, status := range projection.Statuses {
		s.ByStatus[status] = 0
	}
	for _, standing := range projection.Standings {
		s.ByStanding[standing] = 0
	}
	var oldest, startable *projection.Task
	roots := projection.Stuck{}
	err = store.EachCard(func(v projection.View, t *projection.Task) error {
		standing, err := roots.Standing(v, t, a.now, profiles)
		if err != nil {
			return err
		}
		s.ByStanding[standing]++
		s.count(t)
		if t.Status == projection.Ready && (oldest == nil || t.CreatedSeq < oldest.CreatedSeq) {
			oldest = t
		}
		if standing == projection.Startable && (startable == nil || t.CreatedSeq < startable.CreatedSeq) {
			startable = t
		}
		return nil
	})
	if err != nil {
		return err
	}
	var readySince eventlog.Time
	if startable != nil {
		if err := store.View(func(v projection.View) (err error) {
			readySince, err = v.ReadySince(startable, a.now)
			return err
		}); err != nil {
			return err
		}
		s.OldestStartable, s.OldestStartableReadySeconds = startable.ID, a.now.Since(readySince).Seconds()
	}
	if oldest != nil {
		s.OldestReady, s.OldestReadyAgeSeconds = oldest.ID, a.now.Since(oldest.CreatedAt).Seconds()
	}
	var daemonWords string
	if a.past == nil {
		s.Daemon, daemonWords = a.daemonNow()
	}
	var paused *projection.Pause
	if err := store.View(func(v projection.View) (err error) { paused, err = v.Paused(); return err }); err != nil {
		return err
	}
	if paused != nil {
		s.Paused = map[string]any{"since": paused.Since, "by": paused.By, "reason": paused.Reason}
	}
	since := a.now.Add(-statsPeriod)
	s.RunsComplete, err = store.RecentRuns(statsRuns, func(r *projection.Run) {
		if !r.Open() && r.EndedAt >= since {
			s.RunsByOutcome[r.Outcome]++
		}
	})
	switch {
	case err != nil:
		return err
	case a.asJSON:
		return a.json(s)
	}
	if err := a.statsText(&s); err != nil || s.Cards == 0 {
		return err
	}
	if err := a.statsEnd(&s, startable, readySince, oldest); err != nil {
		return err
	}
	if a.past == nil {
		err = a.printf("\ndaemon: %s\n", clean(daemonWords, true))
	}
	if err == nil && paused != nil {
		err = a.printf("%s\n", clean(paused.String(), true))
	}
	return err
}

// starters are the assignees that a dispatch can start, or could.
func (a *app) starters() (map[string]bool, error) {
	if a.past != nil {
		return a.past.Admission().Profiles, nil
	}
	set, err := a.settings()
	if err != nil {
		return nil, err
	}
	return set.profileNames(), nil
}

func (s *statsJSON) count(t *projection.Task) {
	s.Cards++
	s.ByStatus[t.Status]++
	if t.Status == projection.Archived {
		return
	}
	if s.ByAssignee[t.Assignee] == nil {
		s.ByAssignee[t.Assignee] = map[string]int{}
	}
	s.ByAssignee[t.Assignee][t.Status]++
}

func (a *app) statsText(s *statsJSON) error {
	if s.Cards == 0 {
		a.warn("no cards")
		return nil
	}
	err := a.table(func(w io.Writer) {
		fmt.Fprintln(w, "STATUS\tCARDS")
		for _, status := range projection.Statuses {
			if n := s.ByStatus[status]; n > 0 {
				fmt.Fprintf(w, "%s\t%d\n", status, n)
			}
		}
	})
	if err == nil {
		err = a.printf("\n%s\n", standings(s.ByStanding))
	}
	if err == nil && len(s.ByAssignee) > 0 {
		err = a.assigneeTable(s)
	}
	return err
}

// statsEnd is what stats says in sentences.
func (a *app) statsEnd(s *statsJSON, startable *projection.Task, since eventlog.Time, oldest *projection.Task) (err error) {
	if startable != nil {
		err = a.printf("\nthe oldest startable card: %s, ready for %s: %s\n", startable.ID, brief(a.now.Since(since)), clean(startable.Title, false))
	}
	if err == nil && oldest != nil && (startable == nil || startable.ID != oldest.ID) {
		err = a.printf("\nthe oldest ready card: %s, made %s: %s\n", oldest.ID, a.age(oldest.CreatedAt), clean(oldest.Title, false))
	}
	if err == nil {
		err = a.printf("\nruns that ended in the last 24 hours: %s\n", outcomes(s.RunsByOutcome))
	}
	if err == nil && !s.RunsComplete {
		a.warn("only the newest %d runs were looked at", statsRuns)
	}
	return err
}

// standings are counted words in their order; that nothing is startable is said.
func standings(by map[string]int) string {
	var parts []string
	for _, name := range projection.Standings {
		if by[name] > 0 || name == projection.Startable {
			parts = append(parts, fmt.Sprintf("%d %s", by[name], name))
		}
	}
	return strings.Join(parts, ", ")
}

// assigneeTable has a column for each status that some card is in.
func (a *app) assigneeTable(s *statsJSON) error {
	var columns []string
	for _, status := range projection.Statuses {
		if s.ByStatus[status] > 0 && status != projection.Archived {
			columns = append(columns, status)
		}
	}
	if err := a.printf("\n"); err != nil {
		return err
	}
	return a.table(func(w io.Writer) {
		fmt.Fprintf(w, "ASSIGNEE\t%s\n", strings.ToUpper(strings.Join(columns, "\t")))
		for _, name := range slices.Sorted(maps.Keys(s.ByAssignee)) {
			fmt.Fprint(w, cell(name))
			for _, status := range columns {
				if n := s.ByAssignee[name][status]; n > 0 {
					fmt.Fprintf(w, "\t%d", n)
				} else {
					fmt.Fprint(w, "\t-")
				}
			}
			fmt.Fprintln(w)
		}
	})
}

// outcomes are counted words, the most frequent first.
func outcomes(by map[string]int) string {
	names := slices.SortedFunc(maps.Keys(by), func(x, y string) int {
		if by[x] != by[y] {
			return by[y] - by[x]
		}
		return strings.Compare(x, y)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", by[name], name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
