package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"kanlog/eventlog"
)

// movedEvery is how often a board is looked at where the kernel tells nothing.
const movedEvery = 250 * time.Millisecond

// moved tells when a board's log or the settings may have changed. It is a hint:
// whoever gets it compares Store.Stamp, since writing and locking look alike.
type moved struct {
	C    <-chan struct{}
	Err  error // why the kernel tells nothing and the board is polled, or nil
	stop func()
}

// watch begins to watch the chosen board. The directories are watched and not the
// files: a rebuild or an editor puts a new file in the place of the old one.
func (a *app) watch() *moved {
	hint := make(chan struct{}, 1)
	poke := func() {
		select {
		case hint <- struct{}{}:
		default:
		}
	}
	w, err := fsnotify.NewWatcher()
	if err == nil {
		err = errors.Join(w.Add(a.boardDir), w.Add(a.home))
		if err != nil {
			w.Close()
		}
	}
	if err != nil {
		t := time.NewTicker(movedEvery)
		done := make(chan struct{})
		go func() {
			for {
				select {
				case <-t.C:
					poke()
				case <-done:
					t.Stop()
					return
				}
			}
		}()
		return &moved{C: hint, Err: err, stop: func() { close(done) }}
	}
	go func() {
		// Both channels are closed with the watcher.
		for w.Events != nil || w.Errors != nil {
			select {
			case e, ok := <-w.Events:
				if !ok {
					return
				}
				switch filepath.Base(e.Name) {
				case eventlog.StoreName, settingsName, filepath.Base(a.boardDir): // the last: it was moved away
					poke()
				}
			case _, ok := <-w.Errors: // a queue that ran over: something moved
				if !ok {
					return
				}
				poke()
			}
		}
	}()
	return &moved{C: hint, stop: func() { w.Close() }}
}

// wakes is what else may end a wait; a nil channel never does.
type wakes struct {
	ends  <-chan uint64
	ended func(run uint64) bool // whether that end is a reason to look
	other func() bool           // whether a hint means something beside the log
}

// idle waits until there may be something to do: the store's stamp is not was any
// more, due has come, or something of more; false if ctx is done.
func (a *app) idle(ctx context.Context, hint <-chan struct{}, was string, due time.Time, more wakes) bool {
	alarm := time.NewTimer(time.Until(due))
	defer alarm.Stop()
	for {
		if a.store.Stamp() != was {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-alarm.C:
			return true
		case run := <-more.ends:
			if more.ended(run) {
				return true
			}
		case <-hint:
			if more.other != nil && more.other() {
				return true
			}
		}
	}
}
