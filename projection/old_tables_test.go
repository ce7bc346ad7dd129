package projection

import (
	"testing"

	"kanlog/eventlog"
)

// What an older program left is read by this one only after its rows were made
// anew: the form of a row may have changed, and its bytes do not say so.
func TestTablesOfEveryOlderFormatAreRebuilt(t *testing.T) {
	b := everyTable(t)
	good := b.onDisk(t).mustRows(t)
	for old := range uint64(TablesFormat) {
		s := b.onDisk(t)
		err := s.file.Update(func(tx *eventlog.Tx) error {
			tx.SetTablesFormat(old)
			tx.Put(tabTasks, []byte("t_old"), []byte{0xc1})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.View(func(View) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := s.mustRows(t); got != good {
			t.Errorf("tables of format %d are read as they are", old)
		}
	}
}
