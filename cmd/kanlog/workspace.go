package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"kanlog/projection"
)

// gitTimeout bounds each git call, so that a hung one fails one card only.
const gitTimeout = time.Minute

// prepareWorkspace makes the directory the worker runs in, or finds it made.
// Nothing is ever removed here.
func (w *world) prepareWorkspace(t *projection.Task, begin forker) (string, error) {
	switch t.WorkspaceKind {
	case projection.Dir:
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
		return worktree(t, begin)
	}
	dir := w.a.files().scratch(t.ID)
	return dir, os.MkdirAll(dir, 0o700)
}

// worktree returns the card's own worktree of a repository, making it and its
// branch if they are not there. Called again it finds them.
func worktree(t *projection.Task, begin forker) (string, error) {
	repo, own := t.WorkspacePath, "/.worktrees/"+t.ID
	// A run before this one wrote the worktree back as the card's path.
	repo = strings.TrimSuffix(repo, own)
	path := repo + own
	branch := t.Branch
	if branch == "" {
		branch = "wt/" + t.ID
	}
	if _, err := os.Stat(filepath.Join(path, ".git")); err == nil {
		return path, nil
	}
	if out, err := git(begin, repo, "rev-parse", "--git-dir"); err != nil {
		return "", fmt.Errorf("%s is not a git repository: %s", repo, out)
	}
	args := []string{"worktree", "add", path, branch}
	if _, err := git(begin, repo, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch); err != nil {
		args = []string{"worktree", "add", "-b", branch, path}
	}
	if out, err := git(begin, repo, args...); err != nil {
		return "", fmt.Errorf("git %s: %s", strings.Join(args, " "), out)
	}
	return path, nil
}

// forker is called around each fork, which must not fall into this process's
// use of the store: the child would inherit its locks until it execs.
type forker func(fork func() error) error

func git(begin forker, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := begin(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	return strings.TrimSpace(out.String()), err
}
