package proc

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// echo shows what a command writes to somebody beside the run's output file, by
// reading that file behind it. The command has nothing but the file: it does not
// notice a reader that is slow, or a terminal that is closed.
type echo struct {
	from *os.File
	to   io.Writer
	at   int64
	last atomic.Int64 // where the command's part ends, -1 while that is not known
	over chan struct{}
	done chan struct{}
}

func startEcho(from *os.File, at int64, to io.Writer) *echo {
	e := &echo{from: from, to: to, at: at, over: make(chan struct{}), done: make(chan struct{})}
	e.last.Store(-1)
	go e.run()
	return e
}

func (e *echo) run() {
	defer close(e.done)
	every := time.NewTicker(echoEvery)
	defer every.Stop()
	buf := make([]byte, echoBuffer)
	for {
		n, err := e.from.ReadAt(buf, e.at)
		// Asked after reading: what is behind the end is only written when that is
		// known.
		last := e.last.Load()
		if last >= 0 {
			n = int(min(int64(n), last-e.at))
		}
		if n > 0 {
			if err := e.show(buf[:n]); err != nil {
				return // nobody looks on any more
			}
			continue
		}
		if last >= 0 || err != nil && err != io.EOF {
			return
		}
		select {
		case <-every.C:
		case <-e.over:
		}
	}
}

// show writes what was read. Whoever was slow may find that the output's middle was
// given back meanwhile: a hole, which reads as zeroes, however large. That is said and
// not written.
func (e *echo) show(read []byte) error {
	upto := e.at + int64(len(read))
	hole, end, err := NextHole(e.from, e.at, upto)
	if err != nil {
		hole = upto
	}
	if _, err := e.to.Write(read[:hole-e.at]); err != nil || hole == upto {
		e.at = upto
		return err
	}
	e.at = end
	_, err = fmt.Fprintf(e.to, "\nkanlog: %d bytes of output dropped here (output_limit)\n", end-hole)
	return err
}

// finish says that nothing more comes from the command.
func (e *echo) finish() {
	st, err := e.from.Stat()
	last := e.at
	if err == nil {
		last = st.Size()
	}
	e.last.Store(last)
	close(e.over)
}
