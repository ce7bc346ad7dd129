package eventlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
)

// The list of free pages is the one part of a store that no answer depends on,
// and the one that decides what the next write destroys.
func TestFreelist(t *testing.T) {
	f, want := filled(t)
	store := mustBytes(t, f.store())
	var meta metaPage
	var free []uint64
	check := func() error {
		return f.View(func(tx *Tx) (err error) {
			meta = tx.store
			if free, _, err = readFreelist(bytes.NewReader(tx.pages.data), "", meta); err != nil {
				t.Error(err)
			}
			return tx.CheckPages()
		})
	}
	if err := check(); err != nil {
		t.Fatalf("a whole store: %v", err)
	}
	if len(free) < 2 {
		t.Fatalf("%d free pages; the test means nothing without", len(free))
	}
	o := binary.NativeEndian
	list := meta.freelist*1024 + pageHeader
	// spoilt writes the store with a change in its freelist and looks at it.
	spoilt := func(what string, change func(b []byte), writes error) {
		t.Helper()
		b := bytes.Clone(store)
		change(b)
		mustWrite(t, f.store(), b)
		if err := f.View((*Tx).CheckPages); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: checked: %v", what, err)
		}
		probe(t, what, f, want, true)
		if writes != nil {
			if _, err := f.Append(want[len(want)-1].Number, note("ann", 1)); !errors.Is(err, writes) {
				t.Errorf("%s: append: %v", what, err)
			}
			unchanged(t, f.store(), b)
		}
	}
	number := func(i int, id uint64) func([]byte) {
		return func(b []byte) { o.PutUint64(b[list+8*uint64(i):], id) }
	}
	last := len(free) - 1
	spoilt("the list is no list", func(b []byte) { o.PutUint16(b[list-8:], flagLeaf) }, ErrRefused)
	spoilt("it reaches beyond the file", func(b []byte) { o.PutUint32(b[list-4:], 1<<30) }, ErrRefused)
	spoilt("more numbers than it can hold", func(b []byte) { o.PutUint16(b[list-6:], 0xfffe) }, ErrRefused)
	spoilt("a count that no memory holds", func(b []byte) { o.PutUint16(b[list-6:], 0xffff); o.PutUint64(b[list:], 1<<60) }, ErrRefused)
	spoilt("a number beyond the file", number(last, meta.high), ErrRefused)
	spoilt("a meta page", number(0, 1), ErrRefused)
	spoilt("one number twice", number(1, free[0]), ErrRefused)
	spoilt("one page missing", func(b []byte) { o.PutUint16(b[list-6:], uint16(last)) }, nil)
	// Pages in use that look right in their place: a writer would believe them.
	used := 0
	for id := uint64(2); id < meta.high; id++ {
		for i := range free {
			if id > free[i] && (i == last || id < free[i+1]) {
				spoilt(fmt.Sprintf("page %d, which is in use, instead of %d", id, free[i]), number(i, id), nil)
				used++
			}
		}
	}
	if used == 0 {
		t.Error("no page in use was named free")
	}
}
