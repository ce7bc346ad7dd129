package main

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// seekTail moves to the start of the first whole line among the last n bytes. If
// no line begins there it moves to a byte that begins a character, and the end of
// a long line is better than nothing.
func seekTail(f interface {
	io.ReaderAt
	io.Seeker
}, n int64) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	start := max(0, size-n)
	if start > 0 {
		if start, err = lineFrom(f, start, size); err != nil {
			return err
		}
	}
	_, err = f.Seek(start, io.SeekStart)
	return err
}

// lineFrom is where the first line at or after start begins.
func lineFrom(f io.ReaderAt, start, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for at := start - 1; at < size-1; {
		// The last byte does not count: behind it nothing begins.
		got, err := f.ReadAt(buf[:min(int64(len(buf)), size-1-at)], at)
		if i := bytes.IndexByte(buf[:got], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		if err != nil || got == 0 {
			if err == io.EOF {
				err = nil
			}
			return start, err
		}
		at += int64(got)
	}
	got, err := f.ReadAt(buf[:min(utf8.UTFMax, size-start)], start)
	if err != nil && err != io.EOF {
		return start, err
	}
	for i := range got {
		if utf8.RuneStart(buf[i]) {
			return start + int64(i), nil
		}
	}
	return start, nil
}
