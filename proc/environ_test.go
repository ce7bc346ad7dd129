package proc

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCleanEnv(t *testing.T) {
	t.Parallel()
	env := []string{"PATH=/bin", "KANLOG_TASK=t_1", "KANLOG_RUN=1", "KANLOG_TOKEN=b/1", "KANLOG_WORKSPACE=/w",
		"KANLOG_CONTEXT=/c", "KANLOG_FAILPOINT=x", "KANLOG_HOME=/h", "KANLOG_TASKS=2", "X=KANLOG_RUN=1", "KANLOG_RUN"}
	before := slices.Clone(env)
	if got, want := CleanEnv(env), []string{"PATH=/bin", "KANLOG_HOME=/h", "KANLOG_TASKS=2", "X=KANLOG_RUN=1"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if !slices.Equal(env, before) {
		t.Error("the caller's slice was changed")
	}
}

func TestLookUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a/tool", "b/tool", "a/plain", "a/folder/x"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o700)
		if strings.HasSuffix(name, "plain") {
			mode = 0o600
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	tests := []struct {
		name, path, want string
		err              error
	}{
		{"tool", a + ":" + b, filepath.Join(a, "tool"), nil},
		{"tool", filepath.Join(dir, "none") + ":" + b + ":" + a, filepath.Join(b, "tool"), nil},
		{"tool", "b", filepath.Join(b, "tool"), nil}, // relative to the workspace
		{"./tool", "", "./tool", nil},
		{"/x/tool", a, "/x/tool", nil},
		{"plain", a, "", syscall.EACCES},
		{"folder", a, "", syscall.ENOENT},
		{"none", a, "", syscall.ENOENT},
		{"", a, "", os.ErrNotExist},
	}
	for _, tt := range tests {
		got, err := lookUp(tt.name, dir, []string{"PATH=/nowhere", "PATH=" + tt.path})
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%q in %q: %q %v", tt.name, tt.path, got, err)
		}
	}
	if got, err := lookUp("sh", dir, nil); err != nil || !strings.HasSuffix(got, "/sh") {
		t.Errorf("without a PATH: %q %v", got, err)
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 15, 0, 0, 123000, time.FixedZone("", 3600))
	got := header("t_ab12cd34", 12, at, 123, []string{"./agent.sh", "a b", "", "\x1b[0m\n", "é\u202e", "it's \"x\""})
	want := "kanlog: run 12 of t_ab12cd34 started 2026-11-29T14:00:00Z pid 123: " +
		`./agent.sh "a b" "" "\x1b[0m\n" "é\u202e" "it's \"x\""` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	long := header("t", 1, at, 1, []string{strings.Repeat("é", 5000), "b"})
	if len(long) > maxHeaderArgs+100 || strings.ContainsRune(long, '\ufffd') || strings.Count(long, "\n") != 1 {
		t.Errorf("long header of %d bytes: %.80q", len(long), long)
	}
	if got := plainText("a\nb \"c\"\t\x00", 100); got != `a\nb "c"\t\x00` {
		t.Errorf("plain text %q", got)
	}
	if got := stamp(at); got != "2026-11-29T14:00:00.000123Z" {
		t.Errorf("stamp %s", got)
	}
}
