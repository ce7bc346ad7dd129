package projection

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

func TestEndForRestore(t *testing.T) {
	end := func(b *board) Decider { return EndForRestore(2, 1, b.limits) }
	card := func(b *board) { b.create("a") }
	started := func(b *board) { card(b); b.start("a") }
	free := func(status string) func(*testing.T, *board, []eventlog.Event) {
		return func(t *testing.T, b *board, _ []eventlog.Event) {
			equal(t, "the status", b.task("a").Status, status)
			equal(t, "the run that owns it", b.task("a").Owner(), 0)
		}
	}
	decide(t, []decision{
		{name: "a claim without a worker", given: func(b *board) { card(b); b.claim("a") }, when: end, want: "reclaimed>ready interrupted", then: free(Ready)},
		{name: "a worker", given: started, when: end, want: "reclaimed>ready interrupted", then: free(Ready)},
		{name: "a manual claim: held", given: func(b *board) { card(b); b.manual("a", "ann", time.Hour) }, when: end, want: "reclaimed>blocked interrupted; blocked", then: free(Blocked)},
		{name: "a worker that was to be cancelled", given: func(b *board) { started(b); b.must(Cancel(b.id("a"), 2, "enough", "", Writer{})) },
			when: end, want: "reclaimed>blocked interrupted; blocked", then: free(Blocked)},
		{name: "a worker that was to be archived", given: func(b *board) { started(b); b.must(Archive(b.id("a"), 2, "enough", "", Writer{})) },
			when: end, want: "reclaimed>ready interrupted; archived", then: free(Archived)},
		{name: "a retained worker", given: func(b *board) { started(b); b.must(Complete(b.id("a"), Answer{}, b.worker("a", 2))) },
			when: end, want: "exited", then: free(Done)},
		{name: "a retained worker of a card that was to be cancelled", given: func(b *board) {
			started(b)
			b.must(Cancel(b.id("a"), 2, "enough", "", Writer{}))
			b.must(Fail(b.id("a"), "told to end", b.limits, b.worker("a", 2)))
		}, when: end, want: "exited; blocked", then: free(Blocked)},
		{name: "a run that is over", given: func(b *board) { started(b); b.ends(2, 0) }, when: end},
		{name: "no run of that number", given: card, when: end},
	})
}

