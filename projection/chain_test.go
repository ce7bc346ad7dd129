package projection

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	bolt "go.etcd.io/bbolt"

	"kanlog/eventlog"
)

// What is promised of a log is that nobody changes it unnoticed. Here it is changed,
// bit by bit and commit by commit, and Verify, which is the whole of kanlog verify
// but for the files, must name the commit.

var bitCount = flag.Int("chain.bits", 300, "how many random bits of a larger store are changed one by one")

// storePath is the file of a store made by onDisk.
func storePath(s *Store) string { return filepath.Join(s.file.Dir(), eventlog.StoreName) }

// entriesOf are the bytes of each commit of a store, hash and body.
func entriesOf(t *testing.T, path string) (entries [][]byte) {
	t.Helper()
	edit(t, path, true, func(log *bolt.Bucket) error {
		return log.ForEach(func(_, v []byte) error {
			entries = append(entries, bytes.Clone(v))
			return nil
		})
	})
	return entries
}

// edit changes the log behind the program's back.
func edit(t *testing.T, path string, readOnly bool, fn func(log *bolt.Bucket) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: readOnly, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	do := func(tx *bolt.Tx) error { return fn(tx.Bucket([]byte("log"))) }
	if readOnly {
		err = db.View(do)
	} else {
		err = db.Update(do)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// flipper changes single bits of a store, and back.
type flipper struct {
	s     *Store
	file  *os.File
	store []byte
}

func newFlipper(t *testing.T, s *Store) *flipper {
	t.Helper()
	file, err := os.OpenFile(storePath(s), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &flipper{s: s, file: file, store: read(t, storePath(s))}
}

// flip changes a bit of a commit and says what Verify makes of it.
func (f *flipper) flip(t *testing.T, at, bit int, commit uint64) {
	t.Helper()
	for _, b := range []byte{f.store[at] ^ 1<<bit, f.store[at]} {
		if _, err := f.file.WriteAt([]byte{b}, int64(at)); err != nil {
			t.Fatal(err)
		}
		if b == f.store[at] {
			return
		}
		rep, err := f.s.Verify()
		if err != nil || rep.Problem == "" || rep.FirstBad != commit || rep.Trusted != commit-1 {
			t.Errorf("bit %d of byte %d, in commit %d: %v, %q, trusted through %d, first bad %d", bit, at, commit, err, rep.Problem, rep.Trusted, rep.FirstBad)
		}
	}
}

func TestEveryBitOfACommitCounts(t *testing.T) {
	b := newBoard(t)
	b.create("a")
	b.create("b", func(d *Draft) { d.Assignee, d.Body = "w", "a body" })
	b.claim("b")
	b.must(AddComment(b.id("a"), "ann", "a note", Writer{}))
	s := b.onDisk(t)
	f := newFlipper(t, s)
	bits := 0
	for i, entry := range entriesOf(t, storePath(s)) {
		at := placeOf(t, f.store, uint64(i+1), entry)
		for byte := range entry {
			for bit := range 8 {
				f.flip(t, at+byte, bit, uint64(i+1))
				bits++
			}
		}
	}
	equal(t, "after all was put back", verify(t, s).Problem, "")
	if bits < 4000 {
		t.Errorf("only %d bits were changed", bits)
	}
}

func TestRandomBitsOfALargerStore(t *testing.T) {
	b := newBoard(t)
	for i := range 40 {
		name := fmt.Sprint("card ", i)
		b.create(name, func(d *Draft) { d.Assignee, d.Body = "w", strings.Repeat(name+" ", 100) })
		for n := range 5 {
			b.must(AddComment(b.id(name), "ann", fmt.Sprint("note ", n), Writer{}))
		}
	}
	s := b.onDisk(t)
	f := newFlipper(t, s)
	entries := entriesOf(t, storePath(s))
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d, %d commits, %d bytes", seed, len(entries), len(f.store))
	places := map[int]int{}
	for range *bitCount {
		i := random.IntN(len(entries))
		at, known := places[i]
		if !known {
			at = placeOf(t, f.store, uint64(i+1), entries[i])
			places[i] = at
		}
		f.flip(t, at+random.IntN(len(entries[i])), random.IntN(8), uint64(i+1))
	}
	equal(t, "after all was put back", verify(t, s).Problem, "")
}

// placeOf is where a commit stands in the file: pages that are free hold older
// copies of it, and only of this one a change is read back.
func placeOf(t *testing.T, store []byte, commit uint64, entry []byte) int {
	t.Helper()
	for at := bytes.Index(store, entry); at >= 0; {
		if entryIsRead(t, store, at, commit, entry) {
			return at
		}
		next := bytes.Index(store[at+1:], entry)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	t.Fatalf("commit %d is not in the file", commit)
	return 0
}

// entryIsRead tells whether the bytes at a place are those that a reader gets.
func entryIsRead(t *testing.T, store []byte, at int, commit uint64, entry []byte) (is bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "probe.db")
	changed := bytes.Clone(store)
	changed[at] ^= 0xff
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	edit(t, path, true, func(log *bolt.Bucket) error {
		is = !bytes.Equal(log.Get(binary.BigEndian.AppendUint64(nil, commit)), entry)
		return nil
	})
	return is
}

// forgedEntry is an entry with other numbers, whose own hash is right behind prev.
func forgedEntry(t *testing.T, entry []byte, number, seq uint64, prev [32]byte) []byte {
	t.Helper()
	var parts [2][]byte
	if err := msgpack.Unmarshal(entry, &parts); err != nil {
		t.Fatal(err)
	}
	var body []msgpack.RawMessage
	if err := msgpack.Unmarshal(parts[1], &body); err != nil {
		t.Fatal(err)
	}
	var err error
	for i, n := range []uint64{number, seq} {
		if body[i], err = compact(n); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := msgpack.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(append(prev[:], raw...))
	forged, err := msgpack.Marshal([2][]byte{hash[:], raw})
	if err != nil {
		t.Fatal(err)
	}
	return forged
}

func compact(n uint64) ([]byte, error) {
	var b bytes.Buffer
	enc := msgpack.NewEncoder(&b)
	enc.UseCompactInts(true)
	err := enc.EncodeUint(n)
	return b.Bytes(), err
}

// A log from which a commit is taken, in which two change places, or into which one
// is put, with and without the numbers and the hash of that one commit made right.
func TestAChangedLogIsFound(t *testing.T) {
	make := func(t *testing.T) (*Store, [][]byte, []eventlog.Commit) {
		b := newBoard(t)
		for i := range 9 {
			b.create(fmt.Sprint("card ", i))
		}
		s := b.onDisk(t)
		var all []eventlog.Commit
		if err := s.Commits(1, func(c eventlog.Commit) error { all = append(all, c); return nil }); err != nil {
			t.Fatal(err)
		}
		return s, entriesOf(t, storePath(s)), all
	}
	key := func(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
	// fill makes the log one of these entries, numbered from 1.
	fill := func(log *bolt.Bucket, entries [][]byte) error {
		for i, e := range entries {
			if err := log.Put(key(i+1), e); err != nil {
				return err
			}
		}
		for n := len(entries) + 1; log.Get(key(n)) != nil; n++ {
			if err := log.Delete(key(n)); err != nil {
				return err
			}
		}
		return log.SetSequence(uint64(len(entries)))
	}
	without := func(e [][]byte, i int) [][]byte { return append(append([][]byte{}, e[:i]...), e[i+1:]...) }
	with := func(e [][]byte, i int, x []byte) [][]byte {
		return append(append(append([][]byte{}, e[:i]...), x), e[i:]...)
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, log *bolt.Bucket, e [][]byte, all []eventlog.Commit) error
		bad  uint64
	}{
		{"a gap where commit 4 was", func(_ *testing.T, log *bolt.Bucket, _ [][]byte, _ []eventlog.Commit) error { return log.Delete(key(4)) }, 4},
		{"commit 4 removed, the others moved up", func(_ *testing.T, log *bolt.Bucket, e [][]byte, _ []eventlog.Commit) error {
			return fill(log, without(e, 3))
		}, 4},
		{"commit 4 removed, the next one made to follow", func(t *testing.T, log *bolt.Bucket, e [][]byte, all []eventlog.Commit) error {
			e = without(e, 3)
			e[3] = forgedEntry(t, e[3], 4, 4, all[2].Hash)
			return fill(log, e)
		}, 5},
		{"the last commit removed, its number kept", func(_ *testing.T, log *bolt.Bucket, _ [][]byte, _ []eventlog.Commit) error {
			return log.Delete(key(9))
		}, 9},
		{"a commit behind the last that is counted", func(_ *testing.T, log *bolt.Bucket, _ [][]byte, _ []eventlog.Commit) error {
			return log.SetSequence(8)
		}, 9},
		{"commits 4 and 5 in each other's place", func(_ *testing.T, log *bolt.Bucket, e [][]byte, _ []eventlog.Commit) error {
			e[3], e[4] = e[4], e[3]
			return fill(log, e)
		}, 4},
		{"the same, commit 4 made right", func(t *testing.T, log *bolt.Bucket, e [][]byte, all []eventlog.Commit) error {
			e[3], e[4] = forgedEntry(t, e[4], 4, 4, all[2].Hash), e[3]
			return fill(log, e)
		}, 5},
		{"commit 4 twice", func(_ *testing.T, log *bolt.Bucket, e [][]byte, _ []eventlog.Commit) error {
			return fill(log, with(e, 3, e[3]))
		}, 5},
		{"commit 4 twice, the second made to follow", func(t *testing.T, log *bolt.Bucket, e [][]byte, all []eventlog.Commit) error {
			return fill(log, with(e, 4, forgedEntry(t, e[3], 5, 5, all[3].Hash)))
		}, 5}, // the card is created a second time
		{"a commit put in before commit 4", func(t *testing.T, log *bolt.Bucket, e [][]byte, _ []eventlog.Commit) error {
			return fill(log, with(e, 3, e[8]))
		}, 4},
		{"the same, made to follow", func(t *testing.T, log *bolt.Bucket, e [][]byte, all []eventlog.Commit) error {
			return fill(log, with(e, 3, forgedEntry(t, e[8], 4, 4, all[2].Hash)))
		}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, entries, all := make(t)
			edit(t, storePath(s), false, func(log *bolt.Bucket) error { return c.do(t, log, entries, all) })
			rep := verify(t, s)
			if rep.Problem == "" || rep.FirstBad != c.bad || rep.Trusted != c.bad-1 {
				t.Errorf("%q, trusted through %d, first bad %d; want %d", rep.Problem, rep.Trusted, rep.FirstBad, c.bad)
			}
		})
	}
	t.Run("cut back clean", func(t *testing.T) {
		// A whole log in itself, but for the tables: only who noted the head knows.
		s, entries, all := make(t)
		edit(t, storePath(s), false, func(log *bolt.Bucket) error { return fill(log, entries[:6]) })
		if err := s.Rebuild(); err != nil {
			t.Fatal(err)
		}
		equal(t, "alone it is whole", verify(t, s).Problem, "")
		for text, want := range map[string]string{
			fmt.Sprintf("%x", all[5].Hash):      "",
			fmt.Sprintf("%x", all[8].Hash):      "contains no commit",
			fmt.Sprintf("9:%x", all[8].Hash):    "ends with commit 6",
			fmt.Sprintf("5:%x", all[5].Hash):    "commit 5 has hash",
			fmt.Sprintf("3:%.12x", all[2].Hash): "",
		} {
			n, err := ParseNoted(text)
			if err != nil {
				t.Fatal(err)
			}
			rep, err := s.VerifyWith(Checking{Noted: n})
			if err != nil || (rep.Problem == "") != (want == "") || !strings.Contains(rep.Problem, want) {
				t.Errorf("%s: %v %q, want %q", text, err, rep.Problem, want)
			}
		}
	})
}

func TestParseNoted(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	for text, want := range map[string]Noted{
		hash:                             {Hash: hash},
		"12:" + hash + " event 40\n":     {Commit: 12, Hash: hash, numbered: true},
		"0:" + strings.ToUpper(hash[4:]): {Hash: hash[4:], numbered: true},
		hash[:12]:                        {Hash: hash[:12]},
	} {
		n, err := ParseNoted(text)
		if err != nil || *n != want {
			t.Errorf("%q: %+v, %v; want %+v", text, n, err, want)
		}
	}
	for _, text := range []string{"", " ", hash[:11], hash + "0", "x" + hash[1:], "-1:" + hash, "1.5:" + hash, ":" + hash, "12:", "1:2:" + hash, "99999999999999999999:" + hash} {
		if n, err := ParseNoted(text); err == nil {
			t.Errorf("%q was taken: %+v", text, n)
		}
	}
}
