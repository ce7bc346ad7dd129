package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// asyncWriter passes on what is written to it, and keeps nobody waiting: who reads what a
// daemon prints may stop reading, and the daemon must go on dispatching. What was not
// passed on is kept in memory, so whoever writes much asks behind() first.
type asyncWriter struct {
	to io.Writer
	// most is how many bytes are kept; what is written beyond is left out and counted.
	// 0: all is kept.
	most int

	mu    sync.Mutex
	moved sync.Cond
	kept  [][]byte
	bytes int
	out   int // writes that were left out
	busy  bool
	err   error // of the last write
	ended bool
}

// behindAt is how many bytes make a reader one who has stopped reading.
const behindAt = 64 << 10

func newAsyncWriter(to io.Writer, most int) *asyncWriter {
	w := &asyncWriter{to: to, most: most}
	w.moved.L = &w.mu
	go w.pass()
	return w
}

// Write keeps b, and never fails: see failure.
func (w *asyncWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.most > 0 && w.bytes >= w.most {
		w.out++
		return len(b), nil
	}
	if w.out > 0 {
		w.keep(fmt.Appendf(nil, "kanlog: %s left out here: nobody read them in time\n", plural(w.out, "message", "messages")))
		w.out = 0
	}
	w.keep(append([]byte(nil), b...))
	return len(b), nil
}

// failure is why the last write that was tried failed, nil if it did not.
func (w *asyncWriter) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *asyncWriter) keep(b []byte) {
	w.kept = append(w.kept, b)
	w.bytes += len(b)
	w.moved.Broadcast()
}

// behind tells whether more waits to be passed on than a reader leaves who reads.
func (w *asyncWriter) behind() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes >= behindAt
}

func (w *asyncWriter) pass() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.kept) == 0 {
			if w.ended {
				return
			}
			w.moved.Wait()
		}
		b := w.kept[0]
		w.kept, w.busy = w.kept[1:], true
		w.mu.Unlock()
		_, err := w.to.Write(b)
		w.mu.Lock()
		w.bytes -= len(b)
		w.err = err
		w.busy = false
		w.moved.Broadcast()
	}
}

// finish waits until all is passed on, but no longer than patience: then nobody reads it.
func (w *asyncWriter) finish(patience time.Duration) {
	late := time.AfterFunc(patience, func() {
		w.mu.Lock()
		w.kept = nil
		w.ended = true
		w.moved.Broadcast()
		w.mu.Unlock()
	})
	defer late.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for (len(w.kept) > 0 || w.busy) && !w.ended {
		w.moved.Wait()
	}
	w.ended = true
	w.moved.Broadcast()
}
