package eventlog

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// damage is thrown by a Tx that met a damaged page where its method has no
// error to return: nothing may be decided on what was not there.
type damage struct{ err error }

// guarded runs fn, which may touch a store's mapping, and turns what a damaged
// store does to bbolt (faults on the mapping, failed assertions, wild indexes)
// into a RefusedError. Any other panic is ours and goes on.
func guarded(path string, fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		r := recover()
		if r == nil {
			return
		}
		if d, ok := r.(damage); ok {
			err = d.err
			return
		}
		// An address means a fault on memory that is no variable of ours:
		// the file got shorter than its mapping, or a length in it lies. A nil
		// pointer of our own has none.
		if f, ok := r.(interface{ Addr() uintptr }); ok {
			err = &RefusedError{Path: path, Kind: Damaged, Detail: fmt.Sprintf("reading it faulted at %#x", f.Addr())}
			return
		}
		if inBolt() {
			err = &RefusedError{Path: path, Kind: Damaged, Detail: fmt.Sprint(r)}
			return
		}
		panic(r)
	}()
	return fn()
}

// inBolt reports whether the panic being recovered was raised by bbolt. It must
// be called by the deferred function itself, while the frames are still there.
func inBolt() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicking := false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			panicking = panicking || f.Function == "runtime.gopanic"
		case panicking:
			return strings.HasPrefix(f.Function, "go.etcd.io/bbolt")
		}
		if !more {
			return false
		}
	}
}
