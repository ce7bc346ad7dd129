package eventlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func init() { childParts["restore"] = childRestore }

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
	// Also where the directory's note of whose it is was thrown away, or all of runs/.
	others := Open(BoardDir(home, "other"), Options{})
	theirs := mustBytes(t, others.store())
	for _, name := range []string{filepath.Join(runsName, idName), runsName} {
		if err := os.RemoveAll(filepath.Join(others.dir, name)); err != nil {
			t.Fatal(err)
		}
		refusedAs(t, try("other", from, func(*Restoring) {}), Foreign)
		unchanged(t, others.store(), theirs)
		nothingAside(t, others.dir)
	}
	unchanged(t, f.store(), before)
	// What a killed rebuild left may be whole, and all that there is.
	aside := filepath.Join(f.dir, asideName)
	mustWrite(t, aside, before)
	if err := try("default", OpenCopy(aside, Options{}), func(*Restoring) {}); err == nil {
		t.Error("from the file that is written anew")
	}
	unchanged(t, aside, before)
	if err := os.Remove(aside); err != nil {
		t.Fatal(err)
	}
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

// Of a store that is a link the one it points to is kept.
func TestRestoreOverALink(t *testing.T) {
	f := folded(t, 20)
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := f.Copy(path+".new", path, false, foldAuthors, good); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, f, note("later", 1))
	want := dump(t, f)
	if err := os.Rename(f.store(), filepath.Join(f.dir, "real.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.db", f.store()); err != nil {
		t.Fatal(err)
	}
	kept, err := Restore(filepath.Dir(filepath.Dir(f.dir)), "default", OpenCopy(path, Options{}), Options{}, restoring("kept"))
	if err != nil || !kept || !restored(t, f) {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if got := dump(t, OpenCopy(filepath.Join(f.dir, "kept"), Options{})); got != want {
		t.Errorf("kept:\n%s\nwant\n%s", got, want)
	}
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

// What says whose board this is was thrown away, and comes back with init.
func TestCreateNotesTheIDAnew(t *testing.T) {
	f := folded(t, 3)
	path := filepath.Join(f.dir, runsName, idName)
	want := mustBytes(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if created, err := Create(filepath.Dir(filepath.Dir(f.dir)), "default", [16]byte{7}, 1, Options{}); err != nil || created {
		t.Fatal(created, err)
	}
	unchanged(t, path, want)
}
