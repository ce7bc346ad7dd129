package projection

import (
	"errors"
	"fmt"

	"kanlog/eventlog"
)

// OpenCopy returns the store at path that stands alone: a backup. It can be read
// and verified, and never changes.
func OpenCopy(path string, o eventlog.Options) *Store { return &Store{eventlog.OpenCopy(path, o)} }

// ErrDamaged: what was to be copied, or what came of it, is not whole.
var ErrDamaged = errors.New("damaged")

// Backup writes a copy of the board, as it is now, to path; see eventlog.File.Copy.
// The copy is read back, its chain checked, its log folded anew and compared with its
// tables before it gets its name.
func (s *Store) Backup(aside, path string, over bool) (rep Report, err error) {
	err = s.file.Copy(aside, path, over, refold, func(f *eventlog.File) (err error) {
		rep, err = whole(&Store{f})
		return err
	})
	return rep, err
}

// whole is Verify for who needs nothing less.
func whole(s *Store) (Report, error) {
	rep, err := s.Verify()
	if err == nil && rep.Problem != "" {
		err = fmt.Errorf("%w: %s", ErrDamaged, rep.Problem)
	}
	return rep, err
}

// Restoration is what Restore is told beside the board and the copy.
type Restoration struct {
	Actor  string
	Now    eventlog.Time
	Limits Limits
	// Keep is the name that the store which is there gets; see eventlog.Restoring.
	Keep string
	// Over: a board that is there may be replaced.
	Over bool
	// Paused, unless it is empty, is why dispatchers are to start nothing on the
	// restored board until somebody resumes it.
	Paused string
	// Ready is called with the finished store, when nothing says no any more, right
	// before it takes its place.
	Ready func(*Store) error
}

// Restored is what became of a board.
type Restored struct {
	// From is the end of the log of the copy, Head that of the board now.
	From, Head eventlog.Head
	// Ended are the runs that were open in the copy, Dropped those closed ones
	// whose worker was on record.
	Ended, Dropped []*Run
	// Kept: there was a store, and it is there under its new name.
	Kept bool
	// Lost is how many commits the old store had more than the copy, if its log
	// goes on where the copy ends; -1 if that cannot be told.
	Lost int64
}

// Restore puts a copy in the place of the board slug, or makes the board from it;
// see eventlog.Restore. What had a worker or a claim when the copy was made has none
// any more: see EndForRestore. Refused while a run of the board that is there
// is active: its worker would go on beside that of the card's next run.
func Restore(home, slug string, from *Store, o eventlog.Options, r Restoration) (res Restored, err error) {
	res.Lost = -1
	if res.From, err = from.NewestCommit(); err != nil {
		return res, err
	}
	res.Kept, err = eventlog.Restore(home, slug, from.file, o, eventlog.Restoring{
		Fold: refold,
		Last: func(tx *eventlog.Tx) error { return res.endAll(tx, r) },
		Check: func(f *eventlog.File) error {
			rep, err := whole(&Store{f})
			if err == nil && rep.Commits != res.Head.Commit {
				err = fmt.Errorf("%w: it ends with commit %d, not %d", ErrDamaged, rep.Commits, res.Head.Commit)
			}
			if err == nil {
				err = r.Ready(&Store{f})
			}
			return err
		},
		Before: func(tx *eventlog.Tx) error {
			if err := idle(tx); err != nil {
				return err
			}
			res.Lost = beyond(tx, res.From)
			return nil
		},
		Keep: r.Keep, Over: r.Over,
	})
	return res, err
}

// endAll ends one run after the other: what becomes of a card may depend on what
// became of another.
func (res *Restored) endAll(tx *eventlog.Tx, r Restoration) error {
	runs, err := View{tx}.Active()
	if err != nil {
		return err
	}
	for _, run := range runs {
		d, err := EndForRestore(run.ID, res.From.Commit, r.Limits)(View{tx}, r.Now)
		if err != nil {
			return err
		}
		if _, err := commit(tx, r.Actor, r.Now, d.Events); err != nil {
			return err
		}
		if run.Open() {
			res.Ended = append(res.Ended, run)
		} else {
			res.Dropped = append(res.Dropped, run)
		}
	}
	if r.Paused != "" {
		d, err := PauseBoard(r.Paused, Writer{})(View{tx}, r.Now)
		if err != nil {
			return err
		}
		if len(d.Events) > 0 { // none if it was paused for the same reason already
			if _, err := commit(tx, r.Actor, r.Now, d.Events); err != nil {
				return err
			}
		}
	}
	res.Head, err = tx.Head()
	return err
}

// idle refuses while a run is active. Of tables of another format nobody knows.
func idle(tx *eventlog.Tx) error {
	if checkTables(tx) != nil {
		return nil
	}
	runs, err := View{tx}.Active()
	if err != nil || len(runs) == 0 {
		return err
	}
	r := runs[0]
	return refuse(ErrState, r.Task, "run %d is active on the board that is there (%d in all); end it first (kanlog stop --kill, kanlog dispatch books what has ended, kanlog reclaim ends a claim): its worker would go on beside that of the next run", r.ID, len(runs))
}

// beyond is how many commits follow on head in a log, -1 if head is not in it.
func beyond(tx *eventlog.Tx, head eventlog.Head) int64 {
	end, err := tx.Head()
	if err != nil || end.Commit < head.Commit {
		return -1
	}
	var at [32]byte
	err = tx.Read(max(head.Commit, 1), func(c eventlog.Commit) error {
		at = c.Hash
		return errOne
	})
	switch {
	case head.Commit == 0:
		return int64(end.Commit)
	case !errors.Is(err, errOne) || at != head.Hash:
		return -1
	}
	return int64(end.Commit - head.Commit)
}
