package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kanlog/projection"
	"kanlog/tick"
)

// putAside takes what is not committed out of a workspace, into a stash that names card
// and run. What could not be put aside holds the card and stays where it is.
func (w *world) putAside(g gitRunner, l tick.Launch, left *leftWork, comments []*projection.Comment) (said, hold string, err error) {
	if left.unsure != "" {
		return left.said(), left.held(l.Task.ID), nil
	}
	message := fmt.Sprintf("%s%d", stashOf(l.Task.ID), l.Run)
	var parts []string
	if len(left.files) > 0 {
		if why := g.stash(message); why != "" {
			return left.said(), fmt.Sprintf("what is not committed in %s could not be put aside: %s; commit it or remove it, then kanlog unblock %s", left.dir, why, l.Task.ID), nil
		}
		w.a.fail.hit("workspace.stashed")
		// git takes away a directory of which nothing is left.
		if err := os.MkdirAll(left.dir, 0o700); err != nil {
			return "", "", err
		}
		parts = append(parts, left.said(), fmt.Sprintf("It was put aside; git stash list has it as %q.", message))
		// A repository within it is not git's to stash, and nobody else's to move.
		if stays, _ := g.uncommitted(); len(stays) > 0 {
			rest := leftWork{files: stays}
			parts = append(parts, "This cannot be put aside and is still there:\n"+rest.list())
		}
	}
	parts = append(parts, g.forgotten(l.Task.ID, message, comments)...)
	return strings.Join(parts, "\n"), "", nil
}

// stashOf is what the messages of all stashes begin with that are made for a card.
func stashOf(id string) string { return "kanlog " + id + " before run " }

// stash puts everything that is not committed in the directory into a stash, and says
// why not, "" if it did.
func (g gitRunner) stash(message string) string {
	prefix, err := g.run("rev-parse", "--show-prefix")
	if err != nil {
		return gitWords(prefix, err)
	}
	// Another card's worktree may be putting something into the same list just now.
	args := []string{"-c", "core.hooksPath=/dev/null", "-c", "core.filesRefLockTimeout=10000",
		"stash", "push", "--include-untracked", "--message", message}
	// The rest of the tree is not this card's. Not where that says nothing: given a path,
	// git fails on a repository within it that has no commit yet.
	if prefix != "" || noEntry(filepath.Join(g.repo, ".worktrees")) == nil {
		args = append(args, "--", ".", notWorktrees)
	}
	out, err := g.run(args...)
	if err != nil {
		return gitWords(out, err)
	}
	return ""
}

// forgotten names the stashes made for a card of which no comment says anything: the
// start that made them was ended before it could.
func (g gitRunner) forgotten(id, own string, comments []*projection.Comment) (said []string) {
	out, err := g.run("stash", "list", "--max-count=20", "--format=%gs", "--fixed-strings", "--grep-reflog="+stashOf(id))
	if err != nil {
		return nil
	}
	known := func(message string) bool {
		for _, c := range comments {
			if strings.Contains(c.Text, fmt.Sprintf("%q", message)) {
				return true
			}
		}
		return message == own
	}
	for line := range strings.SplitSeq(out, "\n") {
		if _, run, ok := strings.Cut(line, stashOf(id)); ok && !known(stashOf(id)+run) {
			said = append(said, fmt.Sprintf("An earlier start had put aside what was not committed and was ended before it could say so; git stash list has it as %q.", stashOf(id)+run))
		}
	}
	return said
}
