package eventlog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// fillWith appends so many commits, one a batch.
func fillWith(commits int) func(*Tx, int) (bool, error) {
	return func(tx *Tx, n int) (bool, error) {
		c, err := tx.Append(uint64(n), note("ann", 2))
		if err == nil {
			err = foldAuthors(tx, c)
		}
		return n+1 < commits, err
	}
}

// childFill DIR N
func childFill(args []string) error {
	if err := dieAt(args[1]); err != nil {
		return err
	}
	return Open(args[0], Options{}).Fill(fillWith(5))
}

// Whoever looks sees an empty log or all of it, whatever happens on the way.
func TestFill(t *testing.T) {
	t.Run("an error leaves the empty store", func(t *testing.T) {
		f := newFile(t)
		before := mustBytes(t, f.store())
		mine := errors.New("mine")
		err := f.Fill(func(tx *Tx, n int) (bool, error) {
			if n == 3 {
				return true, mine
			}
			return fillWith(5)(tx, n)
		})
		if !errors.Is(err, mine) || !bytes.Equal(mustBytes(t, f.store()), before) {
			t.Errorf("%v, or the store was changed", err)
		}
	})
	t.Run("killed anywhere", func(t *testing.T) {
		f := newFile(t)
		empty := dump(t, f)
		whole := newFile(t)
		if err := whole.Fill(fillWith(5)); err != nil {
			t.Fatal(err)
		}
		want := dump(t, whole)
		for n := 1; ; n++ {
			killed := runKilled(t, child("fill", f.dir, strconv.Itoa(n)))
			if got := dump(t, f); got == want {
				if killed && n < 9 {
					t.Errorf("filled after %d steps already", n)
				}
				break
			} else if got != empty || !killed {
				t.Fatalf("killed at step %d: the store is neither empty nor whole", n)
			}
		}
		if len(mustRead(t, f)) != 5 {
			t.Error("the log has another length")
		}
		if _, err := os.Lstat(filepath.Join(f.dir, asideName)); err == nil {
			t.Error("the aside file is left over")
		}
	})
	t.Run("a log with a history is refused", func(t *testing.T) {
		f := newFile(t)
		if _, err := f.Append(0, note("ann", 1)); err != nil {
			t.Fatal(err)
		}
		before := mustBytes(t, f.store())
		if err := f.Fill(fillWith(5)); !errors.Is(err, ErrConflict) || !bytes.Equal(mustBytes(t, f.store()), before) {
			t.Errorf("%v, or the store was changed", err)
		}
	})
}
