package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kanlog/eventlog"
	"kanlog/projection"
)

// leavingEnding marks a worktree that is looked at for the last time before it is
// deleted: at its own place somebody may still have written into it. What stands
// under this name was not deleted from, and is put back if gc was ended here.
const leavingEnding = ".leaving"

// collectWorktree removes a card's worktree if nothing in it could be lost: it is clean and
// what was committed in it is merged or pushed. The branch stays.
//
// All of it is under the lock under which worktrees are made. A run that is claimed
// meanwhile waits there, and makes the worktree anew from its branch.
func (g *gc) collectWorktree(t *projection.Task) error {
	repo, path, branch := t.Worktree()
	i := gcItem{Kind: gcWorktree, Task: t.ID, Path: path}
	lock, err := eventlog.TryLock(g.a.files().worktreeLock(t.ID))
	if errors.Is(err, eventlog.ErrBusy) {
		g.keep(i, "git is at work on it")
		return nil
	}
	if err != nil {
		g.fail(i, err)
		return nil
	}
	defer lock.Unlock()
	why, err := g.settled(t, path)
	if err != nil {
		return err
	}
	if why != "" {
		g.keep(i, why)
		return nil
	}
	if err := noEntry(repo); err != nil {
		// Its disk may be away.
		g.keep(i, err.Error())
		return nil
	}
	w := worktreeTree{git: gitRunner{begin: g.begin, repo: repo, lock: lock.File()}, path: path, lock: lock.File(), dryRun: g.dryRun, hit: g.a.fail.hit}
	why, err = w.remove(func() (string, error) {
		// Again when it is out of its place: whoever was sent there before is seen now.
		if why, err := g.needed(t.ID, path); why != "" || err != nil {
			return why, err
		}
		return w.unsafe(repo, branch)
	})
	i.Bytes = w.bytes
	switch {
	case err != nil:
		g.fail(i, err)
		return nil
	case why != "":
		g.keep(i, why)
		return nil
	}
	if !g.dryRun {
		// Who waits for this lock has another file then, and says so.
		if err := os.Remove(lock.File().Name()); err != nil {
			g.fail(i, err)
			return nil
		}
	}
	if i.Bytes > 0 { // else somebody had deleted it, and nothing was left but its lock
		g.rep.Removed = append(g.rep.Removed, i)
	}
	return nil
}

// worktreeTree is a worktree while it is looked at and taken away.
type worktreeTree struct {
	git    gitRunner // of the repository
	path   string
	admin  string   // git's own directory for it
	lock   *os.File // of the worktree, see worktreeFinished
	dryRun bool
	// ignored: what git is told to ignore counts as something that would be lost.
	ignored bool
	hit     func(point string) // for tests that end the process there
	bytes   int64              // what it took on the disk
}

// remove takes a worktree away unless unsafe says why not.
func (w *worktreeTree) remove(unsafe func() (string, error)) (why string, err error) {
	parent, name := filepath.Split(w.path)
	st, err := os.Lstat(parent[:len(parent)-1])
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !st.IsDir() {
		return fmt.Sprintf("%s is no directory (%s)", parent, fileKind(st.Mode())), nil
	}
	dir, err := os.OpenRoot(parent)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if !w.dryRun {
		if err := w.goOn(dir, name); err != nil {
			return "", err
		}
	}
	st, err = dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // somebody deleted it; git's list is theirs too
	}
	if err != nil {
		return "", err
	}
	if !st.IsDir() {
		return fmt.Sprintf("it is no directory (%s)", fileKind(st.Mode())), nil
	}
	if why := mountedIn(w.path); why != "" {
		return why, nil
	}
	if why := w.findAdmin(); why != "" {
		return why, nil
	}
	if !finished(w.lock) && unfinished(w.path) {
		unsafe = func() (string, error) { return "", nil } // nothing but git has been in it
	}
	if why, err := unsafe(); why != "" || err != nil {
		return why, err
	}
	w.bytes = allocatedIn(dir, name)
	if w.dryRun {
		return "", nil
	}
	if err := dir.Rename(name, name+leavingEnding); err != nil {
		return "", err
	}
	w.hit("gc.leaving")
	w.path += leavingEnding
	why, err = unsafe()
	w.path = strings.TrimSuffix(w.path, leavingEnding)
	if why != "" || err != nil {
		return why, errors.Join(err, dir.Rename(name+leavingEnding, name))
	}
	if err := dir.Rename(name+leavingEnding, name+goneEnding); err != nil {
		return "", err
	}
	w.hit("gc.renamed")
	return "", w.goOn(dir, name)
}

// findAdmin looks up git's own directory for the worktree. It must be one of those
// that the repository keeps for its worktrees: a directory that git does not know
// belongs to the repository around it, and a clone in its place has a history of its
// own.
func (w *worktreeTree) findAdmin() (why string) {
	admin, err := w.git.in(w.path).run("rev-parse", "--absolute-git-dir")
	if err != nil {
		return "git does not know it: " + gitSays(admin, err)
	}
	common, err := w.git.run("rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return "its repository cannot be read: " + gitSays(common, err)
	}
	if real, err := filepath.EvalSymlinks(common); err == nil {
		common = real
	}
	if filepath.Dir(admin) != filepath.Join(common, "worktrees") {
		return "it is no worktree of " + w.git.repo + " (what git keeps of it is in " + admin + ")"
	}
	w.admin = admin
	return ""
}

