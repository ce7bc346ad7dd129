package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// gc removes what nobody needs any more of cards that are over: scratch workspaces,
// worktrees, and the outputs of runs. Cards, runs, exit records and the log stay.
//
// It can be killed anywhere: a thing is renamed first, in one step, while nothing
// can begin to use it, and deleted under its new name; the next gc goes on with that.
type gc struct {
	a      *app
	ctx    context.Context
	dryRun bool
	// begin is around each fork and each use of the store: in a process that does
	// other things too they must not fall together.
	begin forker
	rep   gcReport
	quiet map[string]eventlog.Time // when something happened to a card last
	named *projection.Named        // the directories that cards were given, once one asked
}

// gcReport is what a gc did, or with --dry-run would do.
type gcReport struct {
	DryRun  bool     `json:"dry_run"`
	Removed []gcItem `json:"removed"`
	Kept    []gcItem `json:"kept"`
	Failed  []gcItem `json:"failed"`
}

// size is what was removed, on the disk.
func (r *gcReport) size() (n int64) {
	for _, i := range r.Removed {
		n += i.Bytes
	}
	return n
}

// gcItem is one thing, and why it stays.
type gcItem struct {
	Kind   string `json:"kind"` // scratch, worktree or output
	Task   string `json:"task"`
	Run    any    `json:"run"` // of an output
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"` // what it takes on the disk, where that was looked at
	Reason any    `json:"reason"`
}

// The kinds of things.
const (
	gcScratch  = "scratch"
	gcWorktree = "worktree"
	gcOutput   = "output"
)

// goneEnding marks what is about to be deleted. No card's id holds a dot.
const goneEnding = ".gone"

