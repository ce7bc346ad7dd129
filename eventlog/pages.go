package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"
	"unsafe"

	bolt "go.etcd.io/bbolt"
)

// maxDepth is more than any tree can have: each branch has two children or more.
const maxDepth = 64

// pages looks at the committed pages of an open store through bbolt's own
// mapping. It exists because bbolt follows page numbers without looking back: a
// damaged number that points to a page above it is an endless descent, and the
// overflow of the stack kills the process, which no recover can stop. So each
// path is walked here before bbolt walks it.
type pages struct {
	path string
	data []byte
	size int
}

// viewPages must be called right after bbolt opened the file: m is what
// checkPages found in it, so the mapping reaches to m.high. It is valid until
// the transaction is committed, when bbolt may map the file anew.
func viewPages(db *bolt.DB, path string, m metaPage) pages {
	start := db.Info().Data
	// Through a pointer to the number, since vet cannot know that this address
	// is outside of Go's heap.
	base := *(**byte)(unsafe.Pointer(&start))
	return pages{path: path, data: unsafe.Slice(base, int(m.high)*int(m.pageSize)), size: int(m.pageSize)}
}

func (p pages) damaged(format string, a ...any) error {
	return &RefusedError{Path: p.path, Kind: Damaged, Detail: fmt.Sprintf(format, a...)}
}

// page is one page of a tree with what overflows it. Everything its elements
// point to is inside of it.
type page struct {
	b    []byte
	n    int
	leaf bool
}

func (p pages) at(id uint64) (page, error) {
	count := uint64(len(p.data) / p.size)
	if id < 2 || id >= count {
		return page{}, p.damaged("page %d is outside of the %d pages in use", id, count)
	}
	head := p.data[id*uint64(p.size):]
	o := binary.NativeEndian
	self, flags, n, over := o.Uint64(head), o.Uint16(head[8:]), int(o.Uint16(head[10:])), uint64(o.Uint32(head[12:]))
	if self != id {
		return page{}, p.damaged("page %d calls itself %d", id, self)
	}
	if flags != flagLeaf && flags != flagBranch {
		return page{}, p.damaged("page %d has type %#x in the place of a tree's", id, flags)
	}
	if id+over >= count {
		return page{}, p.damaged("page %d reaches beyond the %d pages in use", id, count)
	}
	g := page{b: head[:(over+1)*uint64(p.size)], n: n, leaf: flags == flagLeaf}
	if !g.sound() || (!g.leaf && n == 0) {
		return page{}, p.damaged("page %d cannot hold its %d elements", id, n)
	}
	return g, nil
}

// sound reports whether all elements lie inside of the page.
func (g page) sound() bool {
	if pageHeader+16*g.n > len(g.b) {
		return false
	}
	for i := range g.n {
		if start, length := g.span(i); start+length > uint64(len(g.b)) {
			return false
		}
	}
	return true
}

// soundBucket reports whether a value of the root tree can be a bucket: root
// page and sequence (8 bytes each), and, if the root is 0, the bucket's only
// page right behind them. bbolt copies such a page to Go's heap, and what it
// then reads beyond the end is anybody's.
func soundBucket(value []byte) bool {
	o := binary.NativeEndian
	if len(value) < 16 {
		return false
	}
	if o.Uint64(value) != 0 {
		return true
	}
	b := value[16:]
	if len(b) < pageHeader || o.Uint16(b[8:]) != flagLeaf {
		return false
	}
	g := page{b: b, n: int(o.Uint16(b[10:])), leaf: true}
	if !g.sound() {
		return false
	}
	for i := range g.n {
		if g.flagged(i) {
			return false
		}
	}
	return true
}

// span is where the key of element i begins, and how long key and value are.
func (g page) span(i int) (start, length uint64) {
	at := pageHeader + 16*i
	e, o := g.b[at:], binary.NativeEndian
	if g.leaf { // flags, position, key size, value size
		return uint64(at) + uint64(o.Uint32(e[4:])), uint64(o.Uint32(e[8:])) + uint64(o.Uint32(e[12:]))
	}
	// position, key size, page (8)
	return uint64(at) + uint64(o.Uint32(e)), uint64(o.Uint32(e[4:]))
}

func (g page) key(i int) []byte {
	start, length := g.span(i)
	if g.leaf {
		length = uint64(binary.NativeEndian.Uint32(g.b[pageHeader+16*i+8:]))
	}
	return g.b[start : start+length]
}

// value is of element i of a leaf.
func (g page) value(i int) []byte {
	start, length := g.span(i)
	return g.b[start+uint64(len(g.key(i))) : start+length]
}

// flagged reports whether element i of a leaf calls itself a bucket; bbolt then
// acts as if there were no value.
func (g page) flagged(i int) bool {
	return binary.NativeEndian.Uint32(g.b[pageHeader+16*i:]) != 0
}

func (g page) child(i int) uint64 { return binary.NativeEndian.Uint64(g.b[pageHeader+16*i+8:]) }

// walk is a path from the root of a tree to a leaf.
type walk struct {
	pages
	buckets bool // the tree holds buckets, not values
	stack   []step
}

type step struct {
	page
	index int
}

// seek walks as bbolt's search for key does.
func (w *walk) seek(root uint64, key []byte) error {
	w.stack = w.stack[:0]
	return w.down(root, func(g page) int {
		i := sort.Search(g.n, func(i int) bool { return bytes.Compare(g.key(i), key) >= 0 })
		if i == g.n || (i > 0 && !bytes.Equal(g.key(i), key)) {
			i--
		}
		return i
	})
}

// next goes to the leaf on the right of this one; false if there is none.
func (w *walk) next() (bool, error) {
	w.stack = w.stack[:len(w.stack)-1]
	for len(w.stack) > 0 {
		top := &w.stack[len(w.stack)-1]
		if top.index+1 < top.n {
			top.index++
			return true, w.down(top.child(top.index), func(page) int { return 0 })
		}
		w.stack = w.stack[:len(w.stack)-1]
	}
	return false, nil
}

func (w *walk) down(id uint64, pick func(page) int) error {
	for len(w.stack) < maxDepth {
		g, err := w.at(id)
		if err != nil {
			return err
		}
		s := step{page: g}
		if !g.leaf {
			s.index = pick(g)
		}
		for i := range g.n {
			if g.leaf && (g.flagged(i) != w.buckets || w.buckets && !soundBucket(g.value(i))) {
				return w.damaged("element %d of page %d is not what belongs there", i, id)
			}
		}
		// bbolt steps over a leaf without elements into pages that were not
		// walked here; it never writes one below the root.
		if g.leaf && g.n == 0 && len(w.stack) > 0 {
			return w.damaged("page %d is an empty leaf", id)
		}
		w.stack = append(w.stack, s)
		if g.leaf {
			return nil
		}
		id = g.child(s.index)
	}
	return w.damaged("its pages go round in a circle at page %d", id)
}

// leaf is where the walk stands.
func (w *walk) leaf() page { return w.stack[len(w.stack)-1].page }
