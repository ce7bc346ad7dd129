package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

func showCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one card: its runs, events and comments, and why it waits",
		Example: "  kanlog show t_1a2b\n  kanlog show t_1a2b --json | jq .why",
		Args:    exactly(1, "one id"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.show(args[0]) },
	}
}

type showJSON struct {
	Task     *taskJSON           `json:"task"`
	Runs     []shownRunJSON      `json:"runs"`
	Events   []*eventJSON        `json:"events"`
	Comments []*commentJSON      `json:"comments"`
	Parents  []string            `json:"parents"`
	Children []string            `json:"children"`
	Why      any                 `json:"why"`
	Budgets  []projection.Budget `json:"budgets"`
}

func (a *app) show(prefix string) error {
	set, err := a.reasons()
	if err != nil {
		return err
	}
	var s showJSON
	var why string
	err = a.view(func(v projection.View) error {
		id, err := v.Resolve(prefix)
		if err != nil {
			return err
		}
		t, err := v.MustTask(id)
		if err != nil {
			return err
		}
		if s.Task, err = newTaskJSON(v, t); err != nil {
			return err
		}
		a.placed(s.Task)
		s.Parents, s.Children = s.Task.Parents, s.Task.Children
		counts, err := v.CountsOf(t)
		if err != nil {
			return err
		}
		s.Budgets = set.policy.Limits.Budgets(t, counts)
		runs, err := v.Runs(id)
		if err != nil {
			return err
		}
		s.Runs = []shownRunJSON{}
		for _, r := range runs {
			s.Runs = append(s.Runs, shownRunJSON{runJSON: a.newRunJSON(r)})
		}
		comments, err := v.Comments(id)
		if err != nil {
			return err
		}
		s.Comments = []*commentJSON{}
		for _, c := range comments {
			s.Comments = append(s.Comments, newCommentJSON(c))
		}
		why, err = set.why(v, t, a.now)
		s.Why = text(why)
		return err
	})
	if err != nil {
		return err
	}
	store, err := a.reads()
	if err != nil {
		return err
	}
	s.Events = []*eventJSON{}
	var lines []string
	err = store.TaskCommits(s.Task.ID, 0, func(c eventlog.Commit) error {
		for i, e := range c.Events {
			if e.Task == s.Task.ID {
				s.Events = append(s.Events, newEventJSON(c, i))
				lines = append(lines, a.eventLine(c, i))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := max(0, len(s.Runs)-tailRuns); i < len(s.Runs) && a.past == nil; i++ {
		r := &s.Runs[i]
		if r.OutputTail, err = a.outputTail(r.Task, r.ID); err != nil {
			a.warn("the output of run %d cannot be read: %v", r.ID, err)
		}
	}
	if a.asJSON {
		return a.json(s)
	}
	return a.showText(&s, why, lines)
}

// Bounds on the output that show repeats. A card may have thousands of runs: only
// the newest are looked at.
const (
	tailRuns  = 10
	tailBytes = 2 << 10
	tailLines = 10
)

// outputTail is the end of what a run's command said, nil if there is no file.
func (a *app) outputTail(task string, run uint64) (*string, error) {
	f, size, err := openOutput(a.files().output(task, run))
	if f == nil || err != nil {
		return nil, err
	}
	defer f.Close()
	said := proc.Said(f, size, run)
	if err := seekTail(said, tailBytes); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(said)
	if err != nil {
		return nil, err
	}
	// What was cut inside a character or is no text at all becomes U+FFFD, which
	// is longer than what it replaces.
	s := strings.ToValidUTF8(string(b), "\ufffd")
	for len(s) > tailBytes {
		_, w := utf8.DecodeRuneInString(s)
		s = s[w:]
	}
	return &s, nil
}

// lastOutput is the newest run that has said something.
func (s *showJSON) lastOutput() *shownRunJSON {
	for i := len(s.Runs) - 1; i >= 0; i-- {
		if r := &s.Runs[i]; r.OutputTail != nil && strings.TrimSpace(*r.OutputTail) != "" {
			return r
		}
	}
	return nil
}

func (a *app) showText(s *showJSON, why string, events []string) error {
	t := s.Task
	var b strings.Builder
	line := func(name string, value any) {
		if value != nil && value != "" {
			fmt.Fprintf(&b, "%-11s%s\n", name, clean(fmt.Sprint(value), false))
		}
	}
	fmt.Fprintf(&b, "%s  %s\n", t.ID, clean(t.Title, false))
	line("status", t.Status)
	line("why", why)
	line("assignee", t.Assignee)
	line("priority", t.Priority)
	line("tenant", t.Tenant)
	line("tags", strings.Join(t.Tags, ", "))
	line("parents", strings.Join(t.Parents, " "))
	line("children", strings.Join(t.Children, " "))
	line("created", a.age(t.CreatedAt)+" by "+t.CreatedBy)
	if t.NotBefore > a.now {
		line("starts", a.due(t.NotBefore))
	}
	for _, budget := range s.Budgets {
		// The last one holds what the others do, and matters when it is near.
		if budget.Used > 0 && (budget.Name != "uncounted" || 2*budget.Used >= budget.Limit) {
			line("used up", fmt.Sprintf("%s: %d of %d", strings.ReplaceAll(budget.Name, "_", " "), budget.Used, budget.Limit))
		}
	}
	line("last error", t.LastError)
	line("workspace", t.WorkspacePath)
	line("result", t.Result)
	if t.Body != nil {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(clean(t.Body.(string), true), "\n"))
	}
	if err := a.printf("%s", b.String()); err != nil {
		return err
	}
	if len(s.Runs) > 0 {
		if err := a.printf("\nruns\n"); err != nil {
			return err
		}
		runs := make([]*runJSON, len(s.Runs))
		for i, r := range s.Runs {
			runs[i] = r.runJSON
		}
		if err := a.runTable(runs); err != nil {
			return err
		}
	}
	if r := s.lastOutput(); r != nil && !r.plainlyCompleted() {
		lines := strings.Split(clean(strings.Trim(*r.OutputTail, "\n"), true), "\n")
		lines = lines[max(0, len(lines)-tailLines):]
		if err := a.printf("\nlast output of run %d\n  %s\n", r.ID, strings.Join(lines, "\n  ")); err != nil {
			return err
		}
	}
	if len(s.Comments) > 0 {
		if err := a.printf("\ncomments\n"); err != nil {
			return err
		}
		for _, c := range s.Comments {
			if err := a.printf("  %s, %s: %s\n", clean(c.Author, false), a.age(c.At), clean(c.Text, true)); err != nil {
				return err
			}
		}
	}
	if err := a.printf("\nevents\n"); err != nil {
		return err
	}
	for _, l := range events {
		if err := a.printf("  %s\n", l); err != nil {
			return err
		}
	}
	return nil
}

// runTable has a column for whose each run was if that differs: the attempts of a
// card and its reviews look alike otherwise.
func (a *app) runTable(runs []*runJSON) error {
	whose := func(r *runJSON) string {
		if r.Holder != nil {
			return fmt.Sprint(r.Holder)
		}
		if r.Assignee != nil {
			return fmt.Sprint(r.Assignee)
		}
		return ""
	}
	differs := slices.ContainsFunc(runs, func(r *runJSON) bool { return whose(r) != whose(runs[0]) })
	return a.table(func(w io.Writer) {
		by := ""
		if differs {
			by = "BY\t"
		}
		fmt.Fprintf(w, "  RUN\tOUTCOME\tSTARTED\tTOOK\tPID\tEXIT\t%sWHAT\n", by)
		for _, r := range runs {
			if differs {
				by = cell(whose(r)) + "\t"
			}
			took, exit := "-", "-"
			if r.EndedAt != 0 {
				took = brief(r.EndedAt.Since(r.StartedAt))
			}
			if r.ExitCode != nil {
				exit = fmt.Sprint(*r.ExitCode)
			}
			if r.Signal != nil {
				exit = fmt.Sprint(r.Signal)
			}
			outcome := "open"
			if r.Outcome != nil {
				outcome = fmt.Sprint(r.Outcome)
			}
			pid := "-"
			if r.WorkerPID != nil {
				pid = fmt.Sprint(r.WorkerPID)
			}
			fmt.Fprintf(w, "  %d\t%s\t%s\t%s\t%s\t%s\t%s%s\n", r.ID, outcome, a.age(r.StartedAt), took, pid, exit, by, cell(r.what()))
		}
	})
}

// what is the first line of what is known of how a run went.
func (r *runJSON) what() string {
	for _, s := range []any{r.Error, r.Summary, r.Result} {
		if s != nil {
			line, _, _ := strings.Cut(fmt.Sprint(s), "\n")
			return line
		}
	}
	return ""
}

func runsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "runs ID",
		Short:   "Show the attempts at a card, oldest first",
		Example: "  kanlog runs t_1a2b --json | jq '.[-1].error'",
		Args:    exactly(1, "one id"),
		RunE: func(_ *cobra.Command, args []string) error {
			forms := []*runJSON{}
			err := a.view(func(v projection.View) error {
				id, err := v.Resolve(args[0])
				if err != nil {
					return err
				}
				runs, err := v.Runs(id)
				for _, r := range runs {
					forms = append(forms, a.newRunJSON(r))
				}
				return err
			})
			switch {
			case err != nil:
				return err
			case a.asJSON:
				return a.json(forms)
			case len(forms) == 0:
				a.warn("no runs")
				return nil
			}
			return a.runTable(forms)
		},
	}
}

func whyCmd(a *app) *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "why [ID]",
		Short: "Say why a card does not run; without an id, for every card that waits",
		Long: `why says for what a card waits and what would end that; without an id, for every
card that waits.

--at asks for a moment of the past, from the log alone:
` + momentHelp + `.
Of one card it also says what was decided about it last by then, and on what: the
evidence, the limits and the caps that the event names. Which profiles there were is
known from the claims before; how full other boards were, or the memory, is not.`,
		Example: "  kanlog why t_1a2b\n  kanlog why\n  kanlog why t_1a2b --at 2h",
		Args:    between(0, 1, "at most one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") {
				return a.whyAt(at, args)
			}
			if len(args) == 1 {
				return a.why(args[0])
			}
			return a.whyAll()
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the moment: "+momentHelp)
	return cmd
}

