package projection

import (
	"errors"

	"kanlog/eventlog"
)

// Move gives the board another directory, see eventlog.File.Move: refused while a
// run is open or has a worker on record, whose process and files go by the old
// one. before, called when nothing is in the way any more, may still say no.
func (s *Store) Move(to string, before func() error) error {
	err := s.file.Move(to, func(tx *eventlog.Tx) error {
		if err := checkTables(tx); err != nil {
			return err
		}
		runs, err := View{tx}.Active()
		if err != nil {
			return err
		}
		if n := len(runs); n > 0 {
			more := ""
			if n > 1 {
				more = " (and others)"
			}
			return refuse(ErrState, runs[0].Task, "run %d is active%s: its worker or its claim goes by the board's name; let it end, or cancel or reclaim it", runs[0].ID, more)
		}
		return before()
	})
	if errors.Is(err, errOldTables) {
		if err := s.renew(); err != nil {
			return err
		}
		return s.Move(to, before)
	}
	return err
}