// goOn ends what a gc before this one had begun.
func (w *worktreeTree) goOn(dir *os.Root, name string) error {
	back := func() error {
		if _, err := dir.Lstat(name + leavingEnding); err != nil {
			return nil
		}
		if _, err := dir.Lstat(name); err == nil {
			return fmt.Errorf("%s%s was put aside and cannot be put back: there is another", w.path, leavingEnding)
		}
		return dir.Rename(name+leavingEnding, name)
	}
	if err := back(); err != nil {
		return err
	}
	if _, err := dir.Lstat(name + goneEnding); err != nil {
		return nil
	}
	if why := mountedIn(w.path + goneEnding); why != "" {
		return errors.New(why)
	}
	if _, err := dir.Lstat(name); err != nil {
		// Off git's list, where it may not be any more.
		_, _ = w.git.run("worktree", "remove", "--force", "--force", w.path)
	}
	w.bytes = max(w.bytes, allocatedIn(dir, name+goneEnding))
	return removeAll(dir, name+goneEnding)
}

// unfinishedWork are what git keeps in a worktree's directory while something that
// people come back to is going on.
var unfinishedWork = map[string]string{
	"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "BISECT_LOG": "a bisect",
	"rebase-merge": "a rebase", "rebase-apply": "a rebase or git am", "sequencer": "a sequence of picks",
}

// uncommitted says what would be lost with the files, "" for nothing. What git is
// told to ignore counts only if that is said. Stashes are the repository's and stay.
func (w *worktreeTree) uncommitted() (why string, err error) {
	for name, what := range unfinishedWork {
		if noEntry(filepath.Join(w.admin, name)) == nil {
			return what + " is not finished in it", nil
		}
	}
	if text, err := os.ReadFile(filepath.Join(w.admin, "locked")); err == nil {
		return strings.TrimSpace("git has it locked: " + string(text)), nil
	}
	// The user's settings may hide files.
	args := []string{"status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none"}
	if w.ignored {
		args = append(args, "--ignored")
	}
	out, err := w.here(args...)
	if err != nil {
		return "git cannot say whether it is clean: " + gitSays(out, err), nil
	}
	if out != "" {
		lines := strings.Split(out, "\n")
		return fmt.Sprintf("%s not committed: %s", plural(len(lines), "file is", "files are"), some(lines, 3)), nil
	}
	if why := w.nested(); why != "" {
		return why, nil
	}
	out, err = w.here("ls-files", "-v")
	if err != nil {
		return "git cannot say what it does not look at: " + gitSays(out, err), nil
	}
	for line := range strings.SplitSeq(out, "\n") {
		mark, file, _ := strings.Cut(line, " ")
		hidden := mark == "S" || mark != strings.ToUpper(mark)
		if hidden && noEntry(filepath.Join(w.path, file)) == nil {
			return "git was told not to look at " + file + " (assume-unchanged or skip-worktree)", nil
		}
	}
	return "", nil
}

// nested says that a repository of its own is in the worktree, a submodule or a clone
// that git ignores: nobody has asked what is in that.
func (w *worktreeTree) nested() (why string) {
	if noEntry(filepath.Join(w.admin, "modules")) == nil {
		return "it has submodules"
	}
	_ = filepath.WalkDir(w.path, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			why = "it cannot be looked through: " + err.Error()
		case e.Name() == ".git" && filepath.Dir(path) != w.path:
			why = "a repository of its own is in it: " + filepath.Dir(path)
		}
		if why != "" {
			return fs.SkipAll
		}
		return nil
	})
	return why
}

// unsafe says what would be lost with a worktree, "" for nothing: files, or commits
// that are neither pushed nor in what the repository itself has checked out.
func (w *worktreeTree) unsafe(repo, branch string) (why string, err error) {
	if why, err := w.uncommitted(); why != "" || err != nil {
		return why, err
	}
	heads := [][2]string{{"HEAD", "what it has checked out"}}
	if _, err := w.git.run("rev-parse", "--verify", "--quiet", "refs/heads/"+branch); err == nil {
		heads = slices.Insert(heads, 0, [2]string{"refs/heads/" + branch, "the branch " + branch})
	}
	for _, h := range heads {
		ref, name := h[0], h[1]
		commit, err := w.here("rev-parse", "--verify", ref+"^{commit}")
		if err != nil {
			return "it has no commit: " + gitSays(commit, err), nil
		}
		if _, err := w.git.run("merge-base", "--is-ancestor", commit, "HEAD"); err == nil {
			continue
		}
		pushed, err := w.git.run("for-each-ref", "--count=1", "--format=%(refname)", "--contains", commit, "refs/remotes")
		if err != nil {
			return "git cannot say what was pushed: " + gitSays(pushed, err), nil
		}
		if pushed == "" {
			return fmt.Sprintf("%s (%.10s) is neither pushed nor merged into what %s has checked out", name, commit, repo), nil
		}
	}
	return "", nil
}

// here runs git on the files of the worktree, wherever they are now. Its directory
// is named: if git looks for it itself it also writes down where it was found.
func (w *worktreeTree) here(args ...string) (string, error) {
	return w.git.in(w.path).run(slices.Concat([]string{"--no-optional-locks", "--git-dir=" + w.admin, "--work-tree=" + w.path}, args)...)
}

// in is the same git in another directory.
func (g gitRunner) in(dir string) gitRunner {
	g.repo = dir
	return g
}
