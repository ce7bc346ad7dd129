package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"kanlog/eventlog"
)

// fleet is the daemons of every board of a home, in one process. Boards that come
// get one, boards that go lose theirs; what is wrong with one holds up no other.
type fleet struct {
	a        *app
	interval time.Duration
	watchdog *watchdog

	stop  context.CancelCauseFunc // ends all of it
	mu    sync.Mutex
	there map[string]bool   // boards with a daemon of this process
	said  map[string]string // what is wrong with a board and was said
}

func (f *fleet) run(ctx context.Context) error {
	f.there, f.said = map[string]bool{}, map[string]string{}
	ctx, f.stop = context.WithCancelCause(ctx)
	defer f.stop(nil)
	if err := os.MkdirAll(f.a.boardsDir(), 0o700); err != nil {
		return err
	}
	// Not a reason to stop: the boards are looked for every so often all the same.
	moved, err := fsnotify.NewWatcher()
	if err == nil {
		defer moved.Close()
		err = moved.Add(f.a.boardsDir())
	} else {
		moved = &fsnotify.Watcher{} // never says anything
	}
	if err != nil {
		f.a.warn("the kernel does not say when a board is made (%v): new ones are looked for every interval", err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	soon := 0 // so often it is looked again after a second
	for first := true; ; first = false {
		slugs, err := f.a.slugs()
		if err != nil {
			f.a.warn("%v", err)
		} else if first && len(slugs) == 0 {
			f.a.warn("there is no board in %s yet; waiting for the first one (kanlog init makes it)", f.a.boardsDir())
		}
		for _, slug := range slugs {
			f.mu.Lock()
			there := f.there[slug]
			f.there[slug] = true
			f.mu.Unlock()
			if !there {
				all.Go(func() { f.board(ctx, slug) })
			}
		}
		wait := f.every()
		if soon > 0 {
			wait, soon = time.Second, soon-1
		}
		again := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			again.Stop()
			return f.why(ctx)
		case <-moved.Events:
			// A board is made in steps, and is one when its store is there. Nobody
			// tells of that, and on a busy disk it takes a while.
			soon = 30
			if !sleep(ctx, 50*time.Millisecond) {
				return f.why(ctx)
			}
		case <-moved.Errors:
		case <-again.C:
		}
		again.Stop()
	}
}

// why is what ended the fleet, nil if somebody told it to end.
func (f *fleet) why(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, eventlog.ErrUnknownOutcome) {
		return err
	}
	return nil
}

func (f *fleet) every() time.Duration {
	if f.interval != 0 {
		return f.interval
	}
	return defaults().interval
}

// board runs the daemon of one board until it ends.
func (f *fleet) board(ctx context.Context, slug string) {
	b := *f.a
	err := b.use(slug)
	if err == nil {
		var d *daemon
		if d, err = b.newDaemon(f.interval, f.watchdog); err == nil {
			d.events.board, d.state.AllBoards = slug, true
			if err = d.run(ctx); err == nil {
				d.farewell()
			}
		}
	}
	f.ended(ctx, slug, err)
}

// ended says what is wrong with a board whose daemon has ended.
func (f *fleet) ended(ctx context.Context, slug string, err error) {
	if errors.Is(err, eventlog.ErrUnknownOutcome) {
		// This process cannot use the board any more, and would leave it to nobody:
		// the next one is started by whoever started this one.
		f.stop(err)
		return
	}
	f.mu.Lock()
	delete(f.there, slug)
	was := f.said[slug]
	f.said[slug] = ""
	if err != nil {
		f.said[slug] = err.Error()
	}
	say := f.said[slug] != "" && f.said[slug] != was
	f.mu.Unlock()
	if say && !(errors.Is(err, eventlog.ErrNoBoard) && ctx.Err() != nil) {
		again := "; the other boards go on, and this one is tried again"
		if errors.Is(err, eventlog.ErrNoBoard) {
			again = "; the other boards go on"
		}
		f.a.warn("%v%s", err, again)
	}
}

// slugs are the boards of the home that could be dispatched on.
func (a *app) slugs() (list []string, err error) {
	entries, err := os.ReadDir(a.boardsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if eventlog.CheckSlug(e.Name()) != nil {
			continue // archived boards, and copies that somebody made beside one
		}
		if there, err := holdsBoard(filepath.Join(a.boardsDir(), e.Name())); err == nil && there {
			list = append(list, e.Name())
		}
	}
	return list, err
}
