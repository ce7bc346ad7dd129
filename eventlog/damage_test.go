package eventlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// smallPages makes stores whose trees have branches with few commits.
func smallPages(t *testing.T) {
	old := newPageSize
	newPageSize = 1024
	t.Cleanup(func() { newPageSize = old })
}

// probe reads all of a store and, if asked, writes what is never committed. Each
// must refuse or tell the truth.
func probe(t *testing.T, what string, f *File, want []Commit, write bool) {
	t.Helper()
	var head Head
	var all []Commit
	err := f.View(func(tx *Tx) (err error) {
		if head, err = tx.Head(); err != nil {
			return err
		}
		for _, name := range tx.Tables() {
			tx.Scan(name, nil, func(k, _ []byte) bool { tx.Get(name, k); return true })
		}
		return tx.Read(1, func(c Commit) error {
			all = append(all, c)
			return nil
		})
	})
	switch {
	case err == nil && (head != headOf(want[len(want)-1]) || !reflect.DeepEqual(all, want)):
		t.Errorf("%s: other commits than were written, and no refusal", what)
	case err != nil && !errors.Is(err, ErrRefused):
		t.Errorf("%s: read: %v, which is no refusal", what, err)
	}
	if !write {
		return
	}
	drop := errors.New("drop")
	if err := f.Update(func(tx *Tx) error {
		h, err := tx.Head()
		if err != nil {
			return err
		}
		tx.Put("t", []byte("k050"), []byte("other"))
		tx.Delete("t", []byte("k070"))
		if _, err := tx.Append(h.Commit, note("ann", 1)); err != nil {
			return err
		}
		return drop
	}); err != drop && !errors.Is(err, ErrRefused) {
		t.Errorf("%s: update: %v, which is no refusal", what, err)
	}
}

