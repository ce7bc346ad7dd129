package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
	"kanlog/tick"
)

// gitTimeout bounds each git call, so that a hung one fails one card only.
const gitTimeout = time.Minute

// prepareWorkspace makes the directory the worker runs in, or finds it made.
// Nothing that a worker may have touched is ever removed here.
func (w *world) prepareWorkspace(t *projection.Task, begin forker) (string, error) {
	switch t.WorkspaceKind {
	case projection.Dir, projection.Shared:
		fi, err := os.Stat(t.WorkspacePath)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return t.WorkspacePath, os.MkdirAll(t.WorkspacePath, 0o700)
		case err != nil:
			return "", err
		case !fi.IsDir():
			return "", fmt.Errorf("%s is not a directory", t.WorkspacePath)
		}
		return t.WorkspacePath, nil
	case projection.Worktree:
		return w.worktree(t, begin)
	case projection.Scratch:
		dir := w.a.workspaceOf(t)
		return dir, os.MkdirAll(dir, 0o700)
	}
	// A worker must not find an empty directory in place of what was meant.
	return "", fmt.Errorf("this kanlog knows no workspace of the kind %q", t.WorkspaceKind)
}

// workspaceOf is where the worker of a card runs, made or not.
func (a *app) workspaceOf(t *projection.Task) string {
	switch t.WorkspaceKind {
	case projection.Dir, projection.Shared:
		return t.WorkspacePath
	case projection.Worktree:
		_, path, _ := t.Worktree()
		return path
	}
	return a.files().scratch(t.ID)
}

// worktree returns the card's own worktree of a repository, making it and its
// branch if they are not there. Called again it finds them.
//
// The making is under a lock that git and everything it starts inherit. A
// dispatcher that is killed meanwhile leaves a git behind that goes on checking
// out; no worker may start beside it, and the next preparation waits for it.
func (w *world) worktree(t *projection.Task, begin forker) (string, error) {
	repo, path, branch := t.Worktree()
	if err := os.MkdirAll(filepath.Dir(w.a.files().scratch(t.ID)), 0o700); err != nil {
		return "", err
	}
	lock, err := w.lockWorktree(t.ID)
	if err != nil {
		// Slow, but not through any fault of the card.
		return "", fmt.Errorf("%w: an earlier git is still at work on %s: %w", tick.ErrInfrastructure, path, err)
	}
	defer lock.Unlock()
	g := gitRunner{begin: begin, repo: repo, lock: lock.File()}
	if out, err := g.run("rev-parse", "--git-common-dir"); err != nil {
		return "", fmt.Errorf("%s is not a git repository: %s", repo, gitSays(out, err))
	}
	if noEntry(path) != nil {
		_ = os.Rename(path+leavingEnding, path) // a gc was ended before it had removed anything
	}
	if _, err := os.Stat(filepath.Join(path, ".git")); err == nil {
		if finished(lock.File()) || !unfinished(path) {
			return path, nil
		}
		// Nothing but git has been in it: what is there can be made anew.
		if out, err := g.run("worktree", "remove", "--force", "--force", path); err != nil {
			return "", fmt.Errorf("an unfinished worktree cannot be removed: %s", gitSays(out, err))
		}
	} else if os.Remove(path) == nil || errors.Is(noEntry(path), os.ErrNotExist) {
		// Somebody deleted it, or git was killed before it had begun: where git
		// still has it on its list, it would refuse to make it again.
		_, _ = g.run("worktree", "remove", "--force", "--force", path)
	}
	if err := lock.File().Truncate(0); err != nil {
		return "", err
	}
	if err := w.freeBranch(g, t, branch); err != nil {
		return "", err
	}
	args := []string{"worktree", "add", path, branch}
	if _, err := g.run("rev-parse", "--verify", "--quiet", "refs/heads/"+branch); err != nil {
		args = []string{"worktree", "add", "-b", branch, path}
	}
	if out, err := g.run(args...); err != nil {
		return "", fmt.Errorf("git %s: %s", strings.Join(args, " "), gitSays(out, err))
	}
	if _, err := lock.File().WriteAt([]byte(worktreeFinished), 0); err != nil {
		return "", err
	}
	return path, nil
}

// lockWorktree takes the lock of a card's worktree. A gc that had it before may have
// removed it together with the worktree: then it is another file by now.
func (w *world) lockWorktree(id string) (*eventlog.Lock, error) {
	return eventlog.LockInPlace(func() (*eventlog.Lock, error) {
		return eventlog.LockWait(w.a.files().worktreeLock(id), gitTimeout)
	})
}

// worktreeFinished stands in the lock file of a worktree that git has finished.
// From then on a worker may have been in it, and it is never removed.
const worktreeFinished = "finished\n"

func finished(lock *os.File) bool {
	said := make([]byte, len(worktreeFinished))
	n, _ := lock.ReadAt(said, 0)
	return string(said[:n]) == worktreeFinished
}

// unfinished tells whether git itself says that it has not finished a worktree.
// It says so in the directory that the worktree names: git picks another name
// for that than ours if there is something left under ours.
func unfinished(path string) bool {
	text, err := os.ReadFile(filepath.Join(path, ".git"))
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if err != nil || !ok {
		return false
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(path, dir)
	}
	why, err := os.ReadFile(filepath.Join(dir, "locked"))
	return err == nil && strings.TrimSpace(string(why)) == "initializing"
}

func noEntry(path string) error {
	_, err := os.Lstat(path)
	return err
}

// gitSays is what git gave as its reason: it comes last, after what it did.
func gitSays(out string, err error) string {
	lines := strings.Split(out, "\n")
	last := lines[len(lines)-1]
	for _, line := range lines {
		if strings.HasPrefix(line, "fatal: ") || strings.HasPrefix(line, "error: ") {
			last = line
			break
		}
	}
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.Exited() && last != "" {
		return last
	}
	return strings.TrimSpace(last + " (" + err.Error() + ")")
}

// gitRunner runs git in one repository.
type gitRunner struct {
	begin forker
	repo  string
	lock  *os.File // inherited by every git and what it starts, or nil
	also  *os.File // another one, or nil
}

// forker is called around each fork, which must not fall into this process's
// use of the store: the child would inherit its locks until it execs.
type forker func(fork func() error) error

func (g gitRunner) run(args ...string) (string, error) {
	out, err := g.raw(args...)
	return strings.TrimSpace(out), err
}

// raw is run with every blank that git wrote.
func (g gitRunner) raw(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	// No daemon of git's may be started here: it would keep the lock for good.
	args = append([]string{"-C", g.repo, "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.WaitDelay = time.Second
	// Not in the user's language: what git writes into a worktree's lock file is
	// a message to it, and we look for that one.
	cmd.Env = append(gitEnviron(os.Environ()), "LANGUAGE=C")
	for _, lock := range []*os.File{g.lock, g.also} {
		if lock != nil {
			cmd.ExtraFiles = append(cmd.ExtraFiles, lock)
		}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := g.begin(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	return out.String(), err
}

// gitEnviron drops what names a repository: in a hook of git's these are set, and
// would win over the repository that is meant.
func gitEnviron(env []string) []string {
	return slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX":
			return true
		}
		return false
	})
}
