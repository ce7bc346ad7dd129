package projection

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

// Any byte, or run of bytes, of a small store is changed, cut off, added or put
// elsewhere. Whoever reads it then must refuse, or say what the whole store says,
// or verify must find that something is wrong. And one who writes must not make it
// worse: what could be read before is there afterwards. The damage that bbolt
// itself would stumble over, byte by byte, is package eventlog's (damage_test.go);
// here it is the answers.

// damageKind is what is done to the bytes.
const (
	damageSet   = iota // overwrite
	damageFlip         // exclusive or
	damageClear        // zeros, as a lost sector has
	damageCut
	damageAdd
	damagePage // one page over another, as a misdirected write does
	damageKinds
)

// spoil damages a copy of a store. Most of a page is empty: at counts the bytes
// that are not, so that few guesses are wasted.
func spoil(store []byte, kind uint8, at uint32, run []byte) []byte {
	b := bytes.Clone(store)
	var used []int
	for i, c := range store {
		if c != 0 {
			used = append(used, i)
		}
	}
	i := used[int(at)%len(used)]
	if len(run) == 0 {
		run = []byte{0xff}
	}
	const page = 4096
	switch kind % damageKinds {
	case damageSet:
		copy(b[i:], run)
	case damageFlip:
		for j, c := range run {
			if i+j < len(b) {
				b[i+j] ^= c
			}
		}
	case damageClear:
		clear(b[i:min(len(b), i+64*int(run[0]))])
	case damageCut:
		b = b[:int(at)%len(b)]
	case damageAdd:
		b = append(b, bytes.Repeat(run, 1+int(at)%page)...)
	case damagePage:
		to := int(run[0]) % (len(b) / page) * page
		copy(b[to:to+page], store[i/page*page:])
	}
	return b
}

// answers asks everything there is to ask of a board. A refusal is an empty
// answer; any other error is one of its own.
func (s *Store) answers(t testing.TB, ids []string) (list []string, refused int) {
	t.Helper()
	ask := func(what string, f func(say func(...any)) error) {
		var b strings.Builder
		err := f(func(args ...any) { fmt.Fprintln(&b, args...) })
		switch {
		case errors.Is(err, eventlog.ErrRefused), errors.Is(err, ErrInconsistent):
			b.Reset()
			refused++
		case errors.Is(err, ErrNotFound):
			fmt.Fprintln(&b, err)
		case err != nil:
			t.Errorf("%s: %v, which is no refusal", what, err)
		default:
			fmt.Fprintln(&b, "that is all")
		}
		list = append(list, b.String())
	}
	row := func(r any) string { return fmt.Sprintf("%q", encodeRow(r)) }
	const now = eventlog.Time(1_700_000_000_000_000 + 1e12)
	ask("cards", func(say func(...any)) error {
		return s.EachCard(func(v View, c *Task) error {
			say(row(c), v.Body(c.ID), v.Parents(c.ID), v.Children(c.ID), v.TaskCommits(c.ID, 0, 1000))
			runs, err := v.Runs(c.ID)
			for _, r := range runs {
				say(row(r))
			}
			comments, err2 := v.Comments(c.ID)
			for _, c := range comments {
				say(row(c))
			}
			return errors.Join(err, err2)
		})
	})
	for _, id := range ids {
		ask("one card", func(say func(...any)) error {
			return s.View(func(v View) error {
				full, err := v.Resolve(id[:6])
				if err != nil {
					return err
				}
				c, err := v.MustTask(full)
				if err == nil {
					say(row(c))
				}
				return err
			})
		})
		ask("its log", func(say func(...any)) error {
			return s.TaskCommits(id, 0, func(c eventlog.Commit) error { say(c.Number, fmt.Sprintf("%x", c.Hash)); return nil })
		})
	}
	ask("active", func(say func(...any)) error {
		return s.View(func(v View) error {
			runs, err := v.Active()
			for _, r := range runs {
				say(row(r))
			}
			return err
		})
	})
	ask("waiting", func(say func(...any)) error {
		return s.View(func(v View) error {
			for _, name := range v.ReadyAssignees() {
				if err := v.Ready(name, func(c *Task) bool { say(name, c.ID); return true }); err != nil {
					return err
				}
			}
			for _, name := range v.Reviewers() {
				if err := v.InReview(name, func(c *Task) bool { say(name, c.ID); return true }); err != nil {
					return err
				}
			}
			over, still, err := v.Held(now, 100, func(string) bool { return true })
			for _, c := range slices.Concat(over, still) {
				say(c.ID)
			}
			due, err2 := v.Due(now)
			alike, err3 := v.Alike("coder")
			made, _ := v.byKey("k")
			say(due, v.Parked(100), fmt.Sprintf("%+v", alike), made)
			return errors.Join(err, err2, err3)
		})
	})
	ask("place of an event", func(say func(...any)) error {
		n, err := s.CommitOf(9)
		say(n)
		return err
	})
	return list, refused
}

