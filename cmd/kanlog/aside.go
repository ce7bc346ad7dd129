package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kanlog/eventlog"
)

// writeAside makes the file at path of what write writes: all of it, durable, or
// nothing. What is there is left alone unless force says otherwise. Mode 0600:
// what stands on a board is for its owner.
func writeAside(path string, force bool, write func(io.Writer) error) error {
	taken := func() error {
		return &refusedError{fmt.Sprintf("%s is there already and was left alone; --force replaces it", path)}
	}
	if st, err := os.Lstat(path); err == nil {
		switch {
		case !force:
			return taken()
		case !st.Mode().IsRegular():
			return notPlain(path)
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	buf := bufio.NewWriterSize(f, 1<<16)
	err = write(buf)
	if err == nil {
		err = buf.Flush() // which else says once more what write has met
	}
	if err != nil {
		f.Close()
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	// A link fails where a rename would replace what somebody else made meanwhile.
	put := os.Link
	if force {
		put = os.Rename
	}
	err = put(f.Name(), path)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		err = os.Rename(f.Name(), path) // a file system without links
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return taken()
	case err != nil:
		return fmt.Errorf("write %s: %w", path, err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// notPlain is a link, a device or the like in the place of a file that may be replaced:
// the link would go and what it names stay, and a device would be gone for everybody.
func notPlain(path string) error {
	return &refusedError{path + " is no plain file and was left alone; name another one"}
}

// outsideBoards refuses to write a file into a board's own directory: there a name may
// be that of the store, of a lock or of what a rebuild is just writing, and whoever
// replaces it has destroyed a board.
func (a *app) outsideBoards(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	in := within(dir, a.boardsDir())
	if _, err := os.Lstat(filepath.Join(dir, eventlog.StoreName)); !in && err == nil {
		// Of another home, or put away.
		if in, err = holdsBoard(dir); err != nil {
			return err
		}
	}
	if in {
		return &refusedError{fmt.Sprintf("%s is a board's own directory and was left alone; name a place outside of it", dir)}
	}
	return nil
}
