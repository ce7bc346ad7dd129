package eventlog

import (
	"fmt"
	"os"
)

// Stamp returns a text that differs after every commit, for who waits for the
// next one. It takes no lock and opens no transaction, and promises nothing
// about the store: a file that cannot be read, or is just being written, has a
// stamp like any other. Times of a file would not do: two commits within one
// tick of the kernel's clock leave the same.
func (f *File) Stamp() string {
	file, err := os.Open(f.store())
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	fi, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	m, err := checkPages(file)
	return fmt.Sprint(m.txid, fi.Size(), err)
}
