package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manDir is where make man wants the manual pages.
var manDir = flag.String("man", "", "write the manual pages into this directory")

// everyVerbOf is the whole command tree as a user has it, verbs of verbs too; the
// root comes last.
func everyVerbOf(t *testing.T) (root *cobra.Command, verbs []*cobra.Command) {
	t.Helper()
	root = newRoot(&app{out: io.Discard, errw: io.Discard}, "")
	root.InitDefaultHelpCmd()
	groups := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.HasSubCommands() {
			groups++
		}
		for _, c := range cmd.Commands() {
			if !c.Hidden {
				walk(c)
			}
		}
		verbs = append(verbs, cmd)
	}
	walk(root)
	if len(verbs) < 40 || groups < 3 {
		t.Fatalf("only %d verbs, %d groups", len(verbs), groups)
	}
	return root, verbs
}

// Every verb has a page, and the page shows how it is called.
func TestManPages(t *testing.T) {
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root, verbs := everyVerbOf(t)
	root.DisableAutoGenTag = true
	// The same pages from the same source, whenever they are made.
	day := time.Unix(0, 0).UTC()
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "KANLOG", Section: "1", Source: "kanlog", Manual: "kanlog", Date: &day}, dir); err != nil {
		t.Fatal(err)
	}
	finishManPages(t, root, dir)
	whole, err := os.ReadFile(filepath.Join(dir, "kanlog.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		".SH VERBS", ".SH EXIT STATUS", ".SH ENVIRONMENT", "\\fBkanlog\\-create\\fP(1)\nPut a card on the board", ".TP\n\\fB6\\fP\nthe store is not good",
		"\\fBKANLOG_HOME\\fP\nwhere boards live", "\\fBKANLOG_CLAIM_TTL\\fP\nin the place of the setting claim_ttl (15m)", "\\fBKANLOG_DEADLINE\\fP\nwhen its time is over",
	} {
		if !strings.Contains(string(whole), part) {
			t.Errorf("kanlog(1) has no %q", part)
		}
	}
	for _, cmd := range verbs {
		if cmd.Name() == "help" {
			continue // the library writes no page of it
		}
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		if strings.Contains(string(page), "1970") || strings.Contains(string(page), "[=") {
			t.Errorf("the page of %s has a date that is none, or values of flags that are on or off", cmd.CommandPath())
		}
		for _, part := range []string{".SH NAME", ".SH SYNOPSIS"} {
			if !strings.Contains(string(page), part) {
				t.Errorf("the page of %s has no %s", cmd.CommandPath(), part)
			}
		}
		if cmd.Example != "" && !strings.Contains(string(page), ".SH EXAMPLE") {
			t.Errorf("the page of %s has no examples", cmd.CommandPath())
		}
	}
}

// finishManPages takes out what the library writes and nobody can use (a date that is
// none, a value of each flag that is on or off), and gives kanlog(1) what it does not
// know of: the verbs, the exit codes, the environment.
func finishManPages(t *testing.T, root *cobra.Command, dir string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(dir, "kanlog*.1"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	more := manVerbs(root) + manSection("EXIT STATUS", manExits(t)) + manEnvironment(t)
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(`"Jan 1970"`, `""`, "[=false]", "", "[=true]", "").Replace(string(page))
		if filepath.Base(path) == "kanlog.1" {
			before, after, ok := strings.Cut(text, ".SH SEE ALSO")
			if !ok {
				t.Fatal("kanlog(1) has no SEE ALSO")
			}
			text = before + more + ".SH SEE ALSO" + after
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// manItem is a word and what it means.
type manItem struct{ word, meaning string }

func manSection(head string, items []manItem) string { return ".SH " + head + "\n" + manList(items) }

func manList(items []manItem) string {
	var b strings.Builder
	for _, i := range items {
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s\n", roff(i.word), roff(i.meaning))
	}
	return b.String()
}

// roff is text in which nothing is a command.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

func manVerbs(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(".SH VERBS\n")
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fP(1)\n%s\n", roff("kanlog-"+c.Name()), roff(c.Short))
		}
	}
	return b.String()
}

// manExits are the exit codes as README has them.
func manExits(t *testing.T) (items []manItem) {
	t.Helper()
	text := strings.Join(strings.Fields(readDoc(t, "README.md")), " ")
	_, list, _ := strings.Cut(text, "Exit codes: ")
	list, _, ok := strings.Cut(list, ". ")
	for word := range strings.SplitSeq(list, ", ") {
		code, meaning, _ := strings.Cut(word, " ")
		items = append(items, manItem{code, meaning})
	}
	if !ok || len(items) != exitStore+1 || items[exitStore].word != strconv.Itoa(exitStore) {
		t.Fatalf("README.md lists no exit codes from %d to %d: %q", exitOK, exitStore, list)
	}
	return items
}

// manEnvironment is what docs/settings.md says of the environment.
func manEnvironment(t *testing.T) string {
	t.Helper()
	text := readDoc(t, "docs/settings.md")
	rows := func(heading string) (items []manItem) {
		for word, cells := range docRows(docSection(t, text, heading)) {
			items = append(items, manItem{word, cells[len(cells)-1]})
		}
		return items
	}
	ofCall := rows("## Environment of a call")
	for key, cells := range docRows(docSection(t, text, "## The board")) {
		for _, name := range quoted(cells[4]) {
			ofCall = append(ofCall, manItem{name, fmt.Sprintf("in the place of the setting %s (%s)", key, cells[2])})
		}
	}
	ofWorker := rows("## Environment of a worker")
	for _, items := range [][]manItem{ofCall, ofWorker} {
		slices.SortFunc(items, func(x, y manItem) int { return strings.Compare(x.word, y.word) })
	}
	return manSection("ENVIRONMENT", ofCall) + ".SS What a worker finds\n" + manList(ofWorker)
}

// A flag has one default at most, and says it once.
func TestFlagsHaveOneDefault(t *testing.T) {
	_, verbs := everyVerbOf(t)
	for _, cmd := range verbs {
		for line := range strings.Lines(cmd.LocalFlags().FlagUsages()) {
			if strings.Count(line, "(default") > 1 {
				t.Errorf("%s --help: %s", cmd.CommandPath(), line)
			}
		}
	}
}

// Whoever asks for help gets a line to copy before anything else.
func TestHelpBeginsWithExamples(t *testing.T) {
	_, verbs := everyVerbOf(t)
	for _, cmd := range verbs {
		var b strings.Builder
		cmd.SetOut(&b)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		examples, usage := strings.Index(text, "\nExamples:\n  "), strings.Index(text, "\nUsage:\n")
		switch {
		case cmd.Short == "" || !strings.HasPrefix(text, strings.SplitN(orDash(cmd.Long, cmd.Short), "\n", 2)[0]):
			t.Errorf("%s --help does not begin with what it does:\n%s", cmd.CommandPath(), text)
		case examples < 0 || examples > usage:
			t.Errorf("%s --help: examples at %d, usage at %d:\n%s", cmd.CommandPath(), examples, usage, text)
		}
	}
}
