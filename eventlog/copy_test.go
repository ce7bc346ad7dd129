package eventlog

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func init() { childParts["copy"] = childCopy }

func good(*File) error { return nil }

// childCopy DIR PATH N
func childCopy(args []string) error {
	if err := dieAt(args[2]); err != nil {
		return err
	}
	return Open(args[0], Options{}).Copy(args[1]+".new", args[1], false, foldAuthors, good)
}

// folded is a store of so many commits whose tables are the fold of them.
func folded(t *testing.T, commits int) *File {
	t.Helper()
	f := newFile(t)
	if err := f.Update(func(tx *Tx) error {
		for i := range commits {
			c, err := tx.Append(uint64(i), note("ann", 1+i%3))
			if err == nil {
				err = foldAuthors(tx, c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return f
}

func nothingAside(t *testing.T, dir string) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestCopy(t *testing.T) {
	f := folded(t, 2*readCommits+10)
	want := dump(t, f)
	dir := t.TempDir()
	path := filepath.Join(dir, "copy.db")
	aside := path + ".new"
	if err := f.Copy(aside, path, false, foldAuthors, good); err != nil {
		t.Fatal(err)
	}
	if dump(t, OpenCopy(path, Options{})) != want {
		t.Error("the copy differs")
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	t.Run("never over another", func(t *testing.T) {
		before := mustBytes(t, path)
		if err := f.Copy(aside, path, false, foldAuthors, good); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%v, want fs.ErrExist", err)
		}
		unchanged(t, path, before)
		nothingAside(t, dir)
		mustAppend(t, f, note("bob", 1))
		if err := f.Copy(aside, path, true, func(*Tx, Commit) error { return nil }, good); err != nil {
			t.Error(err)
		}
		if h, err := OpenCopy(path, Options{}).Head(); err != nil || h.Commit != 2*readCommits+11 {
			t.Errorf("head %+v, %v", h, err)
		}
	})
	t.Run("nothing is left of one that is not good", func(t *testing.T) {
		no := errors.New("no")
		other := filepath.Join(dir, "other.db")
		if err := f.Copy(other+".new", other, false, foldAuthors, func(*File) error { return no }); err != no {
			t.Errorf("%v, want what check said", err)
		}
		if _, err := os.Lstat(other); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is there: %v", err)
		}
		nothingAside(t, dir)
	})
	t.Run("is only read", func(t *testing.T) {
		c := OpenCopy(path, Options{})
		_, appended := c.Append(0, note("ann", 1))
		for _, err := range []error{appended, c.Rebuild(foldAuthors), c.Update(func(*Tx) error { return nil })} {
			if !errors.Is(err, errCopy) {
				t.Errorf("%v, want errCopy", err)
			}
		}
	})
}

// What is appended while a copy is made does not wait for it, and is not in it.
func TestCopyBesideWriting(t *testing.T) {
	f := folded(t, 3*readCommits)
	path := filepath.Join(t.TempDir(), "copy.db")
	old := atStep
	t.Cleanup(func() { atStep = old })
	appended := 0
	atStep = func(step string) {
		if step == "copy batch" {
			mustAppend(t, f, note("meanwhile", 1))
			appended++
		}
	}
	before := mustRead(t, f)
	if err := f.Copy(path+".new", path, false, func(*Tx, Commit) error { return nil }, good); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, OpenCopy(path, Options{})); len(got) != len(before) || got[len(got)-1].Hash != before[len(before)-1].Hash {
		t.Errorf("the copy has %d commits, the log had %d when it began", len(got), len(before))
	}
	if appended < 3 {
		t.Errorf("only %d commits came in meanwhile", appended)
	}
}

// Nobody waits for a rebuild but at its end, and what came in meanwhile is there.
func TestRebuildBesideWriting(t *testing.T) {
	f := folded(t, 2*readCommits)
	old := atStep
	t.Cleanup(func() { atStep = old })
	appended := 0
	atStep = func(step string) {
		if step != "copy batch" && step != "most is copied" {
			return
		}
		if err := f.Update(func(tx *Tx) error {
			h, err := tx.Head()
			if err != nil {
				return err
			}
			c, err := tx.Append(h.Commit, note("meanwhile", 1))
			if err != nil {
				return err
			}
			return foldAuthors(tx, c)
		}); err != nil {
			t.Fatal(err)
		}
		appended++
	}
	if err := f.Rebuild(foldAuthors); err != nil {
		t.Fatal(err)
	}
	atStep = old
	want := dump(t, f)
	if n := len(mustRead(t, f)); appended < 3 || n != 2*readCommits+appended {
		t.Errorf("%d commits, %d of them came in meanwhile", n, appended)
	}
	if err := f.Rebuild(foldAuthors); err != nil || dump(t, f) != want {
		t.Errorf("the tables are not those of the log (%v)", err)
	}
}

// Whether there is anything to do is asked when the turn has come, not before: of a
// hundred processes that find old tables one rebuilds.
func TestRebuildIsAskedForInItsTurn(t *testing.T) {
	f := folded(t, 20)
	for _, need := range []bool{false, true} {
		folds := 0
		err := f.RebuildIf(func(tx *Tx) (bool, error) {
			if _, err := TryLock(filepath.Join(f.dir, asideLockName)); !errors.Is(err, ErrBusy) {
				t.Errorf("asked before the turn had come: %v", err)
			}
			return need, nil
		}, func(tx *Tx, c Commit) error {
			folds++
			return foldAuthors(tx, c)
		})
		if err != nil || (folds == 20) != need || (folds == 0) == need {
			t.Errorf("needed %v: %d commits folded, %v", need, folds, err)
		}
	}
}

// The store was replaced while it was copied: what is copied is of another one.
func TestRebuildOfAStoreThatWasReplaced(t *testing.T) {
	f := folded(t, 40)
	other := mustBytes(t, f.store())
	mustAppend(t, f, note("lost", 1))
	old := atStep
	t.Cleanup(func() { atStep = old })
	atStep = func(step string) {
		if step == "most is copied" {
			mustWrite(t, f.store(), other)
		}
	}
	if err := f.Rebuild(foldAuthors); !errors.Is(err, ErrReplaced) || errors.Is(err, ErrRefused) {
		t.Errorf("%v, want %v and no word of damage", err, ErrReplaced)
	}
	unchanged(t, f.store(), other)
	nothingAside(t, f.dir)
}

func TestCopyOfADamagedStore(t *testing.T) {
	f := folded(t, 40)
	store := mustBytes(t, f.store())
	at := bytes.LastIndex(store, []byte("note 1"))
	store[at] ^= 1
	mustWrite(t, f.store(), store)
	dir := t.TempDir()
	path := filepath.Join(dir, "copy.db")
	refusedAs(t, f.Copy(path+".new", path, false, foldAuthors, good), Damaged)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left over: %v %v", entries, err)
	}
}

func TestCopyKilledAnywhere(t *testing.T) {
	f := folded(t, readCommits+10)
	want := dump(t, f)
	for n := 1; ; n++ {
		dir := t.TempDir()
		path := filepath.Join(dir, "copy.db")
		killed := runKilled(t, child("copy", f.dir, path, strconv.Itoa(n)))
		_, err := os.Lstat(path)
		there := err == nil
		if there && dump(t, OpenCopy(path, Options{})) != want {
			t.Errorf("killed at step %d: half a copy has its name", n)
		}
		if err := f.Copy(path+".new", path, there, foldAuthors, good); err != nil {
			t.Errorf("killed at step %d: the next copy: %v", n, err)
		}
		nothingAside(t, dir)
		if dump(t, f) != want {
			t.Fatalf("killed at step %d: the board changed", n)
		}
		if !killed {
			if n < 7 {
				t.Errorf("a copy has only %d steps", n-1)
			}
			return
		}
	}
}

// The last commit is damaged: everything before it is still read.
func TestReadUpToTheDamage(t *testing.T) {
	f := folded(t, 12)
	all := mustRead(t, f)
	store := mustBytes(t, f.store())
	bad := bytes.Clone(store)
	bad[bytes.Index(bad, all[11].Hash[:])] ^= 1
	mustWrite(t, f.store(), bad)
	for name, read := range map[string]func(uint64, func(Commit) error) error{"Read": f.Read, "ReadAhead": f.ReadAhead} {
		n := uint64(0)
		err := read(1, func(c Commit) error {
			n = c.Number
			return nil
		})
		refusedAs(t, err, Damaged)
		if n != 11 {
			t.Errorf("%s: up to commit %d, want 11", name, n)
		}
	}
}

// What is no plain file is not opened: a FIFO would wait for ever, without a lock that
// anybody could see.
func TestCopyThatIsNoPlainFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link, dir, os.DevNull} {
		got := make(chan error, 1)
		go func() { got <- OpenCopy(path, Options{}).View(func(*Tx) error { return nil }) }()
		select {
		case err := <-got:
			refusedAs(t, err, Foreign)
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it is waited for", path)
			_ = os.WriteFile(fifo, nil, 0) // let it go
		}
	}
}

