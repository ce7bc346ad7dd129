package main

import (
	"fmt"
	"io"
	"os"

	"kanlog/proc"
)

// output reads a run's output while its worker goes on writing and its supervisor
// drops what is too much. What was dropped is a hole in the file, which reads as
// zeroes: it is never printed, however large, but said.
type output struct {
	f  *os.File
	at int64
	// cut: what was printed last ended inside a line.
	cut bool
	buf []byte
}

// outputChunk is how much is read at once.
const outputChunk = 64 << 10

// seekTail is seekTail for an output: a tail that would begin in what was dropped
// begins there with what is said of it.
func (o *output) seekTail(n int64) error {
	st, err := o.f.Stat()
	if err != nil {
		return err
	}
	size := st.Size()
	if o.at = max(0, size-n); o.at == 0 || o.at == size {
		return nil
	}
	hole, _, err := proc.NextHole(o.f, o.at, size)
	if err == nil && hole > o.at {
		o.at, err = lineFrom(o.f, o.at, hole)
	}
	return err
}

// copyTo prints what there is from where the last call ended.
func (o *output) copyTo(w io.Writer) error {
	if o.buf == nil {
		o.buf = make([]byte, outputChunk)
	}
	for {
		n, err := o.f.ReadAt(o.buf, o.at)
		if n == 0 {
			if err == io.EOF {
				err = nil
			}
			return err
		}
		// Asked after it was read: what is dropped in between was read as zeroes.
		upto := o.at + int64(n)
		hole, end, err := proc.NextHole(o.f, o.at, upto)
		if err != nil {
			return err
		}
		if whole := o.buf[:hole-o.at]; len(whole) > 0 {
			if _, err := w.Write(whole); err != nil {
				return err
			}
			o.cut = whole[len(whole)-1] != '\n'
		}
		if o.at = hole; hole == upto {
			continue
		}
		if err := o.skip(w, end); err != nil {
			return err
		}
	}
}

// skip says what was dropped up to end, and goes on with the next whole line.
func (o *output) skip(w io.Writer, end int64) error {
	st, err := o.f.Stat()
	if err != nil {
		return err
	}
	next := end
	if end < st.Size() {
		if next, err = lineFrom(o.f, end, min(st.Size(), end+outputChunk)); err != nil {
			return err
		}
	}
	gap := ""
	if o.cut {
		gap = "\n"
	}
	_, err = fmt.Fprintf(w, "%skanlog: ... %s of output dropped here (output_limit) ...\n", gap, sizeWords(next-o.at))
	o.at, o.cut = next, false
	return err
}
