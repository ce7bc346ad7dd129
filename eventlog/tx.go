package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// logFill is how full bbolt fills the log's pages. Keys only grow there, so the
// half that it leaves free by default would stay free for ever.
const logFill = 0.95

// Tx is one transaction on a store: the log, and the tables that are folds of
// it. It is valid only inside the function it was given to, in the goroutine of
// that function. Nothing of it is durable before File.Update returned nil.
type Tx struct {
	btx    *bolt.Tx
	pages  pages
	root   uint64
	store  metaPage
	path   string
	frozen string // why the log may not grow here, "" if it may

	identity
	format uint64

	meta, log *bolt.Bucket
	head      *Head
	tables    map[string]*bolt.Bucket

	changed bool
	err     error // the first error of a method that returns none
}

// loadTx reads what stands in bucket meta and refuses stores of others.
func loadTx(btx *bolt.Tx, p pages, m metaPage) (*Tx, error) {
	t := &Tx{btx: btx, pages: p, root: m.root, store: m, path: p.path, tables: make(map[string]*bolt.Bucket)}
	refuse := func(kind RefusedKind, detail string) (*Tx, error) {
		return nil, &RefusedError{Path: t.path, Kind: kind, Detail: detail}
	}
	if t.meta = t.bucket(bucketMeta); t.meta == nil {
		return refuse(Foreign, "a bbolt file, but not a board's")
	}
	if v := t.metaGet(metaMagic); string(v) != magic {
		return refuse(Foreign, "a bbolt file, but not a board's")
	}
	var created uint64
	for _, f := range []struct {
		key []byte
		to  *uint64
	}{{metaFormat, &t.format}, {metaTables, &t.tablesFormat}, {metaCreated, &created}} {
		v := t.metaGet(f.key)
		if len(v) != 8 {
			return refuse(Damaged, fmt.Sprintf("%s is %d bytes, want 8", f.key, len(v)))
		}
		*f.to = binary.BigEndian.Uint64(v)
	}
	t.created = Time(created)
	if t.format > Format {
		return refuse(Newer, fmt.Sprintf("it has format %d, this program knows up to %d", t.format, Format))
	}
	if t.format == 0 {
		return refuse(Damaged, "it has format 0")
	}
	uuid := t.metaGet(metaUUID)
	if len(uuid) != 16 {
		return refuse(Damaged, fmt.Sprintf("its uuid is %d bytes, want 16", len(uuid)))
	}
	t.uuid = [16]byte(uuid)
	if t.log = t.bucket(bucketLog); t.log == nil {
		return refuse(Damaged, "it has no log")
	}
	t.log.FillPercent = logFill
	return t, nil
}

// identity is what a store has from its making, and keeps over a rebuild.
type identity struct {
	uuid         [16]byte
	created      Time
	tablesFormat uint64
}

// write makes the buckets of a new store.
func (id identity) write(btx *bolt.Tx) error {
	meta, err1 := btx.CreateBucket(bucketMeta)
	_, err2 := btx.CreateBucket(bucketLog)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return errors.Join(
		meta.Put(metaMagic, []byte(magic)),
		meta.Put(metaFormat, number(Format)),
		meta.Put(metaTables, number(id.tablesFormat)),
		meta.Put(metaUUID, id.uuid[:]),
		meta.Put(metaCreated, number(uint64(id.created))),
	)
}

// UUID is the identity of the board; it never changes.
func (t *Tx) UUID() [16]byte { return t.uuid }

// CreatedAt is when the board was made, as the maker's clock said.
func (t *Tx) CreatedAt() Time { return t.created }

// Format is the format the store was last appended to with, at most Format.
func (t *Tx) Format() uint64 { return t.format }

// TablesFormat is the format the tables were last rebuilt for, 0 if never.
func (t *Tx) TablesFormat() uint64 { return t.tablesFormat }

// SetTablesFormat records that the tables have the form of format n.
func (t *Tx) SetTablesFormat(n uint64) {
	if t.tablesFormat == n {
		return
	}
	t.walkTo(t.meta, metaTables)
	t.keep(t.meta.Put(metaTables, number(n)))
	t.tablesFormat, t.changed = n, true
}

// Head returns the end of the log. The last commit is checked against its hash
// and against the count that bucket log keeps of its commits.
func (t *Tx) Head() (Head, error) {
	if t.head != nil {
		return *t.head, nil
	}
	head, err := t.headAt(t.log.Sequence())
	if err != nil {
		return Head{}, err
	}
	w := t.walkTo(t.log, number(head.Commit+1))
	cur := t.log.Cursor()
	if k, _ := cur.Seek(number(head.Commit + 1)); k != nil {
		return Head{}, t.damaged("log: key %x behind the last commit, %d", k, head.Commit)
	}
	if w != nil {
		if more, err := w.next(); more || err != nil {
			return Head{}, errors.Join(t.damaged("log: pages behind the last commit, %d", head.Commit), err)
		}
	}
	t.head = &head
	return head, nil
}

