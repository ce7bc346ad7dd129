package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

func createCmd(a *app) *cobra.Command {
	var d projection.Draft
	var body, bodyFile, workspace, notBefore string
	var maxRuntime duration
	cmd := &cobra.Command{
		Use:   "create TITLE",
		Short: "Put a card on the board and print its id",
		Example: `  kanlog create "fix the build" --assignee coder --body-file notes.md
  kanlog create "deploy" --assignee ops --parent t_1a2b --priority 5
  kanlog create "sort the photos" --assignee coder --workspace dir:$HOME/photos
  kanlog create "nightly report" --key report-2026-11-29   # once, however often it is called`,
		Args: exactly(1, "one title (quote it)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.Title, d.ID = args[0], randomID()
			given := cmd.Flags().Changed
			for _, name := range []string{"assignee", "tenant", "key", "branch", "reviewer"} {
				if f := cmd.Flags().Lookup(name); given(name) {
					if err := checkGiven(name, f.Value.String()); err != nil {
						return usage("--%v", err)
					}
				}
			}
			if given("max-retries") {
				if err := checkRetries(d.MaxRetries); err != nil {
					return usage("--max-retries %v", err)
				}
			}
			d.Blocked = given("blocked")
			if given("max-runtime") {
				d.MaxRuntime = limitGiven(maxRuntime.std())
			}
			var err error
			if d.Body, err = bodyOf(given("body"), body, given("body-file"), bodyFile); err != nil {
				return err
			}
			if d.WorkspaceKind, d.WorkspacePath, err = parseWorkspace(workspace); err != nil {
				return err
			}
			if notBefore != "" {
				if d.NotBefore, err = a.parseMoment(notBefore); err != nil {
					return usage("--not-before %v", err)
				}
			}
			return a.create(d)
		},
	}
	f := cmd.Flags()
	f.StringVar(&body, "body", "", "what is to be done, in full")
	f.StringVar(&bodyFile, "body-file", "", "read the body from a file, - for stdin")
	f.StringVar(&d.Assignee, "assignee", "", "the profile that works on it")
	f.StringArrayVar(&d.Parents, "parent", nil, "wait for this card (repeatable)")
	f.Var(&number[int64]{&d.Priority}, "priority", "higher is started first")
	f.StringVar(&d.Key, "key", "", "create once: the same key returns the same card")
	f.Var(&maxRuntime, "max-runtime", "end a run after this long (90, 30s, 2h, 1d; 0: never, whatever the profile says)")
	f.Var(&number[int64]{&d.MaxRetries}, "max-retries", "failed attempts before the card is blocked (default: the settings')")
	f.StringVar(&workspace, "workspace", projection.Scratch, "scratch, dir:/ABS (one card at a time), shared:/ABS (several at once), or worktree[:/ABS] of a repository (without a path: the one around you)")
	f.StringVar(&d.Branch, "branch", "", "branch of the worktree (default wt/ID)")
	f.StringVar(&notBefore, "not-before", "", "do not start before this moment (RFC 3339) or time from now (2h)")
	f.StringVar(&d.Tenant, "tenant", "", "namespace, handed to the worker and to children")
	f.StringArrayVar(&d.Tags, "tag", nil, "a label (repeatable)")
	f.StringVar(&d.Reviewer, "reviewer", "", "the profile that reviews its work (default: the profile's reviewer, or a person)")
	f.BoolVar(&d.Triage, "triage", false, "not ready yet: somebody has to specify it")
	f.StringVar(&d.BlockReason, "blocked", "", "start out blocked, for this reason")
	return cmd
}

// checkGiven refuses a word that was given and says nothing: what a script has
// made of an empty variable.
func checkGiven(name, word string) error {
	if strings.TrimSpace(word) == "" {
		return usage("%s is empty; leave it out if there is none", name)
	}
	if name == "assignee" && word == "none" {
		return usage("assignee none: leave it out for nobody")
	}
	return nil
}

func checkRetries(n int64) error {
	if n < 1 {
		return usage("%d: at least 1 (1 = no second attempt)", n)
	}
	return nil
}

// limitGiven is a limit that was given: 0 is none, whatever the profile says.
func limitGiven(d time.Duration) time.Duration {
	if d == 0 {
		return projection.NoLimit
	}
	return d
}

func (a *app) create(d projection.Draft) error {
	w, err := a.writer()
	if err != nil {
		return err
	}
	set, err := a.settings()
	if err != nil {
		return err
	}
	var form *taskJSON
	var vain []string
	res, err := a.updateOrInit("create", w, set.policy.Limits.Bounded(w, projection.Create(d, w)), func(v projection.View, res projection.Result) error {
		t, err := v.MustTask(res.Task)
		if err != nil {
			return err
		}
		if form, err = newTaskJSON(v, t); err != nil {
			return err
		}
		vain, err = waitWarnings(v, form.Parents)
		return err
	})
	if err != nil {
		return err
	}
	made := res.Commit.Number != 0
	a.warnNoProfile(d.Assignee)
	a.warnNoProfile(d.Reviewer)
	for _, why := range vain {
		a.warn("%s: its parent %s", res.Task, why)
	}
	if res.Note != "" {
		a.warn("%s: %s; nothing was created", res.Task, res.Note)
	}
	if !a.asJSON {
		return recorded(res.Task, a.printf("%s\n", res.Task))
	}
	return recorded(res.Task, a.json(struct {
		*taskJSON
		Created bool `json:"created"`
	}{a.placed(form), made}))
}

