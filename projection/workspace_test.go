package projection

import (
	"fmt"
	"testing"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	card := func(id, kind, path, branch string) *Task {
		return &Task{ID: id, WorkspaceKind: kind, WorkspacePath: path, Branch: branch}
	}
	tests := []struct {
		name string
		a, b *Task
		same bool
	}{
		{"one branch", card("t_1", Worktree, "/repo", "b"), card("t_2", Worktree, "/repo", "b"), true},
		{"after a run wrote its path back", card("t_1", Worktree, "/repo/.worktrees/t_1", "b"), card("t_2", Worktree, "/repo", "b"), true},
		{"another spelling", card("t_1", Worktree, "/repo/", "b"), card("t_2", Worktree, "/x/../repo", "b"), true},
		{"the branch that one has by default", card("t_1", Worktree, "/repo", ""), card("t_2", Worktree, "/repo", "wt/t_1"), true},
		{"branches of their own", card("t_1", Worktree, "/repo", ""), card("t_2", Worktree, "/repo", ""), false},
		{"two branches", card("t_1", Worktree, "/repo", "a"), card("t_2", Worktree, "/repo", "b"), false},
		{"two repositories", card("t_1", Worktree, "/repo", "b"), card("t_2", Worktree, "/other", "b"), false},
		{"a directory is no branch", card("t_1", Worktree, "/repo", "b"), card("t_2", Dir, "/repo", ""), false},
		{"one directory", card("t_1", Dir, "/d", ""), card("t_2", Dir, "/d/../d/", ""), true},
		{"two directories", card("t_1", Dir, "/d", ""), card("t_2", Dir, "/e", ""), false},
		{"a directory in another", card("t_1", Dir, "/d", ""), card("t_2", Dir, "/d/e", ""), false},
		{"a directory that both share", card("t_1", Shared, "/d", ""), card("t_2", Shared, "/d/", ""), false},
		{"a directory that one of them shares", card("t_1", Shared, "/d", ""), card("t_2", Dir, "/d", ""), true},
		{"directories of their own", card("t_1", Scratch, "", ""), card("t_2", Scratch, "", ""), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := tt.a.Place(), tt.b.Place()
			if a.Bars(b) != tt.same || b.Bars(a) != tt.same {
				t.Errorf("%+v bars %+v: %v, and the other way round: %v; want %v", a, b, a.Bars(b), b.Bars(a), tt.same)
			}
		})
	}
	repo, path, branch := card("t_1", Worktree, "/", "").Worktree()
	if repo != "/" || path != "/.worktrees/t_1" || branch != "wt/t_1" {
		t.Errorf("worktree of the root: %q %q %q", repo, path, branch)
	}
}

// What is still needed, and by whom.
func TestWorkspaceInUse(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	b.create("parent")
	b.create("child", func(d *Draft) { d.Parents = []string{b.id("parent")} })
	const path = "/boards/b/workspaces/parent"
	check := func(want string) {
		t.Helper()
		err := b.s.View(func(v View) error {
			got, err := v.WorkspaceInUse(b.task("parent"), path)
			equal(t, "in use", got, want)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	check("the card is ready")
	run := b.start("parent")
	check(fmt.Sprintf("run %d has not ended", run))
	b.must(Complete(b.id("parent"), Answer{Summary: "done"}, Writer{Card: b.id("parent"), Run: run}))
	check(fmt.Sprintf("run %d has not ended", run))
	b.must(BookEnd(Ending{Run: run}, b.limits))
	check("its child " + b.id("child") + " is ready and may read it")
	b.must(Archive(b.id("child"), 0, "", "", Writer{}))
	check("")
	b.create("inside", func(d *Draft) { d.WorkspaceKind, d.WorkspacePath = Dir, path+"/repo" })
	inside := b.claim("inside")
	r := b.registration("inside", inside)
	r.Workspace = path + "/repo"
	b.must(Register(r))
	check(fmt.Sprintf("run %d of %s works in it", inside, b.id("inside")))
}

// Which directories wait for somebody, as the board changes.
func TestNamed(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	in := func(kind, path string) func(*Draft) {
		return func(d *Draft) { d.WorkspaceKind, d.WorkspacePath = kind, path }
	}
	n := new(Named)
	for i := range cardBatch {
		b.create(fmt.Sprint("other ", i))
	}
	b.create("dir", in(Dir, "/w/x/../a/sub/"))
	b.create("tree", in(Worktree, "/w/a/tree"))
	check := func(dir, want string) {
		t.Helper()
		err := b.s.View(func(v View) error {
			got, err := n.Within(v, "/none", dir)
			if want != "" {
				want = b.id(want) + " is " + b.task(want).Status + " and names it as its workspace"
			}
			equal(t, "named "+dir, got, want)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for batch, more := 1, true; more; batch++ {
		err := b.s.View(func(v View) (err error) {
			more, err = n.Collect(v)
			return err
		})
		if err != nil || more != (batch == 1) {
			t.Fatalf("batch %d: more %v, %v", batch, more, err)
		}
		if batch == 1 {
			// Before what was read, and of a card that was.
			b.create("urgent", in(Shared, "/w/urgent"), func(d *Draft) { d.Priority = 9 })
		}
	}
	check("/w/a", "dir")
	check("/w/a/sub", "dir")
	check("/w/a/su", "")
	check("/w/a/sub/deep", "")
	check("/w/a/tree", "")
	check("/w/urgent", "urgent")
	b.must(Archive(b.id("dir"), 0, "", "", Writer{}))
	check("/w/a", "")
	b.create("later", in(Dir, "/w/a"))
	check("/w/a", "later")
	run := b.start("later")
	b.must(Complete(b.id("later"), Answer{}, b.worker("later", run)))
	b.must(BookEnd(Ending{Run: run}, b.limits))
	check("/w/a", "")
	b.must(Reopen(b.id("later"), "again", Writer{}))
	check("/w/a", "later")
}

// Who works beside a card: in its directory, around it or within it, wherever he was
// sent from.
func TestBeside(t *testing.T) {
	t.Parallel()
	const scratch = "/boards/b/workspaces/own"
	b := newBoard(t)
	in := func(kind, path string) func(*Draft) {
		return func(d *Draft) { d.WorkspaceKind, d.WorkspacePath = kind, path }
	}
	at := func(title, workspace string) {
		r := b.registration(title, b.claim(title))
		r.Workspace = workspace
		b.must(Register(r))
	}
	b.create("asks", in(Dir, "/d"))
	b.create("tree", in(Worktree, "/repo"))
	tree := "/repo/.worktrees/" + b.id("tree")
	check := func(path, want string) {
		t.Helper()
		err := b.s.View(func(v View) error {
			got, err := v.Beside(b.id("asks"), path)
			if want != "" {
				want = fmt.Sprintf("run %d of %s", b.task(want).Owner(), b.id(want))
			}
			equal(t, "beside "+path, got, want)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	check(tree, "")
	b.claim("tree")
	check(tree, "tree") // it is about to start there
	check(tree+"/sub/", "tree")
	check(tree+"2", "")
	check("/repo", "") // the worktree's files are not the repository's
	check("/", "")
	b.create("own")
	at("own", scratch)
	check(scratch+"/sub", "own")
	check("/boards", "own")
	b.create("common", in(Shared, "/common/x/../d"))
	at("common", "/common/x/../d")
	check("/common/d", "common")
	check("/common/e", "")
	b.create("around", in(Dir, "/repo"))
	at("around", "/repo")
	check("/repo/.worktrees/t_other", "around")
	b.claim("asks")
	check("/d", "") // its own run
}
