package script

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kanlog/cmd/internal/scenario"
)

// What the help promises is there, and there is nothing that it does not tell.
func TestCommandsAreThoseOfTheHelp(t *testing.T) {
	var told []string
	for _, w := range scenario.Words {
		told = append(told, w.Name)
	}
	slices.Sort(told)
	if there := slices.Sorted(maps.Keys(new(Bench).Commands())); !slices.Equal(told, there) {
		t.Errorf("the help tells %v, there are %v", told, there)
	}
}

// Of a profile nothing changes but what is started.
func TestStandIn(t *testing.T) {
	home := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(home, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write("config.toml", "failure_limit = 3\n[profiles.a]\ncommand = ['./a']\nwrap = ['docker']\nmax_runtime = '2h'\nenv = { X = '1' }\n[profiles.b]\ncommand = ['./b']\n")
	board := "# nothing is started by this\n[profiles.a]\nmax_in_progress = 1\n"
	write("boards/default/config.toml", board)

	known, err := standIn("/bin/kanlog", "/w", home, "a")
	if err != nil || !slices.Equal(known, []string{"a", "b"}) {
		t.Fatalf("%v, %v", known, err)
	}
	got := read("config.toml")
	for _, want := range []string{"failure_limit = 3", "max_runtime = '2h'", "X = '1'", "'./b'", "'/bin/kanlog', 'scenario-worker', '" + scenario.ScriptOf("/w", "a") + "', 'a'"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	for _, gone := range []string{"docker", "'./a'"} {
		if strings.Contains(got, gone) {
			t.Errorf("%s is still in\n%s", gone, got)
		}
	}
	if read("boards/default/config.toml") != board {
		t.Error("settings that start nothing were written anew")
	}
	if _, err := standIn("/bin/kanlog", "/w", home, ""); err != nil || strings.Contains(read("config.toml"), "'./b'") {
		t.Errorf("not every profile has a stand-in: %v\n%s", err, read("config.toml"))
	}
}

// Where a file failed is read off the script engine's log.
func TestFailure(t *testing.T) {
	line, message, before := failure("/t/a b:c.txtar", "# one\n> a\nFAIL: x:7: in somebody's words\n> b\nFAIL: /t/a b:c.txtar:12: two\nlines\n")
	if line != 12 || message != "two\nlines" || before != "# one\n> a\nFAIL: x:7: in somebody's words\n> b" {
		t.Errorf("%d, %q, %q", line, message, before)
	}
	if line, message, before := failure("x", "nothing known\n"); line != 0 || message != "nothing known" || before != "" {
		t.Errorf("%d, %q, %q", line, message, before)
	}
}

func TestVariablesOfAScenario(t *testing.T) {
	got := varsOf([]string{"PATH=/bin", "A=b=c"}, []byte("env X=1 'Y=two words'\n# env NO=1\n[linux] env Z=3\ncapture CARD .id\n\n-- file --\nenv NO=2\n"))
	for _, want := range []string{"PATH", "A", "X", "Y", "Z", "CARD", "KANLOG_CLOCK_OFFSET"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %v", want, got)
		}
	}
	if slices.Contains(got, "NO") {
		t.Errorf("NO is among %v", got)
	}
}
