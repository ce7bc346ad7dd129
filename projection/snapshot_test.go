package projection

import "testing"

// A snapshot is the board at its head, whatever is written after it was taken, and
// knows where that was.
func TestSnapshotStaysAsItWas(t *testing.T) {
	b := everyTable(t)
	s := b.onDisk(t)
	before := s.mustRows(t)
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.NewestCommit()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(operator, b.now, Create(draft("one more"), Writer{})); err != nil {
		t.Fatal(err)
	}
	equal(t, "its tables", rows(snap.r.(ending).Mem), before)
	got, err := snap.View.Head()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "its end", got, head)
	equal(t, "its head", snap.Head, head)
	oldest := uint64(0)
	for _, id := range snap.Cards {
		c, err := snap.MustTask(id)
		if err != nil || c.CreatedSeq <= oldest {
			t.Errorf("%s: %v, or not in the order of age", id, err)
		}
		oldest = c.CreatedSeq
	}
	n := 0
	snap.scan(tabTasks, nil, func(_, _ []byte) bool { n++; return true })
	equal(t, "cards", len(snap.Cards), n)
}
