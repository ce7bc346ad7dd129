package projection

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

// onDisk makes the same history in a store on disk.
func (b *board) onDisk(t testing.TB) *Store {
	t.Helper()
	home := t.TempDir()
	if _, err := eventlog.Create(home, "default", b.s.Mem.UUID(), 1, eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	s := Open(eventlog.BoardDir(home, "default"), eventlog.Options{})
	for _, st := range b.steps {
		// A refusal belongs to a history like an event; whether the two agree
		// is compared at the end.
		_, _ = s.Update(st.actor, st.now, st.do)
	}
	if head, err := s.file.Head(); err != nil || head != b.head() {
		t.Fatalf("the history on disk ends with %+v (%v), in memory with %+v", head, err, b.head())
	}
	return s
}

func verify(t *testing.T, s *Store) Report {
	t.Helper()
	rep, err := s.Verify()
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func TestVerifyOfACleanStore(t *testing.T) {
	b := everyTable(t)
	s := b.onDisk(t)
	rep, head := verify(t, s), b.head()
	runs := len(dump(b.s.Mem, tabRuns))
	want := Report{Commits: head.Commit, Events: head.Seq, Tasks: 14, Runs: runs, Head: fmt.Sprintf("%x", head.Hash), Trusted: head.Commit}
	equal(t, "the report", rep, want)
}

func TestVerifyOfAnEmptyStore(t *testing.T) {
	s := newBoard(t).onDisk(t)
	head, err := s.NewestCommit()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the report", verify(t, s), Report{Head: fmt.Sprintf("%x", head.Hash)})
}

// Every table, with a row lost, a row changed, a row too many.
func TestVerifyNamesADamagedTable(t *testing.T) {
	b := everyTable(t)
	s := b.onDisk(t)
	for _, table := range b.s.Mem.Tables() {
		rows := dump(b.s.Mem, table)
		first := rows[0]
		for _, d := range []struct {
			name string
			do   func(*eventlog.Tx)
			says string
		}{
			{"a row lost", func(tx *eventlog.Tx) { tx.Delete(table, rows[len(rows)-1].k) }, "lacks"},
			{"a row changed", func(tx *eventlog.Tx) { tx.Put(table, first.k, append(bytes.Clone(first.v), 1)) }, "differs"},
			{"a row too many", func(tx *eventlog.Tx) { tx.Put(table, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff"), []byte{1}) }, "does not follow"},
		} {
			if err := s.file.Update(func(tx *eventlog.Tx) error { d.do(tx); return nil }); err != nil {
				t.Fatal(err)
			}
			rep := verify(t, s)
			for _, piece := range []string{"table " + table, d.says, "kanlog rebuild"} {
				if !strings.Contains(rep.Problem, piece) {
					t.Errorf("%s of %s: %q lacks %q", d.name, table, rep.Problem, piece)
				}
			}
			equal(t, "the log is trusted to its end", rep.Trusted, b.head().Commit)
			if err := s.Rebuild(); err != nil {
				t.Fatal(err)
			}
			equal(t, "after a rebuild", verify(t, s).Problem, "")
		}
	}
}

func TestVerifyNamesATableThatIsNotOurs(t *testing.T) {
	s := everyTable(t).onDisk(t)
	if err := s.file.Update(func(tx *eventlog.Tx) error { tx.Put("secrets", []byte("k"), nil); return nil }); err != nil {
		t.Fatal(err)
	}
	if p := verify(t, s).Problem; !strings.Contains(p, "table secrets") {
		t.Errorf("the problem is %q", p)
	}
}

// Logs that no decider of ours wrote, each breaking one invariant.
func TestVerifyNamesABrokenInvariant(t *testing.T) {
	open := func(b *board) { card(b); b.claim("a") }
	over := func(b *board) { started(b); b.ends(2, 1) }
	asked := func(b *board) { started(b); b.must(RequestEnd(EndRequest{Run: 2, Reason: EndReclaim})) }
	answeredAlive := func(b *board) { started(b); b.must(Fail(b.id("a"), "x", b.limits, own(b))) }
	end := eventlog.End{To: Ready}
	for _, c := range []struct {
		name  string
		given func(b *board)
		actor string // with %s for the card's id; empty for an operator
		run   uint64
		data  eventlog.Payload
		card  string // empty for a
		says  string
	}{
		{"a card is created twice", card, "", 0, &eventlog.Created{Title: "a", Status: Ready}, "", "a second time"},
		{"an event of a card that never was", card, "", 0, &eventlog.Commented{Text: "x"}, "t_none", `card "t_none" was never created`},
		{"a refusal of a card that never was", card, "", 0, &eventlog.Fenced{}, "t_none", `card "t_none" was never created`},
		{"an event of a run that never was", card, "", 9, &eventlog.Heartbeat{}, "", "run 9 was never opened"},
		{"two open runs (I2)", open, "", 0, &eventlog.Claimed{}, "", "opens a second run"},
		{"a run beside a living worker (I2)", answeredAlive, "", 0, &eventlog.Claimed{}, "", "opens a second run"},
		{"an answer of its own beside a living worker (I2)", answeredAlive, "", 0, &eventlog.Completed{}, "", "opens a second run"},
		{"a worker of a closed run (I3)", over, "", 2, &eventlog.Spawned{}, "", "(I3)"},
		{"two workers of a run (I3)", started, "", 2, &eventlog.Spawned{}, "", "(I3)"},
		{"a worker of a run that was to end (I3)", func(b *board) {
			open(b)
			b.forge(event(b.id("a"), 2, &eventlog.TerminationRequested{}))
		}, "", 2, &eventlog.Spawned{}, "", "(I3)"},
		{"an exit of an open run", started, "", 2, &eventlog.Exited{}, "", "which is open or has no worker"},
		{"a reaping of an open run", started, "", 2, &eventlog.TerminalWorkerReaped{}, "", "which is open or has no worker"},
		{"a second exit", over, "", 2, &eventlog.Exited{}, "", "which is open or has no worker"},
		{"a beat after the end", over, "", 2, &eventlog.Heartbeat{}, "", "which has ended"},
		{"a longer lease after the end", over, "", 2, &eventlog.ClaimExtended{}, "", "which has ended"},
		{"two ends (I7)", over, "", 2, &eventlog.Crashed{End: end}, "", "a second time"},
		{"completed twice (I7)", func(b *board) { started(b); b.must(Complete(b.id("a"), Answer{}, own(b))) }, "", 2, &eventlog.Completed{}, "", "a second time"},
		{"a late worker (I4)", func(b *board) { over(b); b.wait(time.Hour); b.claim("a") }, "worker:%s/2", 2, &eventlog.Commented{Text: "x"}, "", "(I4)"},
		{"a worker in the name of another run (I4)", asked, "worker:%s/9", 2, &eventlog.Completed{}, "", "(I4)"},
		{"a worker without its run (I4)", started, "worker:%s/2", 0, &eventlog.Assigned{Assignee: "x"}, "", "(I4)"},
		{"running without a run", card, "", 0, &eventlog.Promoted{To: Running}, "", "is running with open run 0"},
		{"ready beside its open run", started, "", 0, &eventlog.Unblocked{To: Ready}, "", "is ready with open run 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			c.given(b)
			b.forged = true
			id, actor := b.id("a"), operator
			if c.card != "" {
				id = c.card
			}
			if c.actor != "" {
				actor = fmt.Sprintf(c.actor, id)
			}
			// The good part of the log, then the bad commit, on disk.
			home := t.TempDir()
			if _, err := eventlog.Create(home, "default", b.s.Mem.UUID(), 1, eventlog.Options{}); err != nil {
				t.Fatal(err)
			}
			s := Open(eventlog.BoardDir(home, "default"), eventlog.Options{})
			if err := b.s.Mem.Read(1, func(x eventlog.Commit) error {
				_, err := s.file.Append(x.Number-1, x)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			head := b.head()
			_, err := s.file.Append(head.Commit, eventlog.Commit{At: b.now, Actor: actor, Events: []eventlog.Event{
				event(b.id("a"), 0, &eventlog.Fenced{}), event(id, c.run, c.data),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.file.Update(func(tx *eventlog.Tx) error { tx.SetTablesFormat(TablesFormat); return nil }); err != nil {
				t.Fatal(err)
			}
			rep := verify(t, s)
			place := fmt.Sprintf("commit %d, event %d: ", head.Commit+1, head.Seq+2)
			if !strings.HasPrefix(rep.Problem, place) || !strings.Contains(rep.Problem, c.says) {
				t.Errorf("the problem is %q, want %q at %q", rep.Problem, c.says, place)
			}
			equal(t, "trusted through", rep.Trusted, head.Commit)
		})
	}
}
