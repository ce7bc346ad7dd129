package projection

import (
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"kanlog/eventlog"
)

// What is rehearsed is seen by what is rehearsed next, and by nobody else.
func TestRehearsal(t *testing.T) {
	b := newBoard(t)
	b.create("a")
	before := b.head()
	r := Rehearse(b.s)
	claim := Claim(b.claimFor("a"), Writer{})
	res, err := r.Update(operator, b.now, claim)
	if err != nil || len(res.Commit.Events) != 1 {
		t.Fatalf("rehearsed claim: %v, %d events", err, len(res.Commit.Events))
	}
	if _, err := r.Update(operator, b.now, claim); !errors.Is(err, ErrState) {
		t.Errorf("claimed twice in one rehearsal: %v", err)
	}
	err = r.View(func(v View) error {
		active, err := v.Active()
		if err == nil && (len(active) != 1 || active[0].ID != res.Commit.Seq || len(v.ReadyAssignees()) != 0) {
			t.Errorf("active %v, ready for %v after the rehearsed claim", active, v.ReadyAssignees())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if b.head() != before || b.task("a").Status != Ready {
		t.Errorf("the rehearsal changed the board: %+v, was %+v; the card is %s", b.head(), before, b.task("a").Status)
	}
	b.must(claim)
}

// Tables under changes read like tables that were changed.
func TestOverlayReadsLikeChangedTables(t *testing.T) {
	const table, keys = "numbers", 40
	rnd := rand.New(rand.NewSource(1))
	key := func() []byte { return fmt.Appendf(nil, "%02d", rnd.Intn(keys)) }
	for round := range 200 {
		base, want := eventlog.NewMem([16]byte{}), eventlog.NewMem([16]byte{})
		for range rnd.Intn(keys) {
			k := key()
			base.Put(table, k, k)
			want.Put(table, k, k)
		}
		o := overlay{base, map[string]map[string][]byte{}}
		for i := range rnd.Intn(keys) {
			k := key()
			if rnd.Intn(2) == 0 {
				o.Delete(table, k)
				want.Delete(table, k)
				continue
			}
			v := fmt.Appendf(nil, "%d", i)
			if i%5 == 0 {
				v = nil // an empty value is not a deleted one
			}
			o.Put(table, k, v)
			want.Put(table, k, v)
		}
		for range 20 {
			from, most := key(), 1+rnd.Intn(keys)
			if got, want := scanned(o, table, from, most), scanned(want, table, from, most); got != want {
				t.Fatalf("round %d, from %s, at most %d:\ngot  %s\nwant %s", round, from, most, got, want)
			}
			if got, want := o.Get(table, from), want.Get(table, from); string(got) != string(want) || (got == nil) != (want == nil) {
				t.Fatalf("round %d: get %s: %q, want %q", round, from, got, want)
			}
		}
	}
}

func scanned(r Reader, table string, from []byte, most int) (pairs string) {
	r.Scan(table, from, func(k, v []byte) bool {
		pairs += fmt.Sprintf("%s=%s ", k, v)
		most--
		return most > 0
	})
	return pairs
}
