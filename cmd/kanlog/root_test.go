package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// An empty word is refused by every verb, in each flag that could take one: who adds
// a flag for which it means something says so in emptyFlags.
func TestEveryFlagThatIsEmptyIsRefused(t *testing.T) {
	met := map[string]bool{}
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			look(c)
		}
		cmd.InheritedFlags() // merges them
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name, ofVerb := "--"+f.Name, verbOf(cmd)+" --"+f.Name
			met[name], met[ofVerb] = true, true
			err := emptyFlagOf(t, cmd, f.Name)
			if slices.Contains(emptyFlags, name) || slices.Contains(emptyFlags, ofVerb) {
				if err != nil && strings.Contains(err.Error(), name) {
					t.Errorf("%s may be empty: %v", ofVerb, err)
				}
			} else if exitCode(err) != exitUsage || !strings.Contains(err.Error(), name) {
				t.Errorf("%s is empty: %v, want a usage error that names it", ofVerb, err)
			}
		})
	}
	root, _ := everyVerbOf(t)
	look(root)
	for _, name := range emptyFlags {
		if !met[name] {
			t.Errorf("emptyFlags has %q, and there is no such flag", name)
		}
	}
}

// emptyFlagOf is what comes before a verb runs if one flag is given and is empty.
func emptyFlagOf(t *testing.T, at *cobra.Command, flag string) error {
	root := newRoot(&app{out: io.Discard, errw: io.Discard}, "")
	root.InitDefaultHelpCmd()
	cmd, _, err := root.Find(strings.Fields(strings.TrimPrefix(at.CommandPath(), "kanlog")))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.ParseFlags([]string{"--" + flag + "="}); err != nil {
		return cmd.FlagErrorFunc()(cmd, err)
	}
	return cmd.ValidateArgs(slices.Repeat([]string{"x"}, 2))
}
