package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kanlog/eventlog"
	"kanlog/projection"
	"kanlog/tick"
)

// Bounds on what is written down of uncommitted files.
const (
	leftLines = 20
	leftLine  = 300 // bytes
)

// leftWork is what a workspace holds that is in no commit when a card starts there
// again.
type leftWork struct {
	dir    string
	before uint64          // the run that starts
	of     *projection.Run // the last run of the card that worked there
	own    bool            // nobody but runs of the card works there
	files  []string        // as git status --porcelain has them
	unsure string          // why git could not say, "" if it could
	beside string          // who else is at work there, in words
}

// seeToLeftWork looks at what an earlier run of a card has left uncommitted in its
// workspace, and writes that down before the worker starts: whose it is nobody could
// tell later. By the settings the start then goes on, is held, or what is there is put
// aside.
//
// Ended after the stash and before the comment, the next start finds the stash by its
// message and says so. Ended after the comment, the next start writes its own.
func (w *world) seeToLeftWork(l tick.Launch, dir string, begin forker) error {
	t := l.Task
	if t.WorkspaceKind == projection.Scratch {
		return nil
	}
	policy := cmp.Or(l.Profile.DirtyWorkspace, w.set.dirtyWorkspace)
	if t.Lane() == projection.LaneReview {
		policy = tick.DirtyKeep // it is what there is to review
	}
	lock, unlock, err := w.lockPlace(t, dir, policy == tick.DirtyStash && t.LastRun != 0)
	if err != nil {
		return fmt.Errorf("%w: an earlier git is still at work in %s: %w", tick.ErrInfrastructure, dir, err)
	}
	defer unlock()
	if t.LastRun == 0 || repositoryAround(dir) == "" {
		return nil
	}
	left := &leftWork{dir: dir, before: l.Run, own: t.WorkspaceKind == projection.Worktree}
	var comments []*projection.Comment
	late := ""
	err = begin(func() error {
		return w.store.View(func(v projection.View) (err error) {
			// Under the lock: as long as we have it, the next run of the card waits for it.
			if late, err = notToStart(v, l.Run); late != "" || err != nil {
				return err
			}
			if left.of, err = lastThere(v, t, l.Run); err != nil || left.of == nil {
				return err
			}
			if left.beside, err = v.Beside(t.ID, dir); err != nil {
				return err
			}
			if left.beside != "" {
				left.beside += " is at work there too"
			}
			comments, err = v.Comments(t.ID)
			return err
		})
	})
	switch {
	case err != nil:
		return notTheCards(err)
	case late != "":
		return errors.New(late)
	case left.of == nil:
		return nil
	}
	if left.beside == "" && policy == tick.DirtyStash && within(w.a.home, dir) {
		left.beside = "kanlog itself, with its boards, is at work there too"
	}
	g := gitRunner{begin: begin, repo: dir, lock: lock}
	left.files, left.unsure = g.uncommitted()
	if left.beside == "" && policy != tick.DirtyKeep && len(left.files) > 0 {
		// Only now: each of them is opened for that.
		left.beside = w.besideOnOtherBoards(dir, begin)
	}
	if left.beside != "" {
		policy = tick.DirtyKeep // it is the others', as far as anybody knows
	}
	said, hold := left.said(), left.held(t.ID)
	if policy == tick.DirtyStash {
		if said, hold, err = w.putAside(g, l, left, comments); err != nil {
			return err
		}
	} else if policy == tick.DirtyKeep {
		hold = ""
	}
	if said == "" {
		return nil
	}
	err = begin(func() error {
		_, err := w.store.Update(w.actor, w.a.clock(), projection.AddComment(t.ID, w.actor, said, projection.Writer{}))
		return err
	})
	if err != nil {
		return notTheCards(err)
	}
	w.a.fail.hit("workspace.recorded")
	if hold != "" {
		// The name of the directory alone may be as long as a reason.
		return &tick.HeldError{Reason: strings.ToValidUTF8(hold[:min(len(hold), projection.MaxReason)], "")}
	}
	return nil
}

// besideOnOtherBoards says in words that a card of another board of the home is at work in
// a directory, "" if none is. Of a board that cannot be read nobody knows.
func (w *world) besideOnOtherBoards(dir string, begin forker) (who string) {
	home := &app{home: w.a.home} // a daemon goes on with its own meanwhile
	slugs, err := home.slugs()
	if err != nil {
		return fmt.Sprintf("who of another board is at work there too is not known (%v)", err)
	}
	o := eventlog.Options{LockTimeout: min(w.set.lockTimeout, busyWait), AllowNetwork: w.set.allowNetwork}
	for _, slug := range slugs {
		if slug == w.a.slug {
			continue
		}
		// Under begin for the same reason as a fork, and one after the other.
		err := begin(func() error {
			return projection.Open(eventlog.BoardDir(home.home, slug), o).View(func(v projection.View) (err error) {
				who, err = v.Beside("", dir)
				return err
			})
		})
		switch {
		case errors.Is(err, eventlog.ErrNoBoard): // archived just now
		case err != nil:
			return fmt.Sprintf("who of the board %s is at work there too is not known (%v)", slug, err)
		case who != "":
			return fmt.Sprintf("%s, of the board %s, is at work there too", who, slug)
		}
	}
	return ""
}

