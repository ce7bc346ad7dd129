package main

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// cleanWriter makes a stream harmless for a terminal, see clean. A character may
// come in two writes, and so may the two bytes that end a line elsewhere: the end
// of a write is kept until it is known what it is.
type cleanWriter struct {
	w    io.Writer
	kept []byte
}

// Write takes all of b or fails.
func (c *cleanWriter) Write(b []byte) (int, error) {
	all := append(c.kept, b...)
	keep := halfRead(all)
	c.kept = append([]byte(nil), all[len(all)-keep:]...)
	return len(b), c.put(all[:len(all)-keep])
}

// finish writes what was kept: nothing comes after it.
func finish(w io.Writer) error {
	c, ok := w.(*cleanWriter)
	if !ok {
		return nil
	}
	b := c.kept
	c.kept = nil
	return c.put(b)
}

func (c *cleanWriter) put(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	// Before a line break a carriage return does nothing.
	b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	_, err := io.WriteString(c.w, clean(string(b), true))
	return err
}

// halfRead is how many bytes at the end may be the beginning of something.
func halfRead(b []byte) int {
	if len(b) > 0 && b[len(b)-1] == '\r' {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
