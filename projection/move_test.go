package projection

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kanlog/eventlog"
)

// A board is moved only while it has no active run, and what before says counts.
func TestMove(t *testing.T) {
	for _, c := range []struct {
		name   string
		given  func(b *board)
		active bool
	}{
		{"a ready card", card, false},
		{"a claim without a worker", func(b *board) { card(b); b.claim("a") }, true},
		{"a claim by hand", func(b *board) { card(b); b.manual("a", "ann", time.Hour) }, true},
		{"a worker", func(b *board) { card(b); b.start("a") }, true},
		{"a worker that has answered and lives on", func(b *board) {
			card(b)
			b.must(Complete(b.id("a"), Answer{}, b.worker("a", b.start("a"))))
		}, true},
		{"a run that has ended", func(b *board) { card(b); b.attempt("a", 1) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			c.given(b)
			s := b.onDisk(t)
			to := filepath.Join(filepath.Dir(s.file.Dir()), "moved")
			no, asked := errors.New("no"), false
			err := s.Move(to, func() error { asked = true; return no })
			if c.active != errors.Is(err, ErrState) || c.active == errors.Is(err, no) || c.active == asked {
				t.Fatalf("active: %v; asked: %v; %v", c.active, asked, err)
			}
			if _, err := os.Lstat(to); err == nil {
				t.Fatal("moved all the same")
			}
			if c.active {
				return
			}
			if err := s.Move(to, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			head, err := Open(to, eventlog.Options{}).file.Head()
			if err != nil || head != b.head() {
				t.Errorf("moved: head %v, want %v: %v", head, b.head(), err)
			}
		})
	}
}