// waitWarnings says which of a card's parents may be waited for in vain.
func waitWarnings(v projection.View, parents []string) (list []string, err error) {
	for _, p := range parents {
		why, err := v.WaitWarning(p)
		if err != nil {
			return nil, err
		}
		if why != "" {
			list = append(list, why)
		}
	}
	return list, nil
}

// updateOrInit is updateThen for what may be the first call ever: on a home
// without any board it makes the board. A typo in --board must not make one where
// others are, and what would be refused must not make one either.
func (a *app) updateOrInit(verb string, w projection.Writer, decide projection.Decider, look func(projection.View, projection.Result) error) (projection.Result, error) {
	res, err := a.updateThen(verb, w, decide, look)
	if !errors.Is(err, eventlog.ErrNoBoard) {
		return res, err
	}
	fresh, lookErr := a.freshHome()
	switch {
	case lookErr != nil:
		return res, lookErr
	case !fresh:
		// Others are there. One may be ours, made by another process since we
		// looked.
		return a.updateThen(verb, w, decide, look)
	}
	if _, err := decide(emptyBoard(), a.now); err != nil {
		return res, err
	}
	if _, err := a.init(); err != nil {
		return res, err
	}
	return a.updateThen(verb, w, decide, look)
}

// rehearseOrInit runs a decider and changes nothing; where updateOrInit would make
// the board it runs on an empty one.
func (a *app) rehearseOrInit(decide projection.Decider) (res projection.Result, err error) {
	run := func(v projection.View) error {
		d, err := decide(v, a.now)
		res = d.Result()
		return cmp.Or(err, d.Refused)
	}
	err = a.view(run)
	if errors.Is(err, eventlog.ErrNoBoard) {
		if fresh, lookErr := a.freshHome(); lookErr != nil {
			return res, lookErr
		} else if fresh {
			err = run(emptyBoard())
		}
	}
	return res, err
}

func emptyBoard() projection.View { return projection.NewView(eventlog.NewMem([16]byte{})) }

// recorded says that a change is made although its result could not be
// printed: whoever repeats the call would make it twice.
func recorded(id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("task %s: recorded, but: %w", id, err)
}

func bodyOf(givenText bool, text string, givenFile bool, file string) (string, error) {
	switch {
	case givenText && givenFile:
		return "", usage("--body and --body-file exclude each other")
	case givenText && text == "-":
		file = "-"
	case !givenFile:
		return text, nil
	}
	in, from := io.Reader(os.Stdin), "stdin"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", usage("--body-file: %v", err)
		}
		defer f.Close()
		in, from = f, file
	}
	// No more is read than tells that it is too long: it may never end.
	b, err := io.ReadAll(io.LimitReader(in, projection.MaxBody+1))
	switch {
	case err != nil:
		return "", usage("reading the body: %v", err)
	case len(b) == 0:
		return "", usage("the body that was read is empty; leave it out if there is none")
	case len(b) > projection.MaxBody:
		return "", usage("the body in %s is too long: it may have at most %d bytes", from, projection.MaxBody)
	}
	return string(b), nil
}

func parseWorkspace(s string) (kind, path string, err error) {
	kind, path, given := strings.Cut(s, ":")
	switch kind {
	case projection.Worktree:
		if !given {
			path, err = ownRepository()
		}
		return kind, path, err
	case projection.Scratch, projection.Dir, projection.Shared:
		return kind, path, nil
	}
	return "", "", usage("workspace %q is none of scratch, dir:/ABS, shared:/ABS, worktree[:/ABS]", s)
}

// ownRepository is the root of the git repository around the current directory:
// what --workspace worktree means without a path.
func ownRepository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root := repositoryAround(dir)
	if root == "" {
		return "", usage("workspace worktree: %s is in no git repository; name one by its path (worktree:/ABS)", dir)
	}
	return root, nil
}

// parseMoment reads a moment, or a time from now.
func (a *app) parseMoment(s string) (eventlog.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		if t.Unix() <= 0 {
			return 0, usage("%q lies before 1970", s)
		}
		if t.UTC().Year() > 9999 {
			// RFC 3339 has four digits for a year: what we print could not be read.
			return 0, usage("%q lies behind the year 9999", s)
		}
		return eventlog.TimeOf(t), nil
	}
	d, err := parseDuration(s)
	if err != nil {
		return 0, usage("%q is neither a moment (2026-12-01T09:00:00Z) nor a time from now (2h)", s)
	}
	return a.now.Add(d), nil
}