// notTheCards marks an error of the store: a start that comes to nothing by it is no
// failure of the card.
func notTheCards(err error) error { return fmt.Errorf("%w: %w", tick.ErrInfrastructure, err) }

// notToStart says why a run that was claimed is not started any more, "" if it is: a
// dispatcher that was stopped may come back when it was booked long ago and another run of
// the card is at work.
func notToStart(v projection.View, run uint64) (string, error) {
	r, err := v.Run(run)
	switch {
	case err != nil:
		return "", err
	case r == nil || !r.Open():
		return fmt.Sprintf("run %d is over before it was started", run), nil
	case r.EndRequestedAt != 0:
		return fmt.Sprintf("the end of run %d was asked for before it was started", run), nil
	}
	return "", nil
}

// lastThere is the last run of a card that may have worked in its workspace, before the
// one that starts now; nil if none ever got that far.
func lastThere(v projection.View, t *projection.Task, now uint64) (*projection.Run, error) {
	runs, err := v.Runs(t.ID)
	for _, r := range slices.Backward(runs) {
		if r.ID < now && (r.SpawnedAt != 0 || r.Origin == projection.OriginManual) {
			return r, err
		}
	}
	return nil, err
}

// said is what is written down, "" for nothing.
func (l *leftWork) said() string {
	switch {
	case l.unsure != "":
		return fmt.Sprintf("Before run %d started in %s git could not say what is not committed there: %s", l.before, l.dir, l.unsure)
	case len(l.files) == 0:
		return ""
	}
	end := ""
	if l.beside != "" {
		end = fmt.Sprintf("\n%s; all of it was left as it is.", l.beside)
	}
	return fmt.Sprintf("Before run %d started, this was not committed in %s; %s:\n%s%s", l.before, l.dir, l.whose(), l.list(), end)
}

// whose is what can be said of who left it.
func (l *leftWork) whose() string {
	what := cmp.Or(l.of.Outcome, "open")
	if l.own {
		return fmt.Sprintf("it may be of run %d (%s)", l.of.ID, what)
	}
	return fmt.Sprintf("it may be of run %d (%s), or of somebody else who works there", l.of.ID, what)
}

// list names the first files, as git has them.
func (l *leftWork) list() string {
	shown := l.files[:min(len(l.files), leftLines)]
	text := strings.Join(shown, "\n")
	if more := len(l.files) - len(shown); more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	return text
}

// held is why the card does not start by a policy that holds it, "" if it may.
func (l *leftWork) held(id string) string {
	switch {
	case l.unsure != "":
		return fmt.Sprintf("git cannot say what is not committed in %s: %s", l.dir, l.unsure)
	case len(l.files) == 0:
		return ""
	}
	names := make([]string, 0, 3)
	for _, line := range l.files[:min(len(l.files), 3)] {
		names = append(names, strings.TrimSpace(line))
	}
	if more := len(l.files) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("not committed in %s: %s; %s. Commit it, put it aside or remove it, then kanlog unblock %s (dirty_workspace = %q)",
		l.dir, strings.Join(names, ", "), l.whose(), id, tick.DirtyRefuse)
}

// notWorktrees leaves out the worktrees of cards, which kanlog makes within a repository:
// they are nobody's uncommitted work.
const notWorktrees = ":(exclude).worktrees"

// uncommitted asks git for what is not committed in a directory, in whatever tree that
// is. What git is told to ignore does not count; no other setting hides a file. Where
// there is no tree there is nothing.
func (g gitRunner) uncommitted() (files []string, unsure string) {
	out, err := g.raw("-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", "--no-optional-locks",
		"status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none", "--", ".", notWorktrees)
	if err != nil {
		if strings.Contains(out, "not a git repository") || strings.Contains(out, "must be run in a work tree") {
			return nil, ""
		}
		return nil, gitWords(strings.TrimSpace(out), err)
	}
	for line := range strings.SplitSeq(out, "\n") {
		// Two letters and a blank; a warning has no blank there.
		if len(line) > 3 && line[2] == ' ' {
			files = append(files, clean(cutLine(line), false))
		}
	}
	return files, ""
}

// gitWords is what git gave as its reason, as text that can be kept.
func gitWords(out string, err error) string { return clean(cutLine(gitSays(out, err)), false) }

// cutLine bounds one line and makes it text that can be kept: a name is bytes.
func cutLine(line string) string {
	if len(line) > leftLine {
		line = line[:leftLine] + "..."
	}
	return strings.ToValidUTF8(line, "\uFFFD")
}

// repositoryAround is the root of the git repository around a directory, "" if it is in
// none.
func repositoryAround(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// within tells whether a path is a directory or in it, links followed.
func within(path, dir string) bool {
	real := func(p string) string {
		if r, err := filepath.EvalSymlinks(p); err == nil {
			return r
		}
		return filepath.Clean(p)
	}
	rel, err := filepath.Rel(real(dir), real(path))
	return err == nil && filepath.IsLocal(rel)
}
