package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"kanlog/eventlog"
	"kanlog/projection"
)

// freeBranch takes a branch out of the worktree of another card that has no worker:
// git has a branch in one worktree at a time. What is committed goes with the branch
// to the card that is about to start; what is not keeps it from starting. The other
// card's worktree is made again if it runs once more.
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
	var other *projection.Task
	err = g.begin(func() error {
		return w.store.View(func(v projection.View) (err error) {
			other, err = v.Task(id)
			return err
		})
	})
	if err != nil || other == nil {
		return err
	}
	refuse := func(why string) error {
		return fmt.Errorf("the branch %s is in the worktree of %s, which cannot be removed: %s (%s)", branch, id, why, path)
	}
	if n := other.Owner(); n != 0 {
		return refuse(fmt.Sprintf("run %d has not ended", n))
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
	why, err := tree.remove(tree.uncommitted)
	if err != nil {
		why = err.Error()
	}
	if why != "" {
		return refuse(why)
	}
	return nil
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
