package eventlog

import (
	"os"
	"path/filepath"
	"testing"
)

// One decision as the program makes it: open, read a row, append a commit, put
// two rows, sync, close.
func BenchmarkAppend(b *testing.B) {
	f := newFile(b)
	row := make([]byte, 300)
	for i := 0; b.Loop(); i++ {
		if err := f.Update(func(tx *Tx) error {
			h, err := tx.Head()
			if err != nil {
				return err
			}
			tx.Get("tasks", number(uint64(i)))
			tx.Put("tasks", number(uint64(i)), row)
			tx.Put("ready", number(uint64(i)), row[:8])
			_, err = tx.Append(h.Commit, note("bench", 1))
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// What any durable append costs on this disk.
func BenchmarkPlainAppend(b *testing.B) {
	file, err := os.OpenFile(filepath.Join(b.TempDir(), "plain"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	page := make([]byte, 4096)
	for b.Loop() {
		if _, err := file.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := syncData(file); err != nil {
			b.Fatal(err)
		}
	}
}

// Opening, checking and closing, without a change.
func BenchmarkHead(b *testing.B) {
	f := newFile(b)
	for range 200 {
		mustAppend(b, f, note("bench", 2))
	}
	for b.Loop() {
		if _, err := f.Head(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	f := newFile(b)
	for range 500 {
		mustAppend(b, f, note("bench", 2))
	}
	for b.Loop() {
		if _, err := readAll(f); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*500/b.Elapsed().Seconds(), "commits/s")
}
