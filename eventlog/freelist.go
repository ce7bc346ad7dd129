package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

const flagFreelist = 0x10

// readFreelist reads the numbers of the pages that no tree uses, and how many
// pages the list takes itself. bbolt writes new data to any page named there
// without a look at what the page holds, and believes every number: one that is
// wrong costs a commit that was acknowledged long ago. So a writer refuses a list
// that bbolt cannot have written. One that names a page too many, in its place,
// looks right: to find that takes a walk over the whole store, which verify does
// (CheckPages).
//
// It is asked before bbolt is, which makes room for as many as the page says.
func readFreelist(r io.ReaderAt, path string, m metaPage) (free []uint64, reach uint64, err error) {
	bad := func(format string, a ...any) ([]uint64, uint64, error) {
		return nil, 0, &RefusedError{Path: path, Kind: Damaged, Detail: fmt.Sprintf("freelist: "+format, a...)}
	}
	o, at := binary.NativeEndian, int64(m.freelist)*int64(m.pageSize)
	var head [pageHeader + 8]byte
	if _, err := r.ReadAt(head[:], at); diskFailed(err) {
		return nil, 0, fmt.Errorf("look at store: %w", err)
	} else if err != nil {
		return bad("page %d: %v", m.freelist, err)
	}
	n, over := uint64(o.Uint16(head[10:])), uint64(o.Uint32(head[12:]))
	if o.Uint64(head[:]) != m.freelist || o.Uint16(head[8:]) != flagFreelist || m.freelist+over >= m.high {
		return bad("page %d is none", m.freelist)
	}
	at += pageHeader
	room := ((over+1)*uint64(m.pageSize) - pageHeader) / 8
	if n == 0xffff { // then the real number comes first
		n, at, room = o.Uint64(head[pageHeader:]), at+8, room-1
	}
	if n > room {
		return bad("page %d cannot hold %d numbers", m.freelist, n)
	}
	list := make([]byte, 8*n)
	if _, err := r.ReadAt(list, at); diskFailed(err) {
		return nil, 0, fmt.Errorf("look at store: %w", err)
	} else if err != nil {
		return bad("page %d: %v", m.freelist, err)
	}
	free = make([]uint64, n)
	for i := range free {
		free[i] = o.Uint64(list[8*i:])
		if free[i] < 2 || free[i] >= m.high || i > 0 && free[i] <= free[i-1] {
			return bad("page %d stands at place %d of %d", free[i], i, n)
		}
	}
	return free, over + 1, nil
}

// CheckPages walks every tree of the store and checks that each page is part of
// one of them, or free, and of nothing else. Its cost grows with the store.
func (t *Tx) CheckPages() error {
	p := t.pages
	if p.size == 0 {
		return nil // being made, and seen by nobody else
	}
	use := make([]string, len(p.data)/p.size)
	take := func(id, n uint64, what string) error {
		for ; n > 0; id, n = id+1, n-1 {
			if use[id] != "" {
				return p.damaged("page %d is %s and %s", id, use[id], what)
			}
			use[id] = what
		}
		return nil
	}
	// A page that was taken before is not walked again, so that a circle ends.
	var tree func(id uint64, what string, depth int) error
	tree = func(id uint64, what string, depth int) error {
		g, err := p.at(id)
		if err != nil {
			return err
		}
		if err := take(id, uint64(len(g.b)/p.size), what); err != nil {
			return err
		}
		if depth == maxDepth {
			return p.damaged("its pages are %d deep at page %d", depth, id)
		}
		for i := range g.n {
			switch {
			case !g.leaf:
				err = tree(g.child(i), what, depth+1)
			case g.flagged(i):
				value := g.value(i)
				if !soundBucket(value) {
					return p.damaged("element %d of page %d is no bucket", i, id)
				}
				if root := binary.NativeEndian.Uint64(value); root != 0 {
					err = tree(root, fmt.Sprintf("part of %q", g.key(i)), 0)
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	free, reach, err := readFreelist(bytes.NewReader(p.data), t.path, t.store)
	if err != nil {
		return err
	}
	for _, id := range free {
		if err := take(id, 1, "free"); err != nil {
			return err
		}
	}
	if err := take(t.store.freelist, reach, "the freelist"); err != nil {
		return err
	}
	if err := tree(t.store.root, "part of the list of tables", 0); err != nil {
		return err
	}
	for id := 2; id < len(use); id++ {
		if use[id] == "" {
			return p.damaged("page %d is neither free nor part of anything", id)
		}
	}
	return nil
}
