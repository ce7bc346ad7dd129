package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
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
	for _, cmd := range verbs {
		if cmd.Name() == "help" {
			continue // the library writes no page of it
		}
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			continue
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