// headAt is the end of the log as it was when commit n was the last.
func (t *Tx) headAt(n uint64) (Head, error) {
	if n == 0 {
		return Head{Hash: genesis(t.uuid)}, nil
	}
	prev, err := t.hashOf(n - 1)
	if err != nil {
		return Head{}, err
	}
	c, err := t.commit(n, prev)
	if err != nil {
		return Head{}, err
	}
	return headOf(c), nil
}

// hashOf is the hash recorded for commit n, itself unchecked: the commit behind
// it does not match unless it is right.
func (t *Tx) hashOf(n uint64) ([32]byte, error) {
	if n == 0 {
		return genesis(t.uuid), nil
	}
	v := t.get(t.log, number(n))
	if v == nil {
		return [32]byte{}, t.damaged("log: commit %d is missing", n)
	}
	hash, _, err := decodeEntry(v)
	if err != nil {
		return hash, t.damaged("log: commit %d: %v", n, err)
	}
	return hash, nil
}

// GoesOnFrom is for who has read up to a head and reads on in another transaction:
// ErrReplaced if that head is not in the log any more.
func (t *Tx) GoesOnFrom(h Head) error {
	if t.log.Sequence() < h.Commit {
		return ErrReplaced
	}
	hash, err := t.hashOf(h.Commit)
	if err == nil && hash != h.Hash {
		err = ErrReplaced
	}
	return err
}

// commit reads commit n, which must follow on prev.
func (t *Tx) commit(n uint64, prev [32]byte) (Commit, error) {
	v := t.get(t.log, number(n))
	if v == nil {
		return Commit{}, t.damaged("log: commit %d is missing", n)
	}
	c, err := openEntry(v, n, prev)
	if err != nil {
		return Commit{}, t.damaged("log: commit %d: %v", n, err)
	}
	return c, nil
}

// Append stores c behind commit number after and returns it with Number, Seq
// and Hash set. ErrConflict, and nothing stored, if the log's last commit is
// another; an error too if an event has no payload or there is none. Several in
// one transaction are one decision on disk, but readers may see them apart.
func (t *Tx) Append(after uint64, c Commit) (Commit, error) {
	if t.frozen != "" {
		return Commit{}, errors.New(t.frozen)
	}
	head, err := t.Head()
	if err != nil {
		return Commit{}, err
	}
	if head.Commit != after {
		return Commit{}, fmt.Errorf("%w: decided on commit %d, the last is %d", ErrConflict, after, head.Commit)
	}
	c, entry, err := sealEntry(head, c)
	if err != nil {
		return Commit{}, err
	}
	if err := t.appendEntry(c, entry); err != nil {
		return Commit{}, err
	}
	return c, nil
}

func (t *Tx) appendEntry(c Commit, entry []byte) error {
	// An error from here on fails the whole transaction, also if the caller
	// goes on as if nothing had happened.
	if t.format != Format {
		t.walkTo(t.meta, metaFormat)
		t.keep(t.meta.Put(metaFormat, number(Format)))
		t.format = Format
	}
	t.walkTo(t.log, number(c.Number))
	t.keep(t.log.Put(number(c.Number), entry))
	t.keep(t.log.SetSequence(c.Number))
	head := headOf(c)
	t.head, t.changed = &head, true
	return t.err
}

// Read calls fn for each commit from number from (0 means 1) to the end, in
// order, each checked against its hash. fn's error ends it and is returned.
func (t *Tx) Read(from uint64, fn func(Commit) error) error {
	return t.entries(from, func(c Commit, _ []byte) error { return fn(c) })
}

// entries is Read with the bytes of each entry, valid only inside fn.
//
// The end of the log is checked last and not first: of a log whose end is damaged
// everything before that is still read.
func (t *Tx) entries(from uint64, fn func(Commit, []byte) error) error {
	from = max(from, 1)
	if last := t.log.Sequence(); from <= last {
		before, err := t.headAt(from - 1)
		if err != nil {
			return err
		}
		for n := from; n <= last; n++ {
			c, err := t.commit(n, before.Hash)
			if err != nil {
				return err
			}
			if c.Seq != before.Seq+1 {
				return t.damaged("log: commit %d begins with event %d, want %d", n, c.Seq, before.Seq+1)
			}
			before = headOf(c)
			// Verbatim: encoding c again could differ for an older form.
			if err := fn(c, t.get(t.log, number(n))); err != nil {
				return err
			}
		}
	}
	_, err := t.Head()
	return err
}