// log is the hashes of all commits, nil if the store refuses to tell.
func (s *Store) log(t testing.TB) (list []string) {
	t.Helper()
	err := s.Commits(1, func(c eventlog.Commit) error {
		list = append(list, fmt.Sprintf("%d %x", c.Number, c.Hash))
		return nil
	})
	switch {
	case errors.Is(err, eventlog.ErrRefused):
		return nil
	case err != nil:
		t.Errorf("the log: %v, which is no refusal", err)
	}
	return list
}

func FuzzDamage(f *testing.F) {
	b := everyTable(f)
	whole := b.onDisk(f)
	dir := whole.file.Dir()
	store, err := os.ReadFile(filepath.Join(dir, "board.db"))
	if err != nil {
		f.Fatal(err)
	}
	id, err := os.ReadFile(filepath.Join(dir, "runs", "board-id"))
	if err != nil {
		f.Fatal(err)
	}
	var ids []string
	for _, card := range b.cards {
		ids = append(ids, card)
	}
	slices.Sort(ids)
	good, _ := whole.answers(f, ids)
	goodLog := whole.log(f)
	writes := []Decider{
		Create(draft("new"), Writer{}),
		AddComment(b.id("parent"), "ann", strings.Repeat("long ", 2000), Writer{}),
		Claim(ClaimFor{Task: b.id("ready"), Origin: OriginManual, Holder: "ann", TTL: time.Hour}, Writer{}), // also on a paused board
		BookEnd(Ending{Run: b.task("running").Worker, Record: exited(1)}, b.limits),
	}
	for kind := range uint8(damageKinds) {
		for i := range 8 {
			f.Add(kind, uint32(i*i*337), []byte{byte(i + 1)}, uint8(i))
		}
	}
	homes, n := f.TempDir(), 0
	f.Fuzz(func(t *testing.T, kind uint8, at uint32, run []byte, write uint8) {
		if len(run) > 512 {
			t.Skip()
		}
		// A store whose commit failed is not used again by this process, so each
		// gets a place of its own.
		n++
		dir := filepath.Join(homes, fmt.Sprint(os.Getpid(), ".", n))
		defer os.RemoveAll(dir)
		if err := os.MkdirAll(filepath.Join(dir, "runs"), 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "board.db")
		bad := spoil(store, kind, at, run)
		for name, text := range map[string][]byte{path: bad, filepath.Join(dir, "runs", "board-id"): id} {
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		defer time.AfterFunc(time.Minute, func() { panic("a damaged store is read for ever") }).Stop()
		s := Open(dir, eventlog.Options{})

		said, refused := s.answers(t, ids)
		lied := ""
		for i := range said {
			if said[i] != "" && said[i] != good[i] {
				lied = fmt.Sprintf("%s\ninstead of\n%s", said[i], good[i])
			}
		}
		log := s.log(t)
		if log != nil && !slices.Equal(log, goodLog) {
			t.Fatalf("the log says\n%s\ninstead of\n%s", log, goodLog)
		}
		rep, err := s.Verify()
		if err != nil && !errors.Is(err, eventlog.ErrRefused) {
			t.Fatalf("verify: %v, which is no refusal", err)
		}
		found := err != nil || rep.Problem != ""
		if !found && (lied != "" || refused > 0) {
			t.Fatalf("verify finds nothing; %d refusals, and it said\n%s", refused, lied)
		}
		now, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(now, bad) && (found || lied != "" || refused > 0) {
			// The tables called themselves older and were made anew.
			t.Fatal("reading wrote to the store, and that did not make it whole")
		}

		if write%8 == 7 {
			switch err := s.Rebuild(); {
			case errors.Is(err, eventlog.ErrRefused), errors.Is(err, ErrInconsistent):
				if log != nil && !found {
					t.Fatalf("rebuild: %v, of a store in which verify finds nothing", err)
				}
			case err != nil:
				t.Fatalf("rebuild: %v", err)
			default:
				if said, _ := s.answers(t, ids); !slices.Equal(said, good) {
					t.Fatal("made anew from the log, it says something else")
				}
			}
			return
		}
		_, err = s.Update(operator, b.now, writes[int(write)%len(writes)])
		after := s.log(t)
		rep2, err2 := s.Verify()
		switch {
		case err == nil && found && after == nil:
			// A list of free pages that names one in use, which bbolt believes.
			// What was written over is lost, and everybody says so.
		case err == nil && log != nil && (len(after) != len(log)+1 || !slices.Equal(after[:len(log)], log)):
			t.Fatalf("an acknowledged write left the log as\n%s\nit was\n%s", after, log)
		case err == nil && !found && (err2 != nil || rep2.Problem != ""):
			t.Fatalf("after an acknowledged write verify finds %q, %v", rep2.Problem, err2)
		case err != nil && errors.Is(err, eventlog.ErrUnknownOutcome):
			t.Fatalf("write: %v", err)
		case err != nil && !found:
			t.Fatalf("verify finds nothing, and yet a write is refused: %v", err)
		case err != nil && !slices.Equal(after, log):
			t.Fatalf("refused with %v, a write left the log as\n%s\nit was\n%s", err, after, log)
		}
	})
}
