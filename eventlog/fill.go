package eventlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Fill writes the first commits of a store whose log is empty, all of them or
// none: fill is called for 0, 1, 2, ..., each time with a transaction of its own,
// until it says that there is no more. Nobody sees the new store before it is
// whole; a kill at any moment leaves the empty one or the filled one. ErrConflict:
// the log is not empty. Others wait meanwhile, but there is nothing to wait for.
func (f *File) Fill(fill func(t *Tx, n int) (more bool, err error)) error {
	if f.copy != "" {
		return errCopy
	}
	turn, err := f.turn()
	if err != nil {
		return err
	}
	defer turn.Unlock()
	return f.hold(func() error {
		old, err := begin(f.store(), false, f.o.wait())
		if err != nil {
			return err
		}
		defer old.end()
		if err := f.checkID(old.tx.uuid); err != nil {
			return err
		}
		head, err := old.tx.Head()
		if err != nil {
			return err
		}
		if head.Commit != 0 {
			return fmt.Errorf("%w: the log is not empty but has %d commits", ErrConflict, head.Commit)
		}
		aside := filepath.Join(f.dir, asideName)
		err = writeAside(aside, old.tx.identity, func(b batches) (err error) {
			more := true
			for n := 0; more && err == nil; n++ {
				atStep("fill batch")
				err = b.extend(func(t *Tx) (err error) {
					more, err = fill(t, n)
					return err
				})
			}
			return err
		})
		if err != nil {
			os.Remove(aside)
			return fmt.Errorf("fill: %w", err)
		}
		err = replace(f.dir, aside)
		if errors.Is(err, ErrUnknownOutcome) {
			poison(f.store())
		}
		return err
	})
}