// Get returns the value of key in a table, nil if there is none. It is valid
// only inside the transaction and must not be written to.
func (t *Tx) Get(table string, key []byte) []byte {
	b := t.table(table)
	if b == nil {
		return nil
	}
	return t.get(b, key)
}

// Put sets key in a table, which it makes if needed. An error (an empty key, a
// key above 32 KiB, a read-only transaction) is kept and fails the transaction.
func (t *Tx) Put(table string, key, val []byte) {
	b := t.table(table)
	if b == nil {
		if t.keep(t.makeTable(table)); t.err != nil {
			return
		}
		b = t.table(table)
	}
	t.walkTo(b, key)
	// bbolt copies the key but keeps the value until the commit, and takes
	// nil for none at all until then.
	if t.keep(b.Put(key, append([]byte{}, val...))); t.err == nil {
		t.changed = true
	}
}

// Delete removes key from a table; nothing happens if it is not there. Errors
// are kept as Put's are.
func (t *Tx) Delete(table string, key []byte) {
	b := t.table(table)
	if b == nil || t.get(b, key) == nil {
		return
	}
	if t.keep(b.Delete(key)); t.err == nil {
		t.changed = true
	}
}

// Scan calls fn for the keys of a table from the first that is >= from (nil:
// from the beginning), ascending, until fn returns false. The slices are valid
// only inside the transaction. fn must not change that table.
func (t *Tx) Scan(table string, from []byte, fn func(k, v []byte) bool) {
	if b := t.table(table); b != nil {
		t.scan(b, uint64(b.Root()), from, fn)
	}
}

// Tables returns the names of the tables, ascending.
func (t *Tx) Tables() []string {
	var names []string
	root := t.btx.Cursor().Bucket()
	t.scan(root, t.root, []byte(tablePrefix), func(k, _ []byte) bool {
		if len(k) <= len(tablePrefix) || string(k[:len(tablePrefix)]) != tablePrefix {
			return false
		}
		names = append(names, string(k[len(tablePrefix):]))
		return true
	})
	return names
}

func (t *Tx) damaged(format string, a ...any) error {
	return &RefusedError{Path: t.path, Kind: Damaged, Detail: fmt.Sprintf(format, a...)}
}

// keep remembers the first error of a method that returns none.
func (t *Tx) keep(err error) {
	switch {
	case err == nil || t.err != nil:
	case errors.Is(err, berrors.ErrIncompatibleValue):
		// A bucket where a value should be; none of ours nests.
		t.err = t.damaged("write: %v", err)
	default:
		t.err = fmt.Errorf("write store: %w", err)
	}
}

func (t *Tx) table(name string) *bolt.Bucket {
	b, ok := t.tables[name]
	if !ok {
		if b = t.bucket([]byte(tablePrefix + name)); b != nil {
			t.tables[name] = b
		}
	}
	return b
}

func (t *Tx) makeTable(name string) error {
	if name == "" {
		return errors.New("a table without a name")
	}
	b, err := t.btx.CreateBucket([]byte(tablePrefix + name))
	if err == nil {
		t.tables[name] = b
	}
	return err
}

func (t *Tx) bucket(name []byte) *bolt.Bucket {
	t.walkRoot(t.root, name)
	return t.btx.Bucket(name)
}

func (t *Tx) metaGet(key []byte) []byte { return t.get(t.meta, key) }

func (t *Tx) get(b *bolt.Bucket, key []byte) []byte {
	t.walkTo(b, key)
	v := b.Get(key)
	return v[:len(v):len(v)]
}

// walkTo walks the path to key before bbolt does; nil if the bucket has no
// pages of its own. Damage ends the transaction.
func (t *Tx) walkTo(b *bolt.Bucket, key []byte) *walk { return t.walkRoot(uint64(b.Root()), key) }

func (t *Tx) walkRoot(root uint64, key []byte) *walk {
	if root == 0 || t.pages.size == 0 {
		return nil
	}
	w := &walk{pages: t.pages, buckets: root == t.root}
	if err := w.seek(root, key); err != nil {
		panic(damage{err})
	}
	return w
}

// scan keeps a walk one leaf ahead of bbolt's cursor.
func (t *Tx) scan(b *bolt.Bucket, root uint64, from []byte, fn func(k, v []byte) bool) {
	w := t.walkRoot(root, from)
	var ahead []byte // first key of the leaf that the walk stands on
	step := func() {
		if w == nil {
			return
		}
		more, err := w.next()
		if err != nil {
			panic(damage{err})
		}
		if !more {
			w = nil
			return
		}
		ahead = w.leaf().key(0)
	}
	step()
	cur := b.Cursor()
	k, v := cur.Seek(from)
	for k != nil {
		for w != nil && string(k) >= string(ahead) {
			step()
		}
		if !fn(k, v) {
			return
		}
		k, v = cur.Next()
	}
}
