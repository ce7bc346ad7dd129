package projection

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"kanlog/eventlog"
)

func (s *Store) mustRows(t *testing.T) string {
	t.Helper()
	var all string
	if err := s.file.View(func(tx *eventlog.Tx) error { all = rows(tx); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// The same deciders on both kinds of store: the same answers, hashes, tables.
func TestStoreAndMemStoreAreTheSame(t *testing.T) {
	b := everyTable(t)
	disk := newBoard(t).onDisk(t)
	mem := &MemStore{eventlog.NewMem(b.s.Mem.UUID())}
	steps := append(b.steps,
		step{operator, b.now, Unblock(b.id("done"), Writer{})},                                                   // refused
		step{operator, b.now, Create(draft("parent", func(d *Draft) { d.Body, d.Key = "text", "k" }), Writer{})}, // a note
	)
	for i, st := range steps {
		r1, err1 := mem.Update(st.actor, st.now, st.do)
		r2, err2 := disk.Update(st.actor, st.now, st.do)
		if fmt.Sprint(err1) != fmt.Sprint(err2) {
			t.Fatalf("step %d: %v in memory, %v on disk", i, err1, err2)
		}
		if r1.Commit.Number != r2.Commit.Number || r1.Commit.Hash != r2.Commit.Hash || r1.Task != r2.Task || r1.Note != r2.Note {
			t.Fatalf("step %d: %+v in memory, %+v on disk", i, r1, r2)
		}
	}
	h1, _ := mem.Mem.Head()
	h2, err := disk.file.Head()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the head on disk", h2, h1)
	equal(t, "the tables on disk", disk.mustRows(t), rows(mem.Mem))
}

func TestRefusalsAndNotesAppendNothing(t *testing.T) {
	b := newBoard(t)
	card(b)
	s := b.onDisk(t)
	before := s.mustRows(t)
	for _, d := range []Decider{
		Unblock(b.id("a"), Writer{}),
		Assign(b.id("a"), "coder", Writer{}),
		func(View, eventlog.Time) (Decision, error) {
			return decided(b.id("a"), event(b.id("a"), 9, &eventlog.Heartbeat{})), nil // the fold refuses it
		},
	} {
		res, _ := s.Update(operator, b.now, d)
		equal(t, "the commit", res.Commit.Number, 0)
	}
	head, err := s.file.Head()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the last commit", head.Commit, 1)
	equal(t, "the tables", s.mustRows(t), before)
}

func TestRebuildKeepsEveryByte(t *testing.T) {
	b := everyTable(t)
	s := b.onDisk(t)
	before := s.mustRows(t)
	for range 2 {
		if err := s.Rebuild(); err != nil {
			t.Fatal(err)
		}
		equal(t, "the tables", s.mustRows(t), before)
		equal(t, "the problem", verify(t, s).Problem, "")
	}
}

// Tables of another format are made anew from the log before they are used, by
// a reader and by a writer.
func TestOldTablesAreRebuilt(t *testing.T) {
	b := everyTable(t)
	good := b.onDisk(t).mustRows(t)
	for name, use := range map[string]func(*Store) error{
		"view": func(s *Store) error { return s.View(func(View) error { return nil }) },
		"update": func(s *Store) error {
			_, err := s.Update(operator, b.now, Unblock(b.id("ready"), Writer{}))
			if errors.Is(err, ErrState) {
				err = nil
			}
			return err
		},
		"verify": func(s *Store) error { _, err := s.Verify(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s := b.onDisk(t)
			err := s.file.Update(func(tx *eventlog.Tx) error {
				tx.SetTablesFormat(TablesFormat + 1)
				tx.Put(tabTasks, []byte("t_old"), []byte{0xc1})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := use(s); err != nil {
				t.Fatal(err)
			}
			equal(t, "the tables", s.mustRows(t), good)
		})
	}
}

func TestTaskCommits(t *testing.T) {
	b := newBoard(t)
	b.create("a")
	b.create("ab")
	b.create("x", func(d *Draft) { d.Parents = []string{b.id("a")} })
	for i := range 300 { // more than one batch
		b.must(AddComment(b.id([]string{"a", "a", "ab"}[i%3]), "ann", fmt.Sprint(i), Writer{}))
	}
	b.wait(time.Second)
	b.must(Complete(b.id("a"), Answer{}, Writer{})) // concerns x too
	s := b.onDisk(t)
	for _, title := range []string{"a", "ab", "x"} {
		var all []uint64
		err := b.s.Mem.Read(1, func(c eventlog.Commit) error {
			for _, e := range c.Events {
				if e.Task == b.id(title) {
					all = append(all, c.Number)
					break
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []uint64{0, 1, 2, 150, all[len(all)-1], all[len(all)-1] + 1} {
			var got, want []uint64
			for _, n := range all {
				if n >= from {
					want = append(want, n)
				}
			}
			err := s.TaskCommits(b.id(title), from, func(c eventlog.Commit) error { got = append(got, c.Number); return nil })
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s from %d: %v, want %v", title, from, got, want)
			}
		}
	}
	stop := errors.New("enough")
	n := 0
	err := s.TaskCommits(b.id("a"), 0, func(eventlog.Commit) error { n++; return stop })
	if err != stop || n != 1 {
		t.Errorf("an error of the reader: %v after %d commits", err, n)
	}
}

func TestCommitOf(t *testing.T) {
	b := everyTable(t)
	s := b.onDisk(t)
	head := b.head()
	last := map[uint64]uint64{} // commit -> its last event
	if err := b.s.Mem.Read(1, func(c eventlog.Commit) error {
		last[c.Number] = c.Seq + uint64(len(c.Events)) - 1
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for seq := uint64(0); seq <= head.Seq+2; seq++ {
		want := uint64(1)
		for want <= head.Commit && last[want] <= seq {
			want++
		}
		got, err := s.CommitOf(seq)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("the first commit with an event above %d", seq), got, want)
	}
	none, err := newBoard(t).onDisk(t).CommitOf(0)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the first commit of an empty log", none, 1)
}

func TestCommitsReadsInOrder(t *testing.T) {
	b := everyTable(t)
	s := b.onDisk(t)
	next := uint64(3)
	if err := s.Commits(3, func(c eventlog.Commit) error {
		equal(t, "the commit", c.Number, next)
		next++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	equal(t, "one behind the last", next, b.head().Commit+1)
	id, err := s.UUID()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the identity", id, b.s.Mem.UUID())
}
