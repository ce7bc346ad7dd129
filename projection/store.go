package projection

import (
	"errors"

	"kanlog/eventlog"
)

// Store is a board: the log of one directory and the tables folded from it. It
// holds nothing open between calls and may be used by several goroutines.
type Store struct{ file *eventlog.File }

// Open returns the board in dir, boards/<slug>. It does not touch the disk; a
// missing or damaged store shows at the first call.
func Open(dir string, o eventlog.Options) *Store { return &Store{eventlog.Open(dir, o)} }

// Result is what an update did.
type Result struct {
	// Commit is what was appended; its Number is 0 if nothing was.
	Commit eventlog.Commit
	Task   string
	Note   string
	// Applied are the cards of a graph that was applied.
	Applied []Applied
}

// Update runs one decider in one transaction: it reads, decides, appends the
// events as one commit and folds them into the tables. When it returns nil the
// commit is durable. A refusal changes nothing, except that it may leave a
// fenced event. now and actor are written into the commit.
func (s *Store) Update(actor string, now eventlog.Time, decide Decider) (Result, error) {
	return s.UpdateThen(actor, now, decide, nil)
}

// UpdateThen is Update with a look at what it made: then, unless it is nil,
// runs in the same transaction after the fold, so that a caller who prints the
// outcome need not open the store again (and fail, with the change made). What
// it found counts only if UpdateThen returns nil.
func (s *Store) UpdateThen(actor string, now eventlog.Time, decide Decider, then func(View, Result) error) (Result, error) {
	var res Result
	var refused error
	err := s.file.Update(func(tx *eventlog.Tx) error {
		if err := checkTables(tx); err != nil {
			return err
		}
		d, err := decide(View{tx}, now)
		if err != nil {
			return err
		}
		res, refused = d.Result(), d.Refused
		if len(d.Events) > 0 {
			tx.SetTablesFormat(TablesFormat)
			if res.Commit, err = commit(tx, actor, now, d.Events); err != nil {
				return err
			}
		}
		if then == nil || refused != nil {
			return nil
		}
		return then(View{tx}, res)
	})
	if errors.Is(err, errOldTables) {
		if err := s.renew(); err != nil {
			return Result{}, err
		}
		return s.UpdateThen(actor, now, decide, then)
	}
	if err == nil {
		err = refused
	}
	if err != nil {
		res = Result{Task: res.Task}
	}
	return res, err
}

// logTables is a log with the tables folded from it, in one transaction.
type logTables interface {
	Tables
	Head() (eventlog.Head, error)
	Append(after uint64, c eventlog.Commit) (eventlog.Commit, error)
	Read(from uint64, fn func(eventlog.Commit) error) error
}

// commit appends one decision and folds it. The two belong to one transaction:
// an appended commit whose fold failed must not stay. What is folded is read
// back from the log, so that the tables can hold nothing that the log does not
// say (an empty value that decodes as an absent one, for example).
func commit(tx logTables, actor string, now eventlog.Time, events []eventlog.Event) (eventlog.Commit, error) {
	head, err := tx.Head()
	if err != nil {
		return eventlog.Commit{}, err
	}
	c, err := tx.Append(head.Commit, eventlog.Commit{At: now, Actor: actor, Events: events})
	if err != nil {
		return c, err
	}
	err = tx.Read(c.Number, func(stored eventlog.Commit) error {
		c = stored
		return Fold(tx, c)
	})
	return c, err
}

// checkTables returns errOldTables if the tables were written by a program with
// other rows. A log without commits has no tables yet.
func checkTables(tx *eventlog.Tx) error {
	if tx.TablesFormat() == TablesFormat {
		return nil
	}
	head, err := tx.Head()
	if err != nil || head.Commit == 0 {
		return err
	}
	return errOldTables
}

// errOldTables: the tables are of another format than this program's.
var errOldTables = errors.New("tables of another format")

// View lets fn read one consistent state. fn must not keep the view, and must
// be brief: others wait.
func (s *Store) View(fn func(View) error) error {
	return s.view(func(tx *eventlog.Tx) error { return fn(View{tx}) })
}

func (s *Store) view(fn func(tx *eventlog.Tx) error) error {
	err := s.file.View(func(tx *eventlog.Tx) error {
		if err := checkTables(tx); err != nil {
			return err
		}
		return fn(tx)
	})
	if errors.Is(err, errOldTables) {
		if err := s.renew(); err != nil {
			return err
		}
		return s.view(fn)
	}
	return err
}

// cardBatch is how many cards EachCard reads in one transaction.
const cardBatch = 500

