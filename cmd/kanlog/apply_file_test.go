package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is nested without end is refused at once, with its line: the parser would take
// minutes for a small file of it.
func TestGraphsNestedWithoutEnd(t *testing.T) {
	for name, c := range map[string]struct{ part, want string }{
		"lists":       {"[", ":2: more than 64 brackets stand in one another"},
		"mappings":    {"{a: ", ":2: more than 64 brackets stand in one another"},
		"lines":       {"[\n", ":66: more than 64 brackets stand in one another"},
		"ends":        {"]", `:2: "]" closes no bracket`},
		"entries":     {"- ", ":2: more than 64 lists or mappings begin in one line"},
		"keys":        {"? ", ":2: more than 64 lists or mappings begin in one line"},
		"values":      {"a: ", ":2: more than 64 lists or mappings begin in one line"},
		"tags":        {"!a ", ":2: anchors, aliases and tags are not read here"},
		"anchors":     {"&a\n", ":66: anchors, aliases and tags are not read here"},
		"in one card": {"cards: [{name: [", ":2: more than 64 brackets stand in one another"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "graph")
			text := "# a graph\n" + strings.Repeat(c.part, 200_000)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err := (&app{}).readGraph(path)
			asUsage(t, name, err)
			if err == nil || !strings.HasPrefix(err.Error(), path+c.want) {
				t.Errorf("%v, want %s%s", err, path, c.want)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// Brackets in text open nothing, and as much as a graph needs is taken.
func TestGraphsWithBracketsInText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "graph")
	// Longer than what is looked at first, which ends somewhere in a quoted text.
	text := "cards:\n" + strings.Repeat("- title: a [ of ] many ]\n  body: |\n    [[[ {{{ ]\n  tags: [\"[[\", '{']\n", 200) +
		"- title: \"" + strings.Repeat("[ ", 64<<10) + "\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := (&app{}).readGraph(path)
	if err != nil || len(g.cards) != 201 || g.cards[199].Title != "a [ of ] many ]" || g.cards[199].Body != "[[[ {{{ ]\n" {
		t.Errorf("%v", err)
	}
}
