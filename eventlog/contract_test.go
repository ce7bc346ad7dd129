package eventlog_test

import (
	"testing"

	"kanlog/eventlog"
	"kanlog/eventlog/logtest"
)

func newBoard(t *testing.T) string {
	home := t.TempDir()
	if _, err := eventlog.Create(home, "default", [16]byte{7}, 1, eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	return eventlog.BoardDir(home, "default")
}

// fileLog reopens as another File on the same directory; nothing is shared
// between two but the disk.
type fileLog struct {
	*eventlog.File
}

func (l fileLog) Reopen(*testing.T) eventlog.Log {
	return fileLog{eventlog.Open(l.Dir(), eventlog.Options{})}
}

// txLog does everything inside a read-write transaction.
type txLog struct{ f *eventlog.File }

func (l txLog) Head() (h eventlog.Head, err error) {
	err = l.f.Update(func(tx *eventlog.Tx) error {
		h, err = tx.Head()
		return err
	})
	return h, err
}

func (l txLog) Append(after uint64, c eventlog.Commit) (done eventlog.Commit, err error) {
	err = l.f.Update(func(tx *eventlog.Tx) error {
		done, err = tx.Append(after, c)
		if err != nil {
			return err
		}
		// What was appended is the head for the rest of the transaction.
		_, err = tx.Head()
		return err
	})
	return done, err
}

func (l txLog) Read(from uint64, fn func(eventlog.Commit) error) error {
	var all []eventlog.Commit
	if err := l.f.Update(func(tx *eventlog.Tx) error {
		return tx.Read(from, func(c eventlog.Commit) error {
			all = append(all, c)
			return nil
		})
	}); err != nil {
		return err
	}
	for _, c := range all {
		if err := fn(c); err != nil {
			return err
		}
	}
	return nil
}

func (l txLog) Reopen(*testing.T) eventlog.Log {
	return txLog{eventlog.Open(l.f.Dir(), eventlog.Options{})}
}

func TestContract(t *testing.T) {
	t.Run("File", func(t *testing.T) {
		logtest.Run(t, func(t *testing.T) eventlog.Log { return fileLog{eventlog.Open(newBoard(t), eventlog.Options{})} })
	})
	t.Run("Tx", func(t *testing.T) {
		logtest.Run(t, func(t *testing.T) eventlog.Log { return txLog{eventlog.Open(newBoard(t), eventlog.Options{})} })
	})
	t.Run("Mem", func(t *testing.T) {
		logtest.Run(t, func(t *testing.T) eventlog.Log { return eventlog.NewMem([16]byte{7}) })
	})
}