type whyJSON struct {
	Task   string `json:"task"`
	Status string `json:"status"`
	Reason any    `json:"reason"`
}

func (a *app) why(prefix string) error {
	set, err := a.reasons()
	if err != nil {
		return err
	}
	var t *projection.Task
	var why string
	err = a.view(func(v projection.View) error {
		id, err := v.Resolve(prefix)
		if err != nil {
			return err
		}
		if t, err = v.MustTask(id); err != nil {
			return err
		}
		why, err = set.why(v, t, a.now)
		return err
	})
	if err != nil {
		return err
	}
	startable := t.Status == projection.Ready || t.Status == projection.Review
	if why == "" && startable {
		why = a.stoppedDispatch()
	}
	switch {
	case a.asJSON:
		return a.json(whyJSON{t.ID, t.Status, text(why)})
	case why == "" && startable:
		why = "nothing holds it: the next kanlog dispatch starts it if there is room"
	case why == "":
		why = "it does not wait: " + t.Status
	}
	return a.printf("%s\n", clean(why, false))
}

// stoppedDispatch says that no card starts since a stopped process has the board's turn,
// "" if none has. It is asked for one card: doctor tells of it for the board.
func (a *app) stoppedDispatch() string {
	pid, command := eventlog.Holder(a.files().dispatchLock())
	if pid == 0 || !proc.NewProber().Stopped(pid) {
		return ""
	}
	return fmt.Sprintf("no dispatch gets its turn while process %d (%s) is stopped: kill -CONT %d lets it go on", pid, command, pid)
}

