package projection

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"kanlog/eventlog"
)

// Worktree names a card's repository, its own worktree of that and its branch.
func (t *Task) Worktree() (repo, path, branch string) {
	own := "/.worktrees/" + t.ID
	// A run before this one wrote the worktree back as the card's path.
	repo = filepath.Clean(strings.TrimSuffix(t.WorkspacePath, own))
	branch = t.Branch
	if branch == "" {
		branch = "wt/" + t.ID
	}
	return repo, strings.TrimSuffix(repo, "/") + own, branch
}

// Place is what a card works in, named so that two cards can be compared. Its zero
// value is no place: a card's own directory.
type Place struct {
	Name string
	// Shared: those that said so may be at work there at once.
	Shared bool
}

// Place is what no two cards may just work in at once: a branch of a repository, which
// git has in one worktree at a time, or a directory that somebody named.
//
// Directories are compared by their cleaned names. One within another is another place:
// a repository and a part of it are often worked on apart on purpose. So is the same one
// by way of a symbolic link, which cannot be told without looking at the disk.
func (t *Task) Place() Place {
	switch t.WorkspaceKind {
	case Worktree:
		repo, _, branch := t.Worktree()
		return Place{Name: "the branch " + branch + " of " + repo}
	case Dir, Shared:
		return Place{Name: "the directory " + filepath.Clean(t.WorkspacePath), Shared: t.WorkspaceKind == Shared}
	}
	return Place{}
}

// Bars tells whether nobody may begin at other while somebody is at work at p.
func (p Place) Bars(other Place) bool {
	return p.Name != "" && p.Name == other.Name && !(p.Shared && other.Shared)
}

// Taken says in words that a place is another card's, whose run is active.
func (p Place) Taken(r *Run) string {
	return fmt.Sprintf("%s is in use by %s, run %d", p.Name, r.Task, r.ID)
}

// PlaceTaken says which active run has the place of a card, "" if none has. A claim
// by hand is a person's matter: where that one works nobody knows.
func (v View) PlaceTaken(t *Task) (string, error) {
	place := t.Place()
	if place.Name == "" {
		return "", nil
	}
	active, err := v.Active()
	if err != nil {
		return "", err
	}
	for _, r := range active {
		if r.Task == t.ID || r.Origin == OriginManual {
			continue
		}
		other, err := v.MustTask(r.Task)
		if err != nil {
			return "", err
		}
		if other.Place().Bars(place) {
			return place.Taken(r), nil
		}
	}
	return "", nil
}

// Beside says which other card is at work in a directory, within it or around it, "" if
// none is. What stands in a worktree that kanlog made below it is not the directory's; a
// worktree itself is one like any other, since somebody may have been sent there by dir:.
func (v View) Beside(card, path string) (string, error) {
	path = filepath.Clean(path)
	r, err := v.atWork(func(t *Task, at string) bool {
		if t.ID == card || t.WorkspaceKind == Worktree && at != path && below(at, path) {
			return false
		}
		return below(at, path) || below(path, at)
	})
	if r == nil || err != nil {
		return "", err
	}
	return fmt.Sprintf("run %d of %s", r.ID, r.Task), nil
}

// WorkedIn says which run works in one directory, by any of its names, or within it, ""
// if none does.
func (v View) WorkedIn(names ...string) (string, error) {
	r, err := v.atWork(func(_ *Task, at string) bool { return belowAny(at, names) })
	if r == nil || err != nil {
		return "", err
	}
	return fmt.Sprintf("run %d of %s works in it", r.ID, r.Task), nil
}

// atWork is the oldest active run of which match says yes, nil if there is none. match
// sees its card and where it works.
func (v View) atWork(match func(t *Task, at string) bool) (*Run, error) {
	active, err := v.Active()
	if err != nil {
		return nil, err
	}
	for _, r := range active {
		t, err := v.MustTask(r.Task)
		if err != nil {
			return nil, err
		}
		if at := r.at(t); at != "" && match(t, filepath.Clean(at)) {
			return r, nil
		}
	}
	return nil, nil
}

// at is where a run of a card works or will: until it is registered that is where the card
// says. It is "" for a directory of the card's own that nobody has been in yet.
func (r *Run) at(t *Task) string {
	switch {
	case r.Workspace != "":
		return r.Workspace
	case t.WorkspaceKind == Worktree:
		_, path, _ := t.Worktree()
		return path
	}
	return t.WorkspacePath
}

