package eventlog

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// bbolt's file begins with two meta pages; a transaction with number n writes
// page n%2 last. bbolt itself opens a file if either is whole.
const (
	pageHeader  = 16 // id (8), flags (2), count (2), overflow (4)
	metaSize    = 64 // see metaPage, in this order
	boltMagic   = 0xED0CDAED
	boltVersion = 2
	flagBranch  = 0x01
	flagLeaf    = 0x02
	flagMeta    = 0x04
	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

// metaPage is what a meta page says. bbolt writes it as it lies in memory, in
// the byte order of the machine.
type metaPage struct {
	magic, version, pageSize, flags uint32
	root, sequence, freelist        uint64 // pages; sequence is the root bucket's, unused
	high                            uint64 // every page in use has a lower number
	txid                            uint64
	checksum                        uint64 // FNV-1a over all before it
}

// readMeta reads the meta page id at an offset and checks it for itself.
func readMeta(r io.ReaderAt, id uint64, offset int64) (m metaPage, err error) {
	b := make([]byte, pageHeader+metaSize)
	if _, err := r.ReadAt(b, offset); err != nil {
		return m, fmt.Errorf("meta page %d: %w", id, err)
	}
	o := binary.NativeEndian
	raw := b[pageHeader:]
	m = metaPage{
		magic: o.Uint32(raw), version: o.Uint32(raw[4:]), pageSize: o.Uint32(raw[8:]), flags: o.Uint32(raw[12:]),
		root: o.Uint64(raw[16:]), sequence: o.Uint64(raw[24:]), freelist: o.Uint64(raw[32:]),
		high: o.Uint64(raw[40:]), txid: o.Uint64(raw[48:]), checksum: o.Uint64(raw[56:]),
	}
	sum := fnv.New64a()
	sum.Write(raw[:56])
	switch {
	case m.magic != boltMagic:
		err = fmt.Errorf("meta page %d: no bbolt magic", id)
	case m.version != boltVersion:
		err = fmt.Errorf("meta page %d: bbolt version %d, want %d", id, m.version, boltVersion)
	case m.checksum != sum.Sum64():
		err = fmt.Errorf("meta page %d: wrong checksum", id)
	case o.Uint64(b) != id || o.Uint16(b[8:]) != flagMeta:
		err = fmt.Errorf("meta page %d: wrong page header", id)
	case m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0:
		err = fmt.Errorf("meta page %d: page size %d", id, m.pageSize)
	case m.root < 2 || m.root >= m.high || m.freelist < 2 || m.freelist >= m.high:
		err = fmt.Errorf("meta page %d: root or freelist outside of the %d pages in use", id, m.high)
	}
	return m, err
}

// readMetas reads both meta pages and returns the newer one.
func readMetas(r io.ReaderAt, pageSize uint32) (metaPage, error) {
	a, err := readMeta(r, 0, 0)
	if err != nil {
		return a, err
	}
	b, err := readMeta(r, 1, int64(pageSize))
	if err != nil {
		return b, err
	}
	if b.txid > a.txid {
		return b, nil
	}
	return a, nil
}
