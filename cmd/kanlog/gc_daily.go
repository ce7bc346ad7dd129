package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"kanlog/eventlog"
)

// gcEvery is how often a daemon cleans up.
const gcEvery = 24 * time.Hour

// daily begins a gc beside the ticks if the last one, by whomever, is a day old. What
// it keeps nobody is told of here: kanlog gc --dry-run says that.
func (d *daemon) daily(ctx context.Context) {
	now := d.a.clock()
	if d.a.set == nil || d.cleaned != 0 && now.Since(d.cleaned) < gcEvery {
		return
	}
	state := readGCState(os.ReadFile(filepath.Join(d.a.boardDir, gcStateName)))
	d.cleaned = state.At
	if d.cleaned != 0 && now.Since(d.cleaned) < gcEvery {
		return
	}
	d.cleaned = now // also if it fails: tomorrow again
	// The settings of this tick; the next one reads them anew.
	own := *d.a
	own.now = now
	d.starts.Go(func() {
		rep, err := own.collect(ctx, func(fn func() error) error {
			d.forks.Lock()
			defer d.forks.Unlock()
			return fn()
		}, false)
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, eventlog.ErrBusy) {
			own.warn("board %s: gc: %v", own.slug, err)
		}
		if rep == nil {
			return
		}
		for _, i := range rep.Failed {
			own.warn("board %s: gc: %s: %v", own.slug, i.Path, i.Reason)
		}
		if len(rep.Removed) > 0 {
			d.say("board %s: gc removed %s (%s)", own.slug, plural(len(rep.Removed), "workspace or output", "workspaces and outputs"), sizeWords(rep.size()))
		}
	})
}
