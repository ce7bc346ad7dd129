package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Only the verb that is called is made where it is plain which; where it is not,
// all are, so that help, suggestions and completion know them.
func TestPlainVerb(t *testing.T) {
	for line, want := range map[string]string{
		"list":                          "list",
		"--json --home /x list":         "list",
		"--home=/x --board b show --no": "show",
		"show help":                     "show",
		"":                              "",
		"help list":                     "",
		"--help list":                   "",
		"-- list":                       "",
		"--home":                        "",
		"--nonsense list":               "",
		"--json=perhaps list":           "",
		"--json lst":                    "",
		"__complete list":               "",
	} {
		verb := plainVerb(strings.Fields(line))
		if verb != want {
			t.Errorf("kanlog %s: %q, want %q", line, verb, want)
		}
		n := 0
		for _, c := range newRoot(&app{out: io.Discard, errw: io.Discard}, verb).Commands() {
			if verbs[c.Name()] != nil {
				n++
			}
		}
		if all := len(verbs); verb != "" && n != 1 || verb == "" && n != all {
			t.Errorf("kanlog %s: %d of %d verbs are made", line, n, all)
		}
	}
}

// A verb that reads is shown to write nothing, and who adds a verb says which it is.
func TestEveryVerbThatReadsIsShownToWriteNothing(t *testing.T) {
	writes := strings.Fields(`apply approve archive assign block cancel claim comment compact complete create
		daemon defer drain edit fail heartbeat import init link pause promote rebuild reclaim reopen
		request-changes request-review restore resume scenario stop unblock unlink work`)
	elsewhere := strings.Fields(`watch`) // in a terminal; watch_shows_the_board
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "reading_never_writes.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	reading, _, ok := strings.Cut(string(text), "# Refused writes.")
	if _, reading, _ = strings.Cut(reading, "cp stdout before"); !ok || reading == "" {
		t.Fatal("the scenario has no part that reads")
	}
	for _, cmd := range newRoot(&app{out: io.Discard, errw: io.Discard}, "").Commands() {
		name := cmd.Name()
		if cmd.Hidden || name == "help" || slices.Contains(writes, name) || slices.Contains(elsewhere, name) {
			continue
		}
		if !regexp.MustCompile(`(?m)^(exec|code \d) kanlog ` + regexp.QuoteMeta(name) + `\b`).MatchString(reading) {
			t.Errorf("kanlog %s is none of the verbs that write, and testdata/reading_never_writes.txtar does not show that it leaves the board as it is", name)
		}
	}
}
