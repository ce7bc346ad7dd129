package eventlog

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// tables are the methods that Tx and Mem have in common.
type tables interface {
	Get(table string, key []byte) []byte
	Put(table string, key, val []byte)
	Delete(table string, key []byte)
	Scan(table string, from []byte, fn func(k, v []byte) bool)
	Tables() []string
	Head() (Head, error)
	Append(after uint64, c Commit) (Commit, error)
	Read(from uint64, fn func(Commit) error) error
	UUID() [16]byte
}

var (
	_ tables = (*Tx)(nil)
	_ tables = (*Mem)(nil)
)

func content(t tables) (out []string) {
	out = append(out, fmt.Sprintf("%x %q", t.UUID(), t.Tables()))
	for _, name := range append(t.Tables(), "none") {
		t.Scan(name, nil, func(k, v []byte) bool {
			out = append(out, fmt.Sprintf("%s %x %x", name, k, v))
			return true
		})
	}
	return out
}

// The two backends do the same for the same calls, over many transactions, some
// of them dropped.
func TestTablesLikeMem(t *testing.T) {
	smallPages(t)
	f, m := newFile(t), NewMem(testUUID)
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		type op func(tables)
		var ops []op
		for range rnd.IntN(60) {
			name := string(rune('a' + rnd.IntN(4)))
			key := fmt.Appendf(nil, "k%03d", rnd.IntN(300))
			val := make([]byte, rnd.IntN(120))
			if rnd.IntN(3) == 0 {
				ops = append(ops, func(t tables) { t.Delete(name, key) })
			} else {
				ops = append(ops, func(t tables) { t.Put(name, key, val) })
			}
		}
		from := fmt.Appendf(nil, "k%03d", rnd.IntN(300))
		err := f.Update(func(tx *Tx) error {
			for _, o := range ops {
				o(tx)
				o(m)
			}
			if a, b := content(tx), content(m); !slices.Equal(a, b) {
				t.Fatalf("round %d, inside: %d lines, in memory %d", round, len(a), len(b))
			}
			for _, n := range []int{1, 5} {
				var a, b []string
				some := func(to *[]string) func(k, v []byte) bool {
					return func(k, v []byte) bool {
						*to = append(*to, fmt.Sprintf("%s %x", k, v))
						return len(*to) < n
					}
				}
				tx.Scan("a", from, some(&a))
				m.Scan("a", from, some(&b))
				if !slices.Equal(a, b) {
					t.Fatalf("round %d: scan from %s gives %q, in memory %q", round, from, a, b)
				}
			}
			if a, b := tx.Get("b", from), m.Get("b", from); !reflect.DeepEqual(a, b) {
				t.Fatalf("round %d: get %s gives %v, in memory %v", round, from, a, b)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.View(func(tx *Tx) error {
			if a, b := content(tx), content(m); !slices.Equal(a, b) {
				t.Fatalf("round %d, committed: %d lines, in memory %d", round, len(a), len(b))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEmptyValueIsNotAbsent(t *testing.T) {
	f, m := newFile(t), NewMem(testUUID)
	if err := f.Update(func(tx *Tx) error {
		for _, x := range []tables{tx, m} {
			x.Put("a", []byte("k"), nil)
			if v := x.Get("a", []byte("k")); v == nil || len(v) != 0 {
				t.Errorf("%T: %v, want an empty value", x, v)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := f.View(func(tx *Tx) error {
		if v := tx.Get("a", []byte("k")); v == nil || len(v) != 0 {
			t.Errorf("committed: %v, want an empty value", v)
		}
		if v := tx.Get("meta", []byte("magic")); v != nil {
			t.Errorf("bucket meta can be read as a table: %q", v)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestIdentity(t *testing.T) {
	f := newFile(t)
	if err := f.Update(func(tx *Tx) error { tx.SetTablesFormat(5); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := f.View(func(tx *Tx) error {
		if tx.UUID() != testUUID || tx.CreatedAt() != 1_700_000_000_000_000 || tx.Format() != Format || tx.TablesFormat() != 5 {
			t.Errorf("%x %d %d %d", tx.UUID(), tx.CreatedAt(), tx.Format(), tx.TablesFormat())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
