package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"kanlog/eventlog"
	"kanlog/projection"
)

// freeBranch takes a branch out of the worktree of another card that has no worker:
// git has a branch in one worktree at a time. What is committed goes with the branch
// to the card that is about to start; what is not keeps it from starting, and so does
// whoever works there. The other card's worktree is made again if it runs once more.
func (w *world) freeBranch(g gitRunner, t *projection.Task, branch string) error {
	out, err := g.run("worktree", "list", "--porcelain")
	if err != nil {
		return fmt.Errorf("git worktree list: %s", gitSays(out, err))
	}
	repo, _, _ := t.Worktree()
	path := worktreeWith(out, branch)
	dir, id := filepath.Split(path)
	if real, err := filepath.EvalSymlinks(repo); err != nil || filepath.Clean(dir) != filepath.Join(real, ".worktrees") || id == t.ID {
		return nil // nobody's, or no card's: git says what is wrong
	}
	_, why, err := w.barred(g.begin, id, path)
	if errors.Is(err, projection.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	refuse := func(why string) error {
		return fmt.Errorf("the branch %s is in the worktree of %s, which cannot be removed: %s (%s)", branch, id, why, path)
	}
	if why != "" {
		return refuse(why)
	}
	lock, err := eventlog.TryLock(w.a.files().worktreeLock(id))
	if err != nil {
		return refuse(err.Error())
	}
	defer lock.Unlock()
	// Both locks are inherited: nobody makes a worktree of either card beside a git
	// that we left behind.
	g.also = lock.File()
	tree := worktreeTree{git: g, path: path, lock: lock.File(), hit: w.a.fail.hit}
	why, err = tree.remove(func() (string, error) {
		// Once more, and again when it is out of its place: whoever was sent into it
		// before that is on the board by then, and whoever comes later finds nothing.
		other, why, err := w.barred(g.begin, id, path)
		if why != "" || err != nil {
			return why, err
		}
		// Who goes on there wants what git ignores too: what was built, a file of secrets.
		tree.ignored = !other.Over()
		return tree.uncommitted()
	})
	if why == "" && err == nil {
		why = g.forget(branch, path)
	}
	if err != nil {
		why = err.Error()
	}
	if why != "" {
		return refuse(why)
	}
	return nil
}

// barred says why the worktree of another card cannot be taken away as far as the board
// goes, "" if it can. That somebody waits for a directory within it bars nothing: he might
// wait for the very card that is about to start.
func (w *world) barred(begin forker, id, path string) (other *projection.Task, why string, err error) {
	err = begin(func() error {
		return w.store.View(func(v projection.View) (err error) {
			if other, err = v.MustTask(id); err != nil {
				return err
			}
			if n := other.Owner(); n != 0 {
				why = fmt.Sprintf("run %d has not ended", n)
				return nil
			}
			_, named, _ := other.Worktree() // git's name for it follows every link
			why, err = v.WorkedIn(path, named)
			return err
		})
	})
	return other, why, err
}

// forget takes a worktree that somebody has deleted off git's list, where it would bar its
// branch for ever. Without force: git refuses if it is locked, or back with files in it.
func (g gitRunner) forget(branch, path string) (why string) {
	list, err := g.run("worktree", "list", "--porcelain")
	if err != nil {
		return gitWords(list, err)
	}
	if worktreeWith(list, branch) != path {
		return ""
	}
	if out, err := g.run("worktree", "remove", path); err != nil {
		return "it was deleted, and git does not take it off its list: " + gitWords(out, err)
	}
	return ""
}

// worktreeWith is the worktree that has a branch checked out, by git's list; "" if
// none has.
func worktreeWith(list, branch string) string {
	path := ""
	for line := range strings.SplitSeq(list, "\n") {
		if at, ok := strings.CutPrefix(line, "worktree "); ok {
			path = at
		}
		if line == "branch refs/heads/"+branch {
			return path
		}
	}
	return ""
}
