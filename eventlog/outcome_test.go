package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// failCommit replaces the next commits' end.
func failCommit(t *testing.T, fn func(*bolt.Tx) error) {
	old := commitTx
	commitTx = fn
	t.Cleanup(func() { commitTx = old })
}

func TestCommitFails(t *testing.T) {
	disk := func(e error) error { return &fsError{e} }
	for name, c := range map[string]struct {
		commit func(*bolt.Tx) error
		want   error
	}{
		"no space before the meta page":   {func(*bolt.Tx) error { return disk(syscall.ENOSPC) }, ErrDiskFull},
		"quota, as text only":             {func(*bolt.Tx) error { return fmt.Errorf("file resize error: %s", syscall.EDQUOT) }, ErrDiskFull},
		"no space at the sync":            {func(*bolt.Tx) error { return syscall.ENOSPC }, ErrUnknownOutcome},
		"quota at the sync of a growth":   {func(*bolt.Tx) error { return fmt.Errorf("file sync error: %s", syscall.EDQUOT) }, ErrUnknownOutcome},
		"no space after it":               {func(tx *bolt.Tx) error { return errors.Join(tx.Commit(), disk(syscall.ENOSPC)) }, ErrUnknownOutcome},
		"sync of the data pages":          {func(*bolt.Tx) error { return disk(syscall.EIO) }, ErrUnknownOutcome},
		"sync of the meta page":           {func(tx *bolt.Tx) error { return errors.Join(tx.Commit(), disk(syscall.EIO)) }, ErrUnknownOutcome},
		"bbolt panics after the meta":     {func(tx *bolt.Tx) error { return errors.Join(tx.Commit(), (*bolt.Bucket)(nil).SetSequence(1)) }, ErrUnknownOutcome},
		"bbolt panics before any writing": {func(tx *bolt.Tx) error { return (*bolt.Bucket)(nil).SetSequence(1) }, ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile(t)
			first := mustAppend(t, f, note("ann", 1))
			failCommit(t, c.commit)
			if _, err := f.Append(1, note("ann", 1)); !errors.Is(err, c.want) {
				t.Fatalf("append: %v, want %v", err, c.want)
			}
			commitTx = (*bolt.Tx).Commit
			again := Open(f.dir, Options{})
			if c.want == ErrUnknownOutcome {
				_, headErr := again.Head()
				_, appendErr := again.Append(1, note("ann", 1))
				for _, err := range []error{headErr, appendErr, f.View(func(*Tx) error { return nil }), again.Rebuild(foldAuthors)} {
					if !errors.Is(err, ErrUnknownOutcome) {
						t.Errorf("later: %v, want ErrUnknownOutcome from every access of this process", err)
					}
				}
				return
			}
			if h, err := again.Head(); err != nil || h != headOf(first) {
				t.Errorf("head %+v, %v; want nothing recorded", h, err)
			}
			mustAppend(t, f, note("ann", 1))
		})
	}
}

type fsError struct{ err error }

func (e *fsError) Error() string { return "write board.db: " + e.err.Error() }
func (e *fsError) Unwrap() error { return e.err }

func TestUpdateWithoutChange(t *testing.T) {
	f := newFile(t)
	mustAppend(t, f, note("ann", 1))
	before := mustBytes(t, f.store())
	mine := errors.New("mine")
	for name, c := range map[string]struct {
		fn   func(*Tx) error
		want error
	}{
		"reading":        {func(tx *Tx) error { _, err := tx.Head(); return err }, nil},
		"error of fn":    {func(tx *Tx) error { tx.Put("a", []byte("k"), nil); return mine }, mine},
		"delete nothing": {func(tx *Tx) error { tx.Delete("a", []byte("k")); return nil }, nil},
	} {
		if err := f.Update(c.fn); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if !bytes.Equal(mustBytes(t, f.store()), before) {
			t.Errorf("%s: the file was written", name)
		}
	}
}

func TestKeptErrors(t *testing.T) {
	f := newFile(t)
	mustAppend(t, f, note("ann", 1))
	before := dump(t, f)
	for name, put := range map[string]func(*Tx){
		"empty key":   func(tx *Tx) { tx.Put("a", nil, []byte("v")) },
		"huge key":    func(tx *Tx) { tx.Put("a", make([]byte, 40_000), []byte("v")) },
		"empty table": func(tx *Tx) { tx.Put("", []byte("k"), []byte("v")) },
	} {
		if err := f.Update(func(tx *Tx) error {
			tx.Put("a", []byte("good"), []byte("v"))
			put(tx)
			_, err := tx.Append(1, note("ann", 1))
			return err
		}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := f.View(func(tx *Tx) error { tx.Put("a", []byte("k"), []byte("v")); return nil }); err == nil {
		t.Error("put in a read-only transaction: no error")
	}
	if after := dump(t, f); after != before {
		t.Errorf("a failed transaction left something:\n%s\nwas\n%s", after, before)
	}
}
