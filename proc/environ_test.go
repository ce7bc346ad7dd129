package proc

import (
	"errors"
	"io"
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
		"KANLOG_CONTEXT=/c", "KANLOG_FAILPOINT=x", "KANLOG_DEADLINE=d", "KANLOG_SECONDS_LEFT=1", "KANLOG_SPARE=1", "KANLOG_HOME=/h", "KANLOG_TASKS=2", "X=KANLOG_RUN=1", "KANLOG_RUN"}
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

func TestWithDeadline(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 15, 0, 0, 123000, time.FixedZone("", 3600))
	env := []string{"PATH=/bin"}
	if got := withDeadline(env, time.Time{}, now); !slices.Equal(got, env) {
		t.Errorf("without a limit: %q", got)
	}
	for after, left := range map[time.Duration]string{
		2 * time.Second: "2", 2*time.Second - time.Microsecond: "1", time.Second - 1: "0", 0: "0", -time.Hour: "0",
	} {
		until := now.Add(after)
		want := []string{"PATH=/bin", "KANLOG_DEADLINE=" + until.UTC().Format("2006-01-02T15:04:05.000000Z"), "KANLOG_SECONDS_LEFT=" + left}
		if got := withDeadline(env, until, now); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", after, got, want)
		}
	}
}

func TestSaid(t *testing.T) {
	t.Parallel()
	code := 3
	head := header("t_1", 12, time.Now(), 77, []string{"sh"})
	tail := trailer(Record{Run: 12, Cause: CauseExited, ExitCode: &code, Ended: "2026-11-29T14:00:00.000123Z"})
	failed := trailer(Record{Run: 12, Cause: CauseStartFailed, Error: strings.Repeat("\x1b", 5000)})
	longest := header(strings.Repeat("\x1b", 5000), 1<<64-1, time.Now(), 1<<31, []string{strings.Repeat("\x1b", 5000)})
	if n := max(len(longest), len(failed)+18); n > maxOwnLine {
		t.Errorf("a line of ours has %d bytes, and %d are looked at", n, maxOwnLine)
	}
	long := strings.Repeat("x", 3*maxOwnLine)
	for _, tt := range []struct{ output, want string }{
		{"", ""},
		{head, ""},
		{head + tail, ""},
		{head + failed, ""},
		{head + "boom\n" + tail, "boom\n"},
		{head + "boom\n", "boom\n"},
		{head + "boom", "boom"},
		{head + long + "\n" + tail, long + "\n"},
		{head + "a\n" + long, "a\n" + long},
		{long, long},
		// What looks like ours and is the worker's.
		{head + head + "boom\n" + tail + tail, head + "boom\n" + tail},
		{head + tail + "late\n", tail + "late\n"},
		{head + "> " + tail, "> " + tail},
		{head + strings.TrimSuffix(tail, "\n"), strings.TrimSuffix(tail, "\n")},
		{strings.TrimSuffix(head, "\n"), strings.TrimSuffix(head, "\n")},
		{strings.ReplaceAll(head+"boom\n"+tail, "run 12", "run 1"), strings.ReplaceAll(head+"boom\n"+tail, "run 12", "run 1")},
		{"kanlog supervise: no\n", "kanlog supervise: no\n"},
	} {
		got, err := io.ReadAll(Said(strings.NewReader(tt.output), int64(len(tt.output)), 12))
		if err != nil || string(got) != tt.want {
			t.Errorf("%.200q\ngot  %.200q %v\nwant %.200q", tt.output, got, err, tt.want)
		}
	}
	// What was added since its size was taken is not looked at.
	if got, _ := io.ReadAll(Said(strings.NewReader(head+"one\ntwo\n"), int64(len(head)+4), 12)); string(got) != "one\n" {
		t.Errorf("got %q", got)
	}
}
