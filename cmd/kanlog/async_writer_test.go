package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// A writer is not kept waiting by who does not read, and nothing is lost or out of order
// when he reads again.
func TestAsyncWriterKeepsNobodyWaiting(t *testing.T) {
	r, to := io.Pipe()
	w := newAsyncWriter(to, 0)
	line := []byte(strings.Repeat("x", 1<<10) + "\n")
	for n := 0; !w.behind(); n++ {
		if n > 1000 {
			t.Fatal("1000 lines of 1 KiB that nobody read, and it is not behind")
		}
		if _, err := w.Write(append([]byte{byte('a' + n%26)}, line...)); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(&got, r)
		close(read)
	}()
	w.finish(time.Minute)
	to.Close()
	<-read
	lines := strings.Split(strings.TrimSuffix(got.String(), "\n"), "\n")
	if len(lines) < 32 {
		t.Errorf("%d lines came through", len(lines))
	}
	for n, l := range lines {
		if want := string(rune('a' + n%26)); l[:1] != want || len(l) != 1+1<<10 {
			t.Fatalf("line %d begins with %q and has %d bytes, want %q and %d", n, l[:1], len(l), want, 1+1<<10)
		}
	}
	if w.behind() {
		t.Error("all was read, and it is behind")
	}
}

func TestAsyncWriterLeavesOut(t *testing.T) {
	r, to := io.Pipe()
	w := newAsyncWriter(to, 10)
	for _, s := range []string{"0123456789\n", "left out\n", "this too\n"} {
		if n, err := w.Write([]byte(s)); err != nil || n != len(s) {
			t.Fatalf("%q: %d, %v", s, n, err)
		}
	}
	first := make([]byte, 11)
	if _, err := io.ReadFull(r, first); err != nil || string(first) != "0123456789\n" {
		t.Fatalf("%q, %v", first, err)
	}
	w.finish(time.Minute)
	next := newAsyncWriter(to, 10) // as w was, with room again
	next.out = w.out
	if _, err := next.Write([]byte("here again\n")); err != nil {
		t.Fatal(err)
	}
	go func() {
		next.finish(time.Minute)
		to.Close()
	}()
	got, err := io.ReadAll(r)
	if want := "kanlog: 2 messages left out here: nobody read them in time\nhere again\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// failing fails once.
type failing struct {
	err error
	to  io.Writer
}

func (f *failing) Write(b []byte) (int, error) {
	if err := f.err; err != nil {
		f.err = nil
		return 0, err
	}
	return f.to.Write(b)
}

func TestAsyncWriterTellsOfAnError(t *testing.T) {
	full := errors.New("no space left")
	var got bytes.Buffer
	w := newAsyncWriter(&failing{err: full, to: &got}, 0)
	if _, err := w.Write([]byte("lost")); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	for w.err == nil {
		w.moved.Wait()
	}
	w.mu.Unlock()
	if err := w.failure(); !errors.Is(err, full) {
		t.Errorf("told of %v, want %v", err, full)
	}
	if _, err := w.Write([]byte("here")); err != nil {
		t.Errorf("the next one: %v", err)
	}
	w.finish(time.Minute)
	if got.String() != "here" || w.failure() != nil {
		t.Errorf("%q came through", got.String())
	}
}

// At the end a daemon does not wait for a reader who does not come.
func TestAsyncWriterGivesUp(t *testing.T) {
	_, to := io.Pipe()
	w := newAsyncWriter(to, 0)
	if _, err := w.Write([]byte("nobody reads this")); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		w.finish(time.Millisecond)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it waits for a reader")
	}
}
