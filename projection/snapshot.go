package projection

import (
	"errors"

	"kanlog/eventlog"
)

// Snapshot is a board as it was at one commit, folded in memory: however long
// somebody looks at it, it stays that board, and nobody waits.
type Snapshot struct {
	View
	UUID [16]byte
	Head eventlog.Head
	// Cards are the ids of all cards, the oldest first.
	Cards []string
}

// Snapshot folds the log up to where it ends at this moment. It costs what the
// whole log costs, and is for what shows the whole board.
func (s *Store) Snapshot() (*Snapshot, error) {
	uuid, err := s.UUID()
	if err != nil {
		return nil, err
	}
	head, err := s.file.Head()
	if err != nil {
		return nil, err
	}
	mem := eventlog.NewMem(uuid)
	snap := &Snapshot{View: View{ending{mem, head}}, UUID: uuid, Head: head}
	err = s.CommitsUpTo(head.Commit, func(c eventlog.Commit) error {
		for _, e := range c.Events {
			if e.Kind() == eventlog.KindCreated {
				snap.Cards = append(snap.Cards, e.Task)
			}
		}
		return Fold(mem, c)
	})
	if err != nil {
		return nil, err
	}
	return snap, nil
}

// ending is tables whose log is elsewhere and ends at head.
type ending struct {
	*eventlog.Mem
	head eventlog.Head
}

// Head is the end of that log.
func (e ending) Head() (eventlog.Head, error) { return e.head, nil }

// CommitsUpTo is Commits from the first to the one with this number, whatever was
// appended since.
func (s *Store) CommitsUpTo(last uint64, fn func(eventlog.Commit) error) error {
	if last == 0 {
		return nil
	}
	err := s.Commits(1, func(c eventlog.Commit) error {
		if err := fn(c); err != nil {
			return err
		}
		if c.Number == last {
			return errOne
		}
		return nil
	})
	if errors.Is(err, errOne) {
		return nil
	}
	return err
}
