package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWorktreeWith(t *testing.T) {
	t.Parallel()
	const list = "worktree /repo\nHEAD 1\nbranch refs/heads/main\n\nworktree /repo/.worktrees/t_1\nHEAD 2\nbranch refs/heads/wt/t_1\n\nworktree /repo/.worktrees/t_2\nHEAD 3\ndetached\n"
	for branch, want := range map[string]string{
		"main": "/repo", "wt/t_1": "/repo/.worktrees/t_1", "t_1": "", "wt": "", "wt/t_10": "", "": "",
	} {
		if got := worktreeWith(list, branch); got != want {
			t.Errorf("the worktree of %q is %q, want %q", branch, got, want)
		}
	}
}

// A worker's directories may be closed to their own owner; what links in them lead to
// is not touched.
func TestRemoveAll(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	outside := filepath.Join(top, "outside")
	closed := filepath.Join(top, "tree", "deep", "closed")
	for _, dir := range []string{outside, closed} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(outside, "precious"), filepath.Join(closed, "file")} {
		if err := os.WriteFile(file, nil, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(closed, "link")), os.Symlink("../../../outside", filepath.Join(closed, "up")),
		os.Chmod(outside, 0o500), os.Chmod(closed, 0o000), os.Chmod(filepath.Dir(closed), 0o500),
	); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(outside, 0o700) })
	dir, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := removeAll(dir, "tree"); err != nil {
		t.Errorf("removing: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(top, "tree")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree: %v", err)
	}
	st, err := os.Stat(outside)
	if err != nil || st.Mode().Perm() != 0o500 {
		t.Errorf("outside: %v %v", st, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
		t.Error(err)
	}
	if err := removeAll(dir, "../outside"); err == nil || errors.Is(err, syscall.ENOENT) {
		t.Errorf("a name outside of the root: %v", err)
	}
}

func TestUnescaped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/a": "/a", `/with\040blank`: "/with blank", `/tab\011`: "/tab\t", `/back\134slash`: `/back\slash`, `/short\04`: `/short\04`, `/no\999`: `/no\999`,
	} {
		if got := unescaped(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// What is printed of an output in which something is dropped.
func TestOutputSaysWhatIsDropped(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "1.log")
	const blank = 1 << 20
	head, tail := strings.Repeat("head\n", 200)+"cut he", "re it goes on\nlast\n"
	if err := os.WriteFile(path, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(tail), blank); err != nil {
		t.Fatal(err)
	}
	print := func(tail int64) string {
		t.Helper()
		var b strings.Builder
		o := output{f: f}
		if tail >= 0 {
			if err := o.seekTail(tail); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.copyTo(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	all := print(-1)
	if !strings.HasPrefix(all, head[:1000]) || strings.Count(all, "of output dropped here (output_limit) ...\n") != 1 {
		t.Errorf("%d bytes, begin %q", len(all), all[:min(len(all), 2000)])
	}
	if !strings.HasSuffix(all, "...\nlast\n") {
		t.Errorf("it ends with %q", all[max(0, len(all)-60):])
	}
	if len(all) > 5000 {
		t.Errorf("%d bytes: zeroes are printed", len(all))
	}
	for n, begin := range map[int64]string{int64(len(tail)): "last\n", 5: "last\n", 0: "", 100 << 10: "kanlog: ... "} {
		if got := print(n); !strings.HasPrefix(got, begin) || begin == "" && got != "" {
			t.Errorf("--tail %d: %q", n, got)
		}
	}
}