// A link is not replaced, nor what it names.
func TestCopyOverNoPlainFile(t *testing.T) {
	f := folded(t, 3)
	dir := t.TempDir()
	mine, link := filepath.Join(dir, "mine"), filepath.Join(dir, "link")
	mustWrite(t, mine, []byte("mine"))
	if err := os.Symlink(mine, link); err != nil {
		t.Fatal(err)
	}
	if err := f.Copy(link+".new", link, true, foldAuthors, good); !errors.Is(err, ErrNotPlain) {
		t.Errorf("%v, want ErrNotPlain", err)
	}
	if to, err := os.Readlink(link); err != nil || to != mine {
		t.Errorf("the link names %q, %v", to, err)
	}
	unchanged(t, mine, []byte("mine"))
	nothingAside(t, dir)
}

// The copy has its name and the directory cannot be synced: that is not to be told like
// one of which nothing is left.
func TestCopyWhoseNameMayBeLost(t *testing.T) {
	f := folded(t, 3)
	dir := filepath.Join(t.TempDir(), "copies")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old := atStep
	t.Cleanup(func() { atStep = old })
	atStep = func(step string) {
		if step == "copy placed" {
			if err := os.Rename(dir, dir+".away"); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := filepath.Join(dir, "copy.db")
	if err := f.Copy(path+".new", path, false, foldAuthors, good); !errors.Is(err, ErrNotSynced) {
		t.Errorf("%v, want ErrNotSynced", err)
	}
	if dump(t, OpenCopy(filepath.Join(dir+".away", "copy.db"), Options{})) != dump(t, f) {
		t.Error("the copy differs")
	}
}

// Its second name cannot be removed, since somebody was faster: it has its first one.
func TestCopyWhoseSecondNameIsGone(t *testing.T) {
	f := folded(t, 3)
	path := filepath.Join(t.TempDir(), "copy.db")
	old := atStep
	t.Cleanup(func() { atStep = old })
	atStep = func(step string) {
		if step == "linked" {
			if err := os.Remove(path + ".new"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Copy(path+".new", path, false, foldAuthors, good); err != nil {
		t.Error(err)
	}
}