// EachCard calls fn for every card in the order of ids, in batches between which
// others may write: each card is as it was in its own batch.
func (s *Store) EachCard(fn func(View, *Task) error) error {
	for after := ""; ; {
		n := 0
		err := s.View(func(v View) error {
			list, err := v.TasksAfter(after, cardBatch)
			if err != nil {
				return err
			}
			n = len(list)
			for _, t := range list {
				after = t.ID
				if err := fn(v, t); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || n < cardBatch {
			return err
		}
	}
}

// NewestCommit is the end of the log. The tables are not looked at.
func (s *Store) NewestCommit() (eventlog.Head, error) { return s.file.Head() }

// Stamp differs after every commit; see eventlog.File.Stamp.
func (s *Store) Stamp() string { return s.file.Stamp() }

// UUID returns the board's identity.
func (s *Store) UUID() ([16]byte, error) {
	var id [16]byte
	err := s.file.View(func(tx *eventlog.Tx) error { id = tx.UUID(); return nil })
	return id, err
}

// Rebuild drops the tables and folds the log anew. The store is replaced by
// rename, so a kill leaves the old or the new one.
func (s *Store) Rebuild() error { return s.file.Rebuild(refold) }

// renew is Rebuild for tables of another format, unless somebody else was first.
func (s *Store) renew() error {
	return s.file.RebuildIf(func(tx *eventlog.Tx) (bool, error) {
		err := checkTables(tx)
		if errors.Is(err, errOldTables) {
			return true, nil
		}
		return false, err
	}, refold)
}

// refold makes the tables of this program from the beginning.
func refold(tx *eventlog.Tx, c eventlog.Commit) error {
	tx.SetTablesFormat(TablesFormat)
	return Fold(tx, c)
}

// Commits reads the commits numbered from on, in bounded batches, without
// keeping others waiting while fn runs.
func (s *Store) Commits(from uint64, fn func(eventlog.Commit) error) error {
	return s.file.Read(from, fn)
}

// TaskCommits reads the commits that concern one card from a number on, in
// bounded batches.
func (s *Store) TaskCommits(task string, from uint64, fn func(eventlog.Commit) error) error {
	return s.taskCommits(task, from, func(*eventlog.Tx) error { return nil }, fn)
}

// TaskCommitsUpTo is TaskCommits as far as head, for who has read something else that
// ends there. eventlog.ErrReplaced, and fn sees nothing more, once head is not in the log.
func (s *Store) TaskCommitsUpTo(head eventlog.Head, task string, from uint64, fn func(eventlog.Commit) error) error {
	err := s.taskCommits(task, from, func(tx *eventlog.Tx) error { return tx.GoesOnFrom(head) }, func(c eventlog.Commit) error {
		if c.Number > head.Commit {
			return errOne
		}
		return fn(c)
	})
	if errors.Is(err, errOne) {
		return nil
	}
	return err
}

// taskCommits is TaskCommits with a look at the log in each transaction.
func (s *Store) taskCommits(task string, from uint64, look func(*eventlog.Tx) error, fn func(eventlog.Commit) error) error {
	const batch = 256
	for {
		var got []eventlog.Commit
		full := false
		err := s.view(func(tx *eventlog.Tx) error {
			if err := look(tx); err != nil {
				return err
			}
			numbers := View{tx}.TaskCommits(task, from, batch)
			full = len(numbers) == batch
			for _, n := range numbers {
				err := tx.Read(n, func(c eventlog.Commit) error {
					got = append(got, c)
					return errOne
				})
				if err != nil && !errors.Is(err, errOne) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, c := range got {
			if err := fn(c); err != nil {
				return err
			}
			from = c.Number + 1
		}
		if !full {
			return nil
		}
	}
}

// errOne ends a Read after the commit that was wanted.
var errOne = errors.New("one is enough")

// MemStore is a board in memory, for tests and simulation: the same fold and
// the same deciders over eventlog.Mem.
type MemStore struct{ Mem *eventlog.Mem }

// Update is Store.Update. A decider's refusal leaves no trace but fenced.
func (s *MemStore) Update(actor string, now eventlog.Time, decide Decider) (Result, error) {
	d, err := decide(View{s.Mem}, now)
	if err != nil {
		return Result{}, err
	}
	res := d.Result()
	if len(d.Events) > 0 {
		if res.Commit, err = commit(s.Mem, actor, now, d.Events); err != nil {
			return Result{}, err
		}
	}
	if d.Refused != nil {
		res = Result{Task: d.Task}
	}
	return res, d.Refused
}

// View is Store.View.
func (s *MemStore) View(fn func(View) error) error { return fn(View{s.Mem}) }

// CommitOf returns the number of the first commit that may hold an event
// numbered above seq: every commit has at least one event, so it lies at or
// before seq + 1, and a binary search finds it.
func (s *Store) CommitOf(seq uint64) (uint64, error) {
	var found uint64
	err := s.view(func(tx *eventlog.Tx) error {
		head, err := tx.Head()
		if err != nil {
			return err
		}
		low, high := uint64(1), head.Commit+1 // the answer lies in [low, high]
		for low < high {
			mid := (low + high) / 2
			last := uint64(0)
			err := tx.Read(mid, func(c eventlog.Commit) error {
				last = c.Seq + uint64(len(c.Events)) - 1
				return errOne
			})
			if err != nil && !errors.Is(err, errOne) {
				return err
			}
			if last > seq {
				high = mid
			} else {
				low = mid + 1
			}
		}
		found = low
		return nil
	})
	return found, err
}