// filled has a log and a table with branch pages.
func filled(t *testing.T) (*File, []Commit) {
	smallPages(t)
	f := newFile(t)
	for i := range 14 {
		if err := f.Update(func(tx *Tx) error {
			for j := range 5 {
				tx.Put("t", []byte{'k', '0' + byte(i/10), '0' + byte(i%10), '0' + byte(j)}, bytes.Repeat([]byte{byte(i)}, 20))
			}
			_, err := tx.Append(uint64(i), note("ann", 1+i%3))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return f, mustRead(t, f)
}

func TestFlippedByte(t *testing.T) {
	f, want := filled(t)
	store := mustBytes(t, f.store())
	file, err := os.OpenFile(f.store(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	meta, err := readMetas(file, 1024)
	if err != nil {
		t.Fatal(err)
	}
	used := int(meta.high) * 1024
	flip := func(at int, mask byte, write bool) {
		b := store[at] ^ mask
		if _, err := file.WriteAt([]byte{b}, int64(at)); err != nil {
			t.Fatal(err)
		}
		probe(t, fmt.Sprintf("byte %d ^ %#x", at, mask), f, want, write)
		now := mustBytes(t, f.store())
		if now[at] != b || !bytes.Equal(now[:at], store[:at]) || !bytes.Equal(now[at+1:], store[at+1:]) {
			t.Errorf("byte %d: the file was changed", at)
			mustWrite(t, f.store(), store)
		}
		if _, err := file.WriteAt(store[at:at+1], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	branches := 0
	for at := range used {
		page := store[at/1024*1024:]
		branch := binary.NativeEndian.Uint16(page[8:]) == flagBranch
		if branch && at%1024 == 0 {
			branches++
		}
		if at%flipStride != 0 {
			continue
		}
		flip(at, 0xff, at%8 == 0)
		// A wrong page number is the one damage that bbolt would follow in
		// circles; a single bit is the likely way to get one.
		if n := int(binary.NativeEndian.Uint16(page[10:])); branch && at%1024 < pageHeader+16*n {
			for bit := range 8 {
				flip(at, 1<<bit, true)
			}
		}
	}
	t.Logf("%d bytes of %d pages, %d of them branches", used, meta.high, branches)
	if branches < 2 {
		t.Errorf("the store has %d branch pages; the test means nothing without", branches)
	}
	if got := mustRead(t, f); !reflect.DeepEqual(got, want) {
		t.Error("the repaired store is not the original")
	}
}

func TestCircle(t *testing.T) {
	f, want := filled(t)
	store := mustBytes(t, f.store())
	o := binary.NativeEndian
	n := 0
	for id := uint64(2); int(id+1)*1024 <= len(store); id++ {
		page := store[id*1024:]
		if o.Uint16(page[8:]) != flagBranch || o.Uint64(page) != id {
			continue
		}
		for i := range int(o.Uint16(page[10:])) {
			bad := bytes.Clone(store)
			o.PutUint64(bad[id*1024+pageHeader+16*uint64(i)+8:], id)
			mustWrite(t, f.store(), bad)
			probe(t, "circle", f, want, true)
			unchanged(t, f.store(), bad)
			n++
		}
	}
	if n == 0 {
		t.Error("no branch page was found")
	}
}

func TestDamagedStore(t *testing.T) {
	f, want := filled(t)
	store := mustBytes(t, f.store())
	size := len(store)
	edit := func(fn func(b []byte) []byte) []byte { return fn(bytes.Clone(store)) }
	zero := func(from, to int) []byte {
		return edit(func(b []byte) []byte { clear(b[from:to]); return b })
	}
	for name, c := range map[string]struct {
		store []byte
		kind  RefusedKind
	}{
		"0 bytes":         {nil, Empty},
		"1 byte":          {store[:1], Foreign},
		"half":            {store[:size/2/1024*1024], Cut},
		"first meta only": {store[:1024], Cut},
		"half a meta":     {store[:40], Foreign},
		"meta 0 zeroed":   {zero(0, 1024), Damaged},
		"meta 1 zeroed":   {zero(1024, 2048), Damaged},
		"both zeroed":     {zero(0, 2048), Foreign},
		"meta 0 flipped":  {edit(func(b []byte) []byte { b[40] ^= 1; return b }), Damaged},
		"meta 1 flipped":  {edit(func(b []byte) []byte { b[1024+40] ^= 1; return b }), Damaged},
		"metas swapped":   {edit(func(b []byte) []byte { copy(b, store[1024:2048]); copy(b[1024:], store[:1024]); return b }), Damaged},
		"an old meta 0": {edit(func(b []byte) []byte {
			// Whole in itself, but of a transaction long gone.
			o := binary.NativeEndian
			o.PutUint64(b[pageHeader+48:], 2)
			fixMeta(b)
			return b
		}), Damaged},
		"text file":           {[]byte("# notes on kanlog\n" + string(bytes.Repeat([]byte("lorem ipsum "), 2000))), Foreign},
		"other bbolt file":    {otherBolt(t, "meta"), Foreign},
		"empty bbolt file":    {otherBolt(t, ""), Foreign},
		"other board's store": {otherBoard(t), Foreign},
		"newer format":        {newer(t), Newer},
	} {
		t.Run(name, func(t *testing.T) {
			mustWrite(t, f.store(), c.store)
			_, headErr := f.Head()
			_, readErr := readAll(f)
			_, appendErr := f.Append(want[len(want)-1].Number, note("bob", 1))
			_, createErr := Create(filepath.Dir(filepath.Dir(f.dir)), "default", testUUID, 9, Options{})
			for _, err := range []error{
				headErr, readErr, appendErr, createErr,
				f.View(func(*Tx) error { return nil }),
				f.Rebuild(foldAuthors),
			} {
				refusedAs(t, err, c.kind)
			}
			unchanged(t, f.store(), c.store)
		})
	}
	for page := 2; page < size/1024; page++ {
		bad := zero(page*1024, (page+1)*1024)
		mustWrite(t, f.store(), bad)
		probe(t, "zeroed page", f, want, true)
		unchanged(t, f.store(), bad)
	}
	t.Run("missing", func(t *testing.T) {
		if err := os.Remove(f.store()); err != nil {
			t.Fatal(err)
		}
		_, err := f.Head()
		refusedAs(t, err, Missing)
		_, err = Create(filepath.Dir(filepath.Dir(f.dir)), "default", testUUID, 9, Options{})
		refusedAs(t, err, Missing)
		if _, err := os.Lstat(f.store()); err == nil {
			t.Error("a store was made in place of the missing one")
		}
	})
}

func fixMeta(b []byte) {
	sum := uint64(14695981039346656037)
	for _, c := range b[pageHeader : pageHeader+56] {
		sum = (sum ^ uint64(c)) * 1099511628211
	}
	binary.NativeEndian.PutUint64(b[pageHeader+56:], sum)
}

func otherBolt(t *testing.T, bucket string) []byte {
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bucket != "" {
		if err := db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte(bucket))
			if err != nil {
				return err
			}
			return b.Put([]byte("k"), []byte("v"))
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return mustBytes(t, path)
}

func otherBoard(t *testing.T) []byte {
	home := t.TempDir()
	if _, err := Create(home, "default", [16]byte{99}, 5, Options{}); err != nil {
		t.Fatal(err)
	}
	return mustBytes(t, filepath.Join(BoardDir(home, "default"), StoreName))
}

func newer(t *testing.T) []byte {
	f := newFile(t)
	if err := f.Update(func(tx *Tx) error {
		tx.changed = true
		return tx.meta.Put(metaFormat, number(Format+1))
	}); err != nil {
		t.Fatal(err)
	}
	return mustBytes(t, f.store())
}

// A store that gets shorter under an open mapping is a fault, not an error of a
// system call.
func TestCutWhileOpen(t *testing.T) {
	f, want := filled(t)
	err := f.View(func(tx *Tx) error {
		if err := os.Truncate(f.store(), 4096); err != nil {
			t.Fatal(err)
		}
		return tx.Read(1, func(Commit) error { return nil })
	})
	refusedAs(t, err, Damaged)
	if _, err := f.Append(want[len(want)-1].Number, note("ann", 1)); !errors.Is(err, ErrRefused) {
		t.Errorf("append to the cut store: %v", err)
	}
}

func TestPanicOfCallerGoesOn(t *testing.T) {
	f := newFile(t)
	for name, fn := range map[string]func(*Tx) error{
		"value":       func(*Tx) error { panic("mine") },
		"nil pointer": func(*Tx) error { var c *Commit; c.Number++; return nil },
		"index":       func(*Tx) error { return make([]error, len(f.dir))[len(f.dir)] },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic was swallowed", name)
				}
			}()
			_ = f.Update(fn)
		}()
		// The lock and the file were let go.
		mustAppend(t, Open(f.dir, impatient), note("ann", 1))
	}
}

func TestNetworkFS(t *testing.T) {
	f := newFile(t)
	old := remoteFS
	defer func() { remoteFS = old }()
	remoteFS = func(string) (string, error) { return "NFS", nil }
	_, err := f.Head()
	refusedAs(t, err, Network)
	_, err = Create(t.TempDir(), "default", testUUID, 1, Options{})
	refusedAs(t, err, Network)
	if _, err := Open(f.dir, Options{AllowNetwork: true}).Head(); err != nil {
		t.Errorf("with AllowNetwork: %v", err)
	}
}

func TestNoBoard(t *testing.T) {
	home := t.TempDir()
	f := Open(BoardDir(home, "nope"), Options{})
	if _, err := f.Head(); !errors.Is(err, ErrNoBoard) {
		t.Errorf("head: %v, want ErrNoBoard", err)
	}
	if _, err := os.Lstat(f.dir); err == nil {
		t.Error("asking for a board that is not there made its directory")
	}
}
