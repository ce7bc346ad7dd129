package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
	"kanlog/tick"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"{task}": "t_1", "{title}": "two words; $(rm -rf /)", "{context}": ""}
	argv := []string{"agent", "{task}", "--title", "{title}", "{context}", "x{task}", "{task}{run}", "{nothing}", "{title} "}
	want := []string{"agent", "t_1", "--title", "two words; $(rm -rf /)", "", "x{task}", "{task}{run}", "{nothing}", "{title} "}
	if got := expand(argv, values); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	// What came in is not expanded again, and the profile is as it was.
	if got := expand([]string{"{a}"}, map[string]string{"{a}": "{b}", "{b}": "no"}); got[0] != "{b}" {
		t.Errorf("expanded twice: %q", got)
	}
	if argv[1] != "{task}" {
		t.Error("the profile's own command was changed")
	}
}

func TestInherits(t *testing.T) {
	all := tick.Profile{}
	some := tick.Profile{PassEnvSet: true, PassEnv: []string{"PATH", "GITHUB_TOKEN"}}
	none := tick.Profile{PassEnvSet: true}
	for _, c := range []struct {
		name               string
		all, some, nothing bool
	}{
		{"PATH", true, true, false},
		{"HOME", true, false, false},
		{"Path", true, false, false},
		{"KANLOG_HOME", true, true, true},
		{"GITHUB_TOKEN", false, true, false},
		{"OPENAI_API_KEY", false, false, false},
		{"aws_secret_access_key", false, false, false},
		{"DB_PASSWORD", false, false, false},
		{"GPG_PASSPHRASE", false, false, false},
		{"GOOGLE_APPLICATION_CREDENTIALS", false, false, false},
		{"SSH_PRIVATE_KEY", false, false, false},
		{"KEYBOARD", true, false, false},
	} {
		for _, x := range []struct {
			p    tick.Profile
			want bool
		}{{all, c.all}, {some, c.some}, {none, c.nothing}} {
			if got := inherits(c.name, x.p); got != x.want {
				t.Errorf("inherits(%s, %+v) = %v", c.name, x.p, got)
			}
		}
	}
}

func TestHostRefused(t *testing.T) {
	for _, e := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE} {
		got := hostRefused(fmt.Errorf("fork: %w", e))
		if !errors.Is(got, tick.ErrInfrastructure) || !errors.Is(got, e) {
			t.Errorf("%v: %v", e, got)
		}
	}
	for _, e := range []error{syscall.EACCES, syscall.ENOENT, errors.New("other")} {
		if got := hostRefused(e); errors.Is(got, tick.ErrInfrastructure) || !errors.Is(got, e) {
			t.Errorf("%v: %v", e, got)
		}
	}
}

func TestParseFailpoints(t *testing.T) {
	for _, in := range []string{"", "a=kill", "a=stop", "a.b=exit:3", "a=sleep:2s", "a=sleep:1", "a@2=kill,b=exit:0", "a=exit:1,a=exit:2"} {
		if _, err := parseFailpoints(in); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
	for _, in := range []string{"a", "a=", "a=explode", "a=exit", "a=exit:x", "a=sleep", "a=sleep:soon", "a@0=kill", "a@=kill", "a@x=kill", "a=kill,", ",a=kill"} {
		_, err := parseFailpoints(in)
		var u *usageError
		if !errors.As(err, &u) {
			t.Errorf("%q: %v, want a usage error", in, err)
		}
	}
}

func TestFailpointPassings(t *testing.T) {
	f, err := parseFailpoints("each=sleep:0,second@2=sleep:0")
	if err != nil {
		t.Fatal(err)
	}
	hits := map[string]int{}
	for point, acts := range f.acts {
		for i := range acts {
			acts[i].do = func() { hits[point]++ }
		}
	}
	for range 3 {
		f.hit("each")
		f.hit("second")
		f.hit("nobody's")
	}
	if hits["each"] != 3 || hits["second"] != 1 || len(hits) != 2 {
		t.Errorf("hits: %v", hits)
	}
}

// A start that comes late leaves nothing where its board was: a directory runs without a
// store is damage.
func TestALateStartMakesNoBoard(t *testing.T) {
	home := t.TempDir()
	a := &app{home: home}
	if _, err := eventlog.Create(home, "b", [16]byte{1}, 1, eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := a.use("b"); err != nil {
		t.Fatal(err)
	}
	w := &world{a: a}
	for range 2 {
		if err := w.makeRunDir("t_1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(a.boardDir, eventlog.BoardDir(home, "c")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(tick.Launch{Task: &projection.Task{ID: "t_1"}, Run: 2}, nil); err == nil {
		t.Error("a worker was started on a board that is not there")
	}
	if there, err := holdsBoard(a.boardDir); there || err != nil {
		t.Errorf("the old name holds a board: %v, %v", there, err)
	}
}

// A worker of a daemon that has run for days is told how long ago things were, and not
// "just now" of all that came after the daemon began.
func TestABriefingGoesByTheTimeOfTheStart(t *testing.T) {
	home := t.TempDir()
	if _, err := eventlog.Create(home, "b", [16]byte{1}, 1, eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	a := &app{home: home}
	if err := a.use("b"); err != nil {
		t.Fatal(err)
	}
	a.now = a.clock().Add(-72 * time.Hour) // when the daemon began
	store := projection.Open(a.boardDir, eventlog.Options{})
	then := a.clock().Add(-2 * time.Hour)
	res, err := store.Update("operator:ann", then, projection.Create(projection.Draft{Title: "x", WorkspaceKind: projection.Scratch}, projection.Writer{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Update("operator:ann", then, projection.AddComment(res.Task, "ann", "look here", projection.Writer{})); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, "context")
	if err := (&world{a: a, store: store}).writeContext(path, res.Task); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "ann, 2h ago") {
		t.Errorf("%v: %s", err, text)
	}
}
