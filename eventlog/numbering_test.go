package eventlog

import (
	"errors"
	"testing"
)

// A commit has to follow on the one before, and what it says of its own place has
// to fit, also if whoever wrote it knew how to make a chain: else two tools that
// read the log would tell two histories.
func TestForgedPlaces(t *testing.T) {
	// forge puts an entry behind the end of the log.
	forge := func(t *testing.T, f *File, counted bool, change func(c *Commit, prev *[32]byte)) {
		t.Helper()
		if err := f.Update(func(tx *Tx) error {
			head, err := tx.Head()
			if err != nil {
				return err
			}
			c := note("ann", 1)
			c.Number, c.Seq = head.Commit+1, head.Seq+1
			key := number(c.Number)
			prev := head.Hash
			change(&c, &prev)
			body, err := encodeBody(c)
			if err != nil {
				return err
			}
			tx.changed = true
			hash := chain(prev, body)
			if err := tx.log.Put(key, encodeEntry(hash, body)); err != nil || !counted {
				return err
			}
			// One that fits on it, since of the last one more is checked.
			next := note("bob", 1)
			next.Number, next.Seq = head.Commit+2, c.Seq+1
			if body, err = encodeBody(next); err != nil {
				return err
			}
			return errors.Join(tx.log.SetSequence(next.Number), tx.log.Put(number(next.Number), encodeEntry(chain(hash, body), body)))
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		counted bool
		change  func(c *Commit, prev *[32]byte)
	}{
		"calls itself another number":            {true, func(c *Commit, _ *[32]byte) { c.Number += 5 }},
		"calls itself the number before":         {true, func(c *Commit, _ *[32]byte) { c.Number-- }},
		"begins with an event of the one before": {true, func(c *Commit, _ *[32]byte) { c.Seq-- }},
		"leaves out events":                      {true, func(c *Commit, _ *[32]byte) { c.Seq += 3 }},
		"follows on another one":                 {true, func(_ *Commit, prev *[32]byte) { prev[0]++ }},
		"is right, but behind the end":           {false, func(*Commit, *[32]byte) {}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile(t)
			mustAppend(t, f, note("ann", 2))
			forge(t, f, c.counted, c.change)
			_, err := readAll(f)
			refusedAs(t, err, Damaged)
		})
	}
	t.Run("nothing wrong", func(t *testing.T) {
		f := newFile(t)
		mustAppend(t, f, note("ann", 2))
		forge(t, f, true, func(*Commit, *[32]byte) {})
		if all := mustRead(t, f); len(all) != 3 {
			t.Errorf("%d commits, want 3", len(all))
		}
	})
}

// An older program must not open what a newer one has appended to.
func TestAppendRaisesTheFormat(t *testing.T) {
	f := newFile(t)
	if err := f.Update(func(tx *Tx) error {
		tx.changed = true
		return tx.meta.Put(metaFormat, number(Format-1))
	}); err != nil {
		t.Fatal(err)
	}
	format := func() (n uint64) {
		if err := f.View(func(tx *Tx) error { n = tx.Format(); return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := format(); n != Format-1 {
		t.Fatalf("format %d", n)
	}
	mustAppend(t, f, note("ann", 1))
	if n := format(); n != Format {
		t.Errorf("after an append by this program the format is %d, want %d", n, Format)
	}
}
