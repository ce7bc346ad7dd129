package eventlog

import (
	"fmt"
	"slices"
	"sync"

	"github.com/tidwall/btree"
)

// Mem is a log and tables in memory, with the methods of Tx: for tests, and to
// compare tables with a fresh fold. Nothing of it is durable. The methods of Log
// may be called from any goroutine; those of the tables by one at a time.
type Mem struct {
	uuid [16]byte

	mu      sync.Mutex
	head    Head
	entries [][]byte // as they would stand in bucket log

	tables btree.Map[string, *btree.Map[string, []byte]]
}

var _ Log = (*Mem)(nil)

// NewMem returns an empty log of the board uuid.
func NewMem(uuid [16]byte) *Mem {
	return &Mem{uuid: uuid, head: Head{Hash: genesis(uuid)}}
}

// UUID is the identity of the board.
func (m *Mem) UUID() [16]byte { return m.uuid }

// Head returns the end of the log.
func (m *Mem) Head() (Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head, nil
}

// Append stores one commit; see Log.
func (m *Mem) Append(after uint64, c Commit) (Commit, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.head.Commit != after {
		return Commit{}, fmt.Errorf("%w: decided on commit %d, the last is %d", ErrConflict, after, m.head.Commit)
	}
	c, entry, err := sealEntry(m.head, c)
	if err != nil {
		return Commit{}, err
	}
	m.entries = append(m.entries, entry)
	m.head = headOf(c)
	return c, nil
}

// Read calls fn for each commit; see Log. fn may use m.
func (m *Mem) Read(from uint64, fn func(Commit) error) error {
	prev := genesis(m.uuid)
	from = max(from, 1)
	for n := from; ; n++ {
		m.mu.Lock()
		if n > m.head.Commit {
			m.mu.Unlock()
			return nil
		}
		entry := m.entries[n-1]
		if n == from && n > 1 {
			// Only the one before it: a read of the last commit, which every
			// update does, must not cost the whole log.
			hash, _, err := decodeEntry(m.entries[n-2])
			if err != nil {
				m.mu.Unlock()
				return fmt.Errorf("commit %d: %w", n-1, err)
			}
			prev = hash
		}
		m.mu.Unlock()
		c, err := openEntry(entry, n, prev)
		if err != nil {
			return fmt.Errorf("commit %d: %w", n, err)
		}
		prev = c.Hash
		if err := fn(c); err != nil {
			return err
		}
	}
}

// Get returns the value of key in a table, nil if there is none. It must not be
// written to.
func (m *Mem) Get(table string, key []byte) []byte {
	t, ok := m.tables.Get(table)
	if !ok {
		return nil
	}
	v, _ := t.Get(string(key))
	return v
}

// Put sets key in a table, which it makes if needed. It panics on what fails a
// transaction on disk: an empty table name or key.
func (m *Mem) Put(table string, key, val []byte) {
	if table == "" || len(key) == 0 {
		panic("eventlog: put without a table or key")
	}
	t, ok := m.tables.Get(table)
	if !ok {
		t = new(btree.Map[string, []byte])
		m.tables.Set(table, t)
	}
	// Empty and absent are not the same, on disk neither.
	t.Set(string(key), append([]byte{}, val...))
}

// Delete removes key from a table; nothing happens if it is not there.
func (m *Mem) Delete(table string, key []byte) {
	if t, ok := m.tables.Get(table); ok {
		t.Delete(string(key))
	}
}

// Scan calls fn for the keys of a table from the first that is >= from,
// ascending, until fn returns false. fn must not change that table.
func (m *Mem) Scan(table string, from []byte, fn func(k, v []byte) bool) {
	t, ok := m.tables.Get(table)
	if !ok {
		return
	}
	t.Ascend(string(from), func(k string, v []byte) bool { return fn([]byte(k), slices.Clip(v)) })
}

// Tables returns the names of the tables, ascending.
func (m *Mem) Tables() []string { return m.tables.Keys() }
