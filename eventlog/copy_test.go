package eventlog

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func init() {
	childParts["copy"] = childCopy
	childParts["restore"] = childRestore
}

func good(*File) error { return nil }

// childCopy DIR PATH N
func childCopy(args []string) error {
	if err := dieAt(args[2]); err != nil {
		return err
	}
	return Open(args[0], Options{}).Copy(args[1]+".new", args[1], false, foldAuthors, good)
}

// childRestore HOME COPY N
func childRestore(args []string) error {
	if err := dieAt(args[2]); err != nil {
		return err
	}
	lock, err := LockHome(args[0], DefaultLockTimeout)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	_, err = Restore(args[0], "default", OpenCopy(args[1], Options{}), Options{}, restoring("kept"))
	return err
}

func restoring(keep string) Restoring {
	return Restoring{
		Fold: foldAuthors,
		Last: func(tx *Tx) error {
			h, err := tx.Head()
			if err == nil {
				_, err = tx.Append(h.Commit, note("restored", 1))
			}
			return err
		},
		Check:  good,
		Before: func(*Tx) error { return nil },
		Keep:   keep,
		Over:   true,
	}
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
	refusedAs(t, f.Rebuild(foldAuthors), Damaged)
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

// restored checks a board that was put back to a copy of 20 commits.
func restored(t *testing.T, f *File) bool {
	t.Helper()
	all := mustRead(t, f)
	return len(all) == 21 && all[20].Actor == "operator:restored"
}

func TestRestoreKilledAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := folded(t, 20).Copy(path+".new", path, false, foldAuthors, good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		there bool
		steps int
	}{"over a board": {true, 8}, "where no board is": {false, 9}} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				home := t.TempDir()
				f := Open(BoardDir(home, "default"), Options{})
				before := ""
				if c.there {
					if _, err := Create(home, "default", testUUID, 5, Options{}); err != nil {
						t.Fatal(err)
					}
					mustAppend(t, f, note("live", 1))
					before = dump(t, f)
				}
				killed := runKilled(t, child("restore", home, path, strconv.Itoa(n)))
				_, err := f.Head()
				switch {
				case c.there && err == nil && dump(t, f) == before:
				case !c.there && errors.Is(err, ErrNoBoard):
				case err == nil && restored(t, f):
				default:
					t.Errorf("killed at step %d: %v", n, err)
				}
				lock, err := LockHome(home, DefaultLockTimeout)
				if err != nil {
					t.Fatal(err)
				}
				_, err = Restore(home, "default", OpenCopy(path, Options{}), Options{}, restoring("again"))
				lock.Unlock()
				if err != nil || !restored(t, f) {
					t.Errorf("killed at step %d: restored again: %v", n, err)
				}
				nothingAside(t, f.dir)
				if c.there {
					// What was there is kept, by the one or by the other.
					keptSomewhere(t, f, before)
				}
				if !killed {
					if n < c.steps {
						t.Errorf("a restore has only %d steps", n-1)
					}
					return
				}
			}
		})
	}
}

func keptSomewhere(t *testing.T, f *File, want string) {
	t.Helper()
	store, err := os.Stat(f.store())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, name := range []string{"kept", "again"} {
		path := filepath.Join(f.dir, name)
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if os.SameFile(store, info) {
			t.Errorf("%s is a second name of the store", name)
		}
		found = found || dump(t, OpenCopy(path, Options{})) == want
	}
	if !found {
		t.Error("the old store is nowhere")
	}
}