// A board with one of each kind of run is copied and put back, into nothing, over
// what it has become, and once more from what that left.
func TestRestore(t *testing.T) {
	b := newBoard(t)
	b.create("idle")
	b.create("claimed")
	b.create("running")
	b.create("by hand")
	b.create("retained")
	b.claim("claimed")
	b.start("running")
	b.manual("by hand", "ann", time.Hour)
	run := b.start("retained")
	b.must(Complete(b.id("retained"), Answer{Summary: "ok"}, b.worker("retained", run)))
	s := b.onDisk(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	rep, err := s.Backup(copied+".new", copied, false)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the end of the copy", rep.Head, fmt.Sprintf("%x", b.head().Hash))
	from := OpenCopy(copied, eventlog.Options{})

	ready := 0
	r := Restoration{Actor: operator, Now: b.now.Add(time.Hour), Limits: b.limits, Keep: "kept", Over: true, Ready: func(*Store) error { ready++; return nil }}
	home := t.TempDir()
	check := func(what string, res Restored, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		equal(t, what+": runs that were open", len(res.Ended), 3)
		equal(t, what+": workers dropped", len(res.Dropped), 1)
		back := Open(eventlog.BoardDir(home, "default"), eventlog.Options{})
		rep := verify(t, back)
		equal(t, what+": verify", rep.Problem, "")
		equal(t, what+": its head", rep.Head, fmt.Sprintf("%x", res.Head.Hash))
		noted, err := ParseNoted(fmt.Sprintf("%d:%x", b.head().Commit, b.head().Hash))
		if err != nil {
			t.Fatal(err)
		}
		if rep, err := back.VerifyWith(Checking{Noted: noted}); err != nil || rep.Problem != "" || rep.Noted.Since != 4 {
			t.Errorf("%s: the head of before: %v %q %+v", what, err, rep.Problem, rep.Noted)
		}
		if err := back.View(func(v View) error {
			active, err := v.Active()
			equal(t, what+": active runs", len(active), 0)
			for title, status := range map[string]string{"idle": Ready, "claimed": Ready, "running": Ready, "by hand": Blocked, "retained": Done} {
				task, err := v.MustTask(b.id(title))
				if err != nil {
					return err
				}
				equal(t, what+": "+title, task.Status, status)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	retaken := func(s *Store, after eventlog.Head) {
		t.Helper()
		past, err := s.Past(Moment{Seq: after.Seq}, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := s.Commits(after.Commit+1, func(c eventlog.Commit) error {
			n++
			if err := past.View(func(v View) error {
				r, err := Retake(v, c, WhatIf{})
				if r.Untold != "" || r.Was != r.Now {
					t.Errorf("taken once more: %+v", r)
				}
				return err
			}); err != nil {
				return err
			}
			return past.Apply(c)
		}); err != nil || n != 4 {
			t.Errorf("%d decisions of the restore taken once more, want 4: %v", n, err)
		}
	}
	res, err := Restore(home, "default", from, eventlog.Options{}, r)
	check("where no board was", res, err)
	equal(t, "the old store", res.Kept, false)
	equal(t, "commits left out", res.Lost, int64(-1))

	back := Open(eventlog.BoardDir(home, "default"), eventlog.Options{})
	retaken(back, res.From)
	if _, err := back.Update(operator, r.Now, AddComment(b.id("idle"), "ann", "too late", Writer{})); err != nil {
		t.Fatal(err)
	}
	res, err = Restore(home, "default", from, eventlog.Options{}, r)
	check("over a later state", res, err)
	equal(t, "the old store", res.Kept, true)
	equal(t, "commits left out", res.Lost, int64(5))
	equal(t, "times the caller was asked", ready, 2)

	t.Run("refused while a run is active", func(t *testing.T) {
		c := b.claimFor("idle")
		if _, err := back.Update(operator, r.Now, Claim(c, Writer{})); err != nil {
			t.Fatal(err)
		}
		head, err := back.NewestCommit()
		if err != nil {
			t.Fatal(err)
		}
		r.Keep = "kept again"
		_, err = Restore(home, "default", from, eventlog.Options{}, r)
		if !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "is active on the board that is there") {
			t.Errorf("%v, want a refusal that names the run", err)
		}
		if now, err := back.NewestCommit(); err != nil || now != head {
			t.Errorf("the board was touched: %+v, %v", now, err)
		}
	})
}

// A backup is kept for years: one of every format ever released is verified as it
// is, and a board is made from it.
func TestACopyOfEveryFormatIsRestored(t *testing.T) {
	stores, err := filepath.Glob(filepath.Join("..", "testdata", "formats", "*", "board", eventlog.StoreName))
	if err != nil || len(stores) < eventlog.Format {
		t.Fatalf("%d stores, %v", len(stores), err)
	}
	for _, path := range stores {
		before := read(t, path)
		from := OpenCopy(path, eventlog.Options{})
		rep := verify(t, from)
		equal(t, path+": verify", rep.Problem, "")
		home := t.TempDir()
		res, err := Restore(home, "default", from, eventlog.Options{}, Restoration{
			Actor: operator, Now: 1_800_000_000_000_000, Limits: DefaultLimits(), Ready: func(*Store) error { return nil },
		})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		equal(t, path+": what it was put back to", res.From.Commit, rep.Commits)
		equal(t, path+": verify of the board", verify(t, Open(eventlog.BoardDir(home, "default"), eventlog.Options{})).Problem, "")
		equal(t, path+": the copy was not touched", bytes.Equal(read(t, path), before), true)
	}
}