// below tells whether a cleaned path is another one or in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// belowAny tells whether a cleaned path is a directory, by any of its names, or in it.
func belowAny(path string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return below(path, filepath.Clean(name)) })
}

// InUse says why the files of a card cannot be done with, "" if it is over and
// nothing of it is left.
func (t *Task) InUse() string {
	switch {
	case t.Owner() != 0:
		return fmt.Sprintf("run %d has not ended", t.Owner())
	case !t.Over():
		return "the card is " + t.Status
	}
	return ""
}

// WorkspaceInUse says why a card's workspace is still needed, "" if nothing needs
// it: children may read what their parents left there until they are over too, and
// a worker may have been sent into it by its path. Who will be is for Named to say.
func (v View) WorkspaceInUse(t *Task, names ...string) (string, error) {
	if why := t.InUse(); why != "" {
		return why, nil
	}
	for _, id := range v.Children(t.ID) {
		child, err := v.MustTask(id)
		if err != nil {
			return "", err
		}
		if child.InUse() != "" {
			return fmt.Sprintf("its child %s is %s and may read it", id, child.Status), nil
		}
	}
	return v.WorkedIn(names...)
}

// Named are the directories that cards which are not over have named, by dir: or shared:,
// as of a commit. No index has them, since no tick asks for them. They are collected once,
// in batches, from all cards that are not put away, and hold those of cards that are not
// over; from then on they follow the log, so that to ask again costs what has changed.
type Named struct {
	dirs map[string]string // card -> directory
	seen uint64            // the last commit that they know of
	next []byte            // where the next batch begins
}

// Collect reads a batch and says whether there are more. What is written between two of
// them is followed.
func (n *Named) Collect(v View) (more bool, err error) {
	if n.dirs == nil {
		n.dirs = map[string]string{}
		if n.seen, err = v.Newest(); err != nil {
			return false, err
		}
	}
	list, next, err := v.InOrder(n.next, cardBatch)
	if err != nil {
		return false, err
	}
	for _, t := range list {
		n.note(t)
	}
	n.next = next
	return next != nil, nil
}

func (n *Named) note(t *Task) {
	delete(n.dirs, t.ID)
	if !t.Over() && (t.WorkspaceKind == Dir || t.WorkspaceKind == Shared) {
		n.dirs[t.ID] = filepath.Clean(t.WorkspacePath)
	}
}

// Within says which card has named a directory, by any of its names, or one within it, ""
// if none has.
func (n *Named) Within(v View, names ...string) (string, error) {
	if err := n.follow(v); err != nil {
		return "", err
	}
	by := ""
	for id, path := range n.dirs {
		if (by == "" || id < by) && belowAny(path, names) {
			by = id
		}
	}
	if by == "" {
		return "", nil
	}
	t, err := v.MustTask(by)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is %s and names it as its workspace", by, t.Status), nil
}

// follow looks again at the cards of which something was written since.
func (n *Named) follow(v View) error {
	log, ok := v.r.(interface {
		Read(from uint64, fn func(eventlog.Commit) error) error
	})
	if !ok {
		return ErrNoLog
	}
	return log.Read(n.seen+1, func(c eventlog.Commit) error {
		for _, e := range c.Events {
			t, err := v.Task(e.Task)
			if err != nil {
				return err
			}
			if t != nil {
				n.note(t)
			}
		}
		n.seen = c.Number
		return nil
	})
}

// LastChange is when the newest commit that concerns a card was made.
func (s *Store) LastChange(task string) (at eventlog.Time, err error) {
	err = s.view(func(tx *eventlog.Tx) error {
		err := tx.Read(View{tx}.LastCommit(task), func(c eventlog.Commit) error {
			at = c.At
			return errOne
		})
		if errors.Is(err, errOne) {
			return nil
		}
		return err
	})
	return at, err
}

// RunsFrom returns up to max runs of the board with this number or a higher one,
// oldest first.
func (v View) RunsFrom(run uint64, max int) (runs []*Run, err error) {
	v.r.Scan(tabRuns, num(run), func(_, b []byte) bool {
		r := new(Run)
		if err = decodeRow(b, r); err == nil {
			runs = append(runs, r)
		}
		return err == nil && len(runs) < max
	})
	return runs, err
}