func TestRestoreRefuses(t *testing.T) {
	f := folded(t, 20)
	home := filepath.Dir(filepath.Dir(f.dir))
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := f.Copy(path+".new", path, false, foldAuthors, good); err != nil {
		t.Fatal(err)
	}
	before := mustBytes(t, f.store())
	no := errors.New("no")
	from := OpenCopy(path, Options{})
	try := func(slug string, from *File, change func(*Restoring)) error {
		r := restoring("kept")
		change(&r)
		_, err := Restore(home, slug, from, Options{}, r)
		return err
	}
	if err := try("default", from, func(r *Restoring) { r.Over = false }); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a board without leave: %v", err)
	}
	for name, change := range map[string]func(*Restoring){
		"before": func(r *Restoring) { r.Before = func(*Tx) error { return no } },
		"fold":   func(r *Restoring) { r.Fold = func(*Tx, Commit) error { return no } },
		"last":   func(r *Restoring) { r.Last = func(*Tx) error { return no } },
		"check":  func(r *Restoring) { r.Check = func(*File) error { return no } },
	} {
		if err := try("default", from, change); !errors.Is(err, no) {
			t.Errorf("%s says no: %v", name, err)
		}
		nothingAside(t, f.dir)
	}
	if _, err := Create(home, "other", [16]byte{9}, 5, Options{}); err != nil {
		t.Fatal(err)
	}
	refusedAs(t, try("other", from, func(*Restoring) {}), Foreign)
	unchanged(t, f.store(), before)
	if err := os.Truncate(path, 5000); err != nil {
		t.Fatal(err)
	}
	refusedAs(t, try("default", from, func(*Restoring) {}), Cut)
	unchanged(t, f.store(), before)
	if _, err := os.Lstat(filepath.Join(f.dir, "kept")); err == nil {
		t.Error("something was kept although nothing was replaced")
	}
}

// A damaged or missing store is what a restore is for.
func TestRestoreOverAStoreThatCannotBeRead(t *testing.T) {
	for _, damage := range []string{"cut", "missing"} {
		f := folded(t, 20)
		home := filepath.Dir(filepath.Dir(f.dir))
		path := filepath.Join(t.TempDir(), "copy.db")
		if err := f.Copy(path+".new", path, false, foldAuthors, good); err != nil {
			t.Fatal(err)
		}
		var err error
		if damage == "cut" {
			err = os.Truncate(f.store(), 5000)
		} else {
			err = os.Remove(f.store())
		}
		if err != nil {
			t.Fatal(err)
		}
		kept, err := Restore(home, "default", OpenCopy(path, Options{}), Options{}, restoring("kept"))
		if err != nil || kept != (damage == "cut") || !restored(t, f) {
			t.Errorf("%s: kept %v, %v", damage, kept, err)
		}
	}
}

// A store whose runs/ is gone is no board any more, but may be all that is left of one.
func TestRestoreKeepsAStoreWithoutItsBoard(t *testing.T) {
	f := folded(t, 20)
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := f.Copy(path+".new", path, false, foldAuthors, good); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, f, note("later", 1))
	want := dump(t, f)
	if err := os.RemoveAll(filepath.Join(f.dir, runsName)); err != nil {
		t.Fatal(err)
	}
	r := restoring("kept")
	r.Over = false
	kept, err := Restore(filepath.Dir(filepath.Dir(f.dir)), "default", OpenCopy(path, Options{}), Options{}, r)
	if err != nil || !kept || !restored(t, f) {
		t.Fatalf("kept %v, %v", kept, err)
	}
	keptSomewhere(t, f, want)
}

// A restore that cannot put its store in place leaves no second name of the one that
// is there: what is written to the one would change the other.
func TestAFailedRestoreKeepsNothing(t *testing.T) {
	f := folded(t, 20)
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := f.Copy(path+".new", path, false, foldAuthors, good); err != nil {
		t.Fatal(err)
	}
	before := mustBytes(t, f.store())
	defer func(old func(string)) { atStep = old }(atStep)
	atStep = func(step string) {
		if step == "old store kept" {
			os.Remove(filepath.Join(f.dir, asideName))
		}
	}
	if kept, err := Restore(filepath.Dir(filepath.Dir(f.dir)), "default", OpenCopy(path, Options{}), Options{}, restoring("kept")); err == nil || kept {
		t.Errorf("kept %v, %v, want an error", kept, err)
	}
	unchanged(t, f.store(), before)
	if _, err := os.Lstat(filepath.Join(f.dir, "kept")); err == nil {
		t.Error("the store has a second name")
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