// whyAll gives the reason of every card that waits for something.
func (a *app) whyAll() error {
	set, err := a.reasons()
	if err != nil {
		return err
	}
	store, err := a.reads()
	if err != nil {
		return err
	}
	list := []whyJSON{}
	err = store.EachCard(func(v projection.View, t *projection.Task) error {
		why, err := set.why(v, t, a.now)
		if why != "" {
			list = append(list, whyJSON{t.ID, t.Status, why})
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case a.asJSON:
		return a.json(list)
	case len(list) == 0:
		a.warn("no card waits for anything but the next kanlog dispatch")
		return nil
	}
	return a.table(func(w io.Writer) {
		fmt.Fprintln(w, "ID\tSTATUS\tWHY")
		for _, l := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\n", l.Task, l.Status, cell(fmt.Sprint(l.Reason)))
		}
	})
}

// waiting is what the reason function needs beside the board's rows.
func (s *settings) waiting(v projection.View, now eventlog.Time) (projection.Admission, error) {
	if s.past != nil {
		return s.past.Admission(), nil
	}
	full, err := tick.Full(v, s.dispatchPolicy(), s.host, now)
	if err != nil {
		return projection.Admission{}, err
	}
	return projection.Admission{Profiles: s.profileNames(), Full: full}, nil
}

// profileNames are the assignees that a dispatch can start here.
func (s *settings) profileNames() map[string]bool {
	names := map[string]bool{}
	for name := range s.policy.Profiles {
		names[name] = true
	}
	return names
}

// why asks the one reason function about a card.
func (s *settings) why(v projection.View, t *projection.Task, now eventlog.Time) (string, error) {
	w, err := s.waiting(v, now)
	if err != nil {
		return "", err
	}
	return v.Why(t, now, w)
}
