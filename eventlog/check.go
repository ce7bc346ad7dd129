package eventlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// checkPlace says whether dir holds a whole board, looking at names only. It
// makes nothing, not even a lock file, where there is no board.
func checkPlace(dir string) error {
	_, storeErr := os.Lstat(filepath.Join(dir, StoreName))
	_, runsErr := os.Lstat(filepath.Join(dir, runsName))
	for _, err := range []error{storeErr, runsErr} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("look at board: %w", err)
		}
	}
	switch {
	case runsErr != nil && storeErr != nil:
		return fmt.Errorf("%w: %q (there is none at %s)", ErrNoBoard, filepath.Base(dir), dir)
	case runsErr != nil:
		return fmt.Errorf("%w: %q (its store is there and its %s/ is not: its creation was cut off, or that was removed; kanlog init finishes it and keeps the store as it is)",
			ErrNoBoard, filepath.Base(dir), runsName)
	case storeErr != nil:
		return &RefusedError{Path: filepath.Join(dir, StoreName), Kind: Missing,
			Detail: "the board's directory is there (" + runsName + "/), its store is not; put a backup in its place"}
	}
	return nil
}

// checkFS refuses a directory on a file system that is not local.
func checkFS(dir string, o Options) error {
	if o.AllowNetwork {
		return nil
	}
	name, err := remoteFS(dir)
	if err != nil {
		return err
	}
	if name != "" {
		return &RefusedError{Path: dir, Kind: Network,
			Detail: "it is on " + name + "; locks and mappings of another machine's file mean nothing here"}
	}
	return nil
}

// checkPages looks at a store before bbolt does and returns its newer meta page.
//
// Both meta pages must be whole. bbolt is content with one, but the other may
// be the newer: falling back would silently drop the last commit, which was
// acknowledged. A crash does not leave such a page: it is one write of less
// than a sector.
func checkPages(file *os.File) (metaPage, error) {
	path := file.Name()
	refuse := func(kind RefusedKind, detail string) (metaPage, error) {
		return metaPage{}, &RefusedError{Path: path, Kind: kind, Detail: detail}
	}
	fi, err := file.Stat()
	if err != nil {
		return metaPage{}, fmt.Errorf("look at store: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return refuse(Foreign, "it is not a regular file")
	}
	if fi.Size() == 0 {
		return refuse(Empty, "it has 0 bytes")
	}
	m0, err0 := readMeta(file, 0, 0)
	m1, err1, found1 := findMeta1(file, m0, err0)
	for _, err := range []error{err0, err1} {
		if diskFailed(err) {
			return metaPage{}, fmt.Errorf("look at store: %w", err)
		}
	}
	switch {
	case m0.magic != boltMagic && !found1:
		return refuse(Foreign, "it is not a bbolt file")
	case err0 != nil && !errors.Is(err0, io.EOF):
		return refuse(Damaged, err0.Error())
	case errors.Is(err0, io.EOF) || errors.Is(err1, io.EOF):
		return refuse(Cut, fmt.Sprintf("%d bytes are less than its two meta pages", fi.Size()))
	case err1 != nil:
		return refuse(Damaged, err1.Error())
	case m0.pageSize != m1.pageSize:
		return refuse(Damaged, fmt.Sprintf("its meta pages disagree on the page size: %d and %d", m0.pageSize, m1.pageSize))
	case m0.txid != m1.txid+1 && m1.txid != m0.txid+1:
		return refuse(Damaged, fmt.Sprintf("its meta pages are of transactions %d and %d, which do not follow each other", m0.txid, m1.txid))
	}
	if high := max(m0.high, m1.high); high > uint64(fi.Size())/uint64(m0.pageSize) {
		return refuse(Cut, fmt.Sprintf("%d bytes, but %d pages of %d are in use", fi.Size(), high, m0.pageSize))
	}
	if m1.txid > m0.txid {
		return m1, nil
	}
	return m0, nil
}

// diskFailed tells whether the system could not read the file. That says nothing
// about the store; what it holds may be whole.
func diskFailed(err error) bool {
	failed := new(fs.PathError)
	return errors.As(err, &failed)
}

// findMeta1 reads the second meta page, whose place depends on the page size:
// what the first says, or, if that is bad, wherever one is found.
func findMeta1(file *os.File, m0 metaPage, err0 error) (m metaPage, err error, found bool) {
	if err0 == nil {
		m, err = readMeta(file, 1, int64(m0.pageSize))
		return m, err, true
	}
	for size := int64(minPageSize); size <= maxPageSize; size *= 2 {
		if m, err = readMeta(file, 1, size); m.magic == boltMagic {
			return m, err, true
		}
	}
	return m, err0, false
}
