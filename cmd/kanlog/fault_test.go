package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// TestEveryZeroedPageIsFound is C098 for each page of a store in turn: verify
// says so with 6, no verb ends in a trace of Go, and reading verbs leave the
// file as it is. The list of free pages is no part of what reading looks at:
// there it is the writing verbs that refuse.
func TestEveryZeroedPageIsFound(t *testing.T) {
	home := t.TempDir()
	kanlog := func(args ...string) (code int, out, said string) {
		cmd := exec.Command(filepath.Join(binDir, "kanlog"), args...)
		cmd.Env = append(os.Environ(), "KANLOG_HOME="+home)
		var o, e bytes.Buffer
		cmd.Stdout, cmd.Stderr = &o, &e
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode(), o.String(), e.String()
	}
	var id string
	for range 12 {
		code, out, said := kanlog("create", "card", "--body", strings.Repeat("words and words, ", 200))
		if code != 0 {
			t.Fatalf("create: exit %d: %s", code, said)
		}
		id = strings.TrimSpace(out)
	}
	db := filepath.Join(home, "boards", "default", "board.db")
	whole, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	used := usedPages(t, db)
	if len(used) < 8 {
		t.Fatalf("only %d pages are in use; this proves little", len(used))
	}
	for n, kind := range used {
		verbs := []string{"verify", "list", "show " + id, "events", "dispatch --dry-run"}
		if kind == "freelist" {
			verbs = []string{"create another", "comment " + id + " hello", "list"}
		}
		damaged := bytes.Clone(whole)
		clear(damaged[n*page : (n+1)*page])
		if err := os.WriteFile(db, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, verb := range verbs {
			code, out, said := kanlog(strings.Fields(verb)...)
			if code != 6 && (verb == verbs[0] || code != 0) {
				t.Errorf("page %d (%s) zeroed: %s: exit %d: %s%s", n, kind, verb, code, out, said)
			}
			if strings.Contains(said, "goroutine ") || strings.Contains(said, "panic") {
				t.Errorf("page %d zeroed: %s: a trace of Go: %s", n, verb, said)
			}
			after, err := os.ReadFile(db)
			if err != nil || !bytes.Equal(after, damaged) {
				t.Fatalf("page %d zeroed: %s changed the file (%v)", n, verb, err)
			}
		}
	}
}

// usedPages lists the pages that hold anything and their kinds, apart from the two meta pages.
func usedPages(t *testing.T, path string) map[int]string {
	t.Helper()
	used := map[int]string{}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		for n := 2; ; n++ {
			p, err := tx.Page(n)
			if err != nil || p == nil {
				return err
			}
			if p.Type == "leaf" || p.Type == "branch" || p.Type == "freelist" {
				used[n] = p.Type
				n += p.OverflowCount
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}