// collect is one gc of the chosen board, as far as it comes until ctx is done. Beside
// another it is refused as busy.
func (a *app) collect(ctx context.Context, begin forker, dryRun bool) (*gcReport, error) {
	err := begin(func() error {
		_, err := a.newestCommit()
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := a.settings(); err != nil {
		return nil, err
	}
	l, err := eventlog.TryLock(a.files().gcLock())
	if errors.Is(err, eventlog.ErrBusy) {
		return nil, fmt.Errorf("board %s: another gc is at work: %w", a.slug, err)
	}
	unlock, err := a.inPlace(l, err)
	if err != nil {
		return nil, err
	}
	defer unlock()
	g := &gc{
		a: a, ctx: ctx, begin: begin, dryRun: dryRun, quiet: map[string]eventlog.Time{},
		rep: gcReport{DryRun: dryRun, Removed: []gcItem{}, Kept: []gcItem{}, Failed: []gcItem{}},
	}
	board, err := os.OpenRoot(a.boardDir)
	if err != nil {
		return nil, err
	}
	defer board.Close()
	if err := g.collectWorkspaces(board); err != nil {
		return &g.rep, err
	}
	return &g.rep, g.collectOutputs(board)
}

func (g *gc) view(fn func(projection.View) error) error {
	return g.begin(func() error { return g.a.view(fn) })
}

// inside opens a directory of the board, nil if it is not there. One that is a link
// leads somewhere else, and nothing is removed there.
func (g *gc) inside(board *os.Root, name string) (*os.Root, error) {
	st, err := board.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(g.a.boardDir, name)
	if !st.IsDir() {
		return nil, &refusedError{fmt.Sprintf("gc refused: %s is no directory of the board's own (%s); nothing is removed behind it", path, fileKind(st.Mode()))}
	}
	dir, err := board.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	// It may have been replaced between the two.
	if now, err := dir.Stat("."); err != nil || !os.SameFile(st, now) {
		dir.Close()
		return nil, fmt.Errorf("%s was replaced while it was opened", path)
	}
	return dir, nil
}

func fileKind(m fs.FileMode) string {
	if m&fs.ModeSymlink != 0 {
		return "a symbolic link"
	}
	return "mode " + m.String()
}

// collectWorkspaces goes through what is left in the board's directory of workspaces: the
// scratch ones, and a lock for each worktree that was ever made.
func (g *gc) collectWorkspaces(board *os.Root) error {
	ws, err := g.inside(board, "workspaces")
	if ws == nil || err != nil {
		return err
	}
	defer ws.Close()
	entries, err := fs.ReadDir(ws.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if id, gone := strings.CutSuffix(e.Name(), goneEnding); gone {
			// An earlier gc was ended here.
			g.delete(ws, id, gcItem{Kind: gcScratch, Task: id, Path: g.a.files().scratch(id)})
		}
	}
	for _, e := range entries {
		name := e.Name()
		if err := g.ctx.Err(); err != nil {
			return err
		}
		id, isLock := strings.CutSuffix(name, ".lock")
		if strings.HasSuffix(name, goneEnding) {
			continue
		}
		t, err := g.card(id)
		switch {
		case err != nil:
			return err
		case isLock && t != nil && t.WorkspaceKind == projection.Worktree:
			err = g.collectWorktree(t)
		case !isLock && t != nil && t.WorkspaceKind == projection.Scratch:
			err = g.collectScratch(ws, t, e)
		case !isLock:
			g.keep(gcItem{Kind: gcScratch, Task: id, Path: filepath.Join(g.a.boardDir, "workspaces", name)}, "it is no workspace of a card of this board; kanlog did not make it")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *gc) card(id string) (t *projection.Task, err error) {
	err = g.view(func(v projection.View) error {
		t, err = v.Task(id)
		return err
	})
	return t, err
}

// recent says why a card that is over is too young to be cleaned up after, "" if it
// is not. 0 is for ever.
func (g *gc) recent(id string, keep time.Duration, setting string) (string, error) {
	if keep == 0 {
		return fmt.Sprintf("%s is 0: it is kept for ever", setting), nil
	}
	at, known := g.quiet[id]
	if !known {
		store, err := g.a.board()
		if err != nil {
			return "", err
		}
		err = g.begin(func() (err error) {
			at, err = store.LastChange(id)
			return err
		})
		if err != nil {
			return "", err
		}
		g.quiet[id] = at
	}
	// A clock that went back makes everything young.
	if until := at.Add(keep); g.a.now < until {
		return fmt.Sprintf("%s is %s: until %s", setting, brief(keep), until.Std().Truncate(time.Second).Format(time.RFC3339)), nil
	}
	return "", nil
}

// settled says why the workspace of a card cannot be removed as far as the board
// and the settings go: it is not over, or somebody may still read it.
func (g *gc) settled(t *projection.Task, path string) (why string, err error) {
	var family []string
	err = g.view(func(v projection.View) error {
		family = append([]string{t.ID}, v.Children(t.ID)...)
		why, err = v.WorkspaceInUse(t, path)
		return err
	})
	for _, id := range family {
		if err == nil && why == "" {
			if why, err = g.recent(id, g.a.set.keepWorkspaces, "keep_workspaces"); why != "" && id != t.ID {
				why = "its child " + id + ": " + why
			}
		}
	}
	if err != nil || why != "" {
		return why, err
	}
	if err := g.collectNamed(); err != nil {
		return "", err
	}
	return g.needed(t.ID, path)
}

// collectNamed reads the directories that cards have named, for the first workspace that
// nothing else keeps.
func (g *gc) collectNamed() error {
	if g.named != nil {
		return nil
	}
	named := new(projection.Named)
	for more := true; more; {
		err := g.view(func(v projection.View) (err error) {
			more, err = named.Collect(v)
			return err
		})
		if err != nil {
			return err
		}
	}
	g.named = named
	return nil
}

// needed says why a workspace whose card is over is needed all the same, "" if it is not.
func (g *gc) needed(id, path string) (why string, err error) {
	err = g.view(func(v projection.View) (err error) {
		why, err = g.neededIn(v, id, path)
		return err
	})
	return why, err
}

// neededIn is needed in one transaction with what is done then.
func (g *gc) neededIn(v projection.View, id, path string) (string, error) {
	t, err := v.MustTask(id)
	if err != nil {
		return "", err
	}
	names := []string{path}
	// A worker that names where it is has it without links.
	if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		names = append(names, filepath.Join(parent, filepath.Base(path)))
	}
	if why, err := v.WorkspaceInUse(t, names...); why != "" || err != nil {
		return why, err
	}
	return g.named.Within(v, names...)
}

func (g *gc) keep(i gcItem, why string) {
	i.Reason = why
	g.rep.Kept = append(g.rep.Kept, i)
}

func (g *gc) fail(i gcItem, err error) {
	i.Reason = err.Error()
	g.rep.Failed = append(g.rep.Failed, i)
}

// collectScratch removes a card's own directory. Nothing but a directory that stands in
// the board's own is, and nothing behind a link or a mount.
func (g *gc) collectScratch(ws *os.Root, t *projection.Task, e fs.DirEntry) error {
	i := gcItem{Kind: gcScratch, Task: t.ID, Path: g.a.files().scratch(t.ID)}
	if !e.IsDir() {
		g.keep(i, fmt.Sprintf("it is no directory (%s); kanlog did not make it", fileKind(e.Type())))
		return nil
	}
	why, err := g.settled(t, i.Path)
	if err != nil {
		return err
	}
	if why == "" {
		why = mountedIn(i.Path)
	}
	if why != "" {
		g.keep(i, why)
		return nil
	}
	if g.dryRun {
		i.Bytes = allocatedIn(ws, t.ID)
		g.rep.Removed = append(g.rep.Removed, i)
		return nil
	}
	// In the transaction that says that nobody needs it: as long as it is open no
	// claim can be made, and a claim that comes later finds nothing and makes a new
	// one.
	var failed error
	err = g.view(func(v projection.View) error {
		if why, err = g.neededIn(v, t.ID, i.Path); err != nil || why != "" {
			return err
		}
		failed = ws.Rename(t.ID, t.ID+goneEnding)
		return nil
	})
	switch {
	case err != nil:
		return err
	case why != "":
		g.keep(i, why)
	case failed != nil:
		g.fail(i, failed)
	default:
		g.a.fail.hit("gc.renamed")
		g.delete(ws, t.ID, i)
	}
	return nil
}

// delete removes a workspace that was renamed.
func (g *gc) delete(ws *os.Root, id string, i gcItem) {
	name := id + goneEnding
	i.Bytes = allocatedIn(ws, name)
	if why := mountedIn(i.Path + goneEnding); why != "" {
		g.keep(i, why)
		return
	}
	if !g.dryRun {
		if err := removeAll(ws, name); err != nil {
			g.fail(i, err)
			return
		}
	}
	g.rep.Removed = append(g.rep.Removed, i)
}

// removeAll removes a tree, also one whose directories may not be written in, as
// caches of packages are. It follows no link.
func removeAll(dir *os.Root, name string) error {
	err := dir.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = fs.WalkDir(dir.FS(), name, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = dir.Chmod(path, 0o700) // before it is read; what fails here fails again below
		}
		return nil
	})
	return dir.RemoveAll(name)
}

// allocatedIn is what a tree takes on the disk, as far as it may be read.
func allocatedIn(dir *os.Root, name string) (size int64) {
	_ = fs.WalkDir(dir.FS(), name, func(_ string, e fs.DirEntry, err error) error {
		if err == nil {
			if info, err := e.Info(); err == nil {
				size += allocated(info)
			}
		}
		return nil
	})
	return size
}
