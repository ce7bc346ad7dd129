package main

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"time"

	"kanlog/proc"
)

// spareKeeper keeps one spare supervisor for a daemon, for all boards: the next worker
// begins while another supervisor would still be initialising itself. It is made a
// moment after the last start, so that it is in nobody's way. nil keeps none.
type spareKeeper struct {
	mu    sync.Mutex
	spare *proc.Spare
	timer *time.Timer // until one is made; nil: none is to be made
	ended bool
}

// spareAfter is that moment.
const spareAfter = 50 * time.Millisecond

// keep has a spare made if there is none, spareAfter from now; if one is to be made
// already, that moment begins anew only if a worker was started just now. forks is held
// while it is forked, see [tick.Dispatcher].
func (k *spareKeeper) keep(started bool, forks *sync.Mutex) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended || k.has() {
		return
	}
	if k.timer != nil {
		if started {
			k.timer.Reset(spareAfter)
		}
		return
	}
	k.timer = time.AfterFunc(spareAfter, func() {
		forks.Lock()
		defer forks.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		k.timer = nil
		if k.ended || k.has() {
			return
		}
		if k.spare != nil {
			k.spare.End()
		}
		// One that cannot be started is not missed: who starts a worker says why.
		k.spare, _ = proc.StartSpare([]string{"kanlog", superviseVerb}, spareEnv())
	})
}

func (k *spareKeeper) has() bool { return k.spare != nil && !k.spare.Gone() }

// spareEnv is what a spare needs for itself: settings of Go's runtime.
func spareEnv() (env []string) {
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "GO") {
			env = append(env, v)
		}
	}
	return append(env, oneProcessor)
}

// use makes the spare the supervisor of a run, nil if there is none. It may take a
// second, if the spare is stopped.
func (k *spareKeeper) use(spec superviseSpec, env []string) *proc.Child {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	spare := k.spare
	k.spare = nil
	k.mu.Unlock()
	if spare == nil {
		return nil
	}
	spec.Env = []byte(strings.Join(env, "\x00") + "\x00")
	text, err := json.Marshal(spec)
	if err != nil {
		spare.End()
		return nil
	}
	child, err := spare.Use(text)
	if err != nil {
		return nil // it runs nothing; another is started
	}
	return child
}

// end ends the spare that is left, and makes none any more.
func (k *spareKeeper) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.timer != nil {
		k.timer.Stop()
	}
	if k.spare != nil {
		k.spare.End()
		k.spare = nil
	}
}
