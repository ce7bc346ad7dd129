package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"kanlog/eventlog"
	"kanlog/projection"
)

// app is one call of the program: where the board is, who calls, what time it
// is. Everything ambient (environment, clock, user) is read here once.
type app struct {
	home   string
	slug   string
	asJSON bool
	out    io.Writer
	errw   io.Writer

	runFlag uint64 // --run

	fixed *screen // what results are written for, if they go there by another way

	each *outcome // of a bulk verb with --json, where the one at hand goes

	now  eventlog.Time
	skew *atomic.Int64 // nanoseconds added to the wall clock; nil for none
	fail *failpoints

	spares *spareKeeper // of a daemon; nil keeps none

	set      *settings
	store    *projection.Store
	past     *projection.Past // what reading verbs read in the place of the store, or nil
	boardDir string
	uuid     *[16]byte // of the board, once it was read
}

// start reads the environment and finds the board; flags are parsed by then.
func (a *app) start() error {
	if err := a.ambient(); err != nil {
		return err
	}
	return a.chooseBoard()
}

// ambient reads everything but which board is meant.
func (a *app) ambient() error {
	if a.home == "" {
		a.home = os.Getenv("KANLOG_HOME")
	}
	if a.home == "" {
		base := os.Getenv("XDG_DATA_HOME")
		if base == "" {
			h, err := os.UserHomeDir()
			if err != nil {
				return usage("no home: give --home, or set KANLOG_HOME or HOME")
			}
			base = filepath.Join(h, ".local", "share")
		}
		a.home = filepath.Join(base, "kanlog")
	}
	var err error
	if a.home, err = filepath.Abs(a.home); err != nil {
		return err
	}
	if !utf8.ValidString(a.home) {
		// It is handed on in JSON, which has no such bytes.
		return usage("the home %q is no UTF-8: no supervisor would find it", a.home)
	}
	if s := os.Getenv("KANLOG_CLOCK_OFFSET"); s != "" {
		offset, err := time.ParseDuration(s)
		if err != nil {
			return usage("KANLOG_CLOCK_OFFSET: %q is no duration (+2h, -30m)", s)
		}
		a.skew = new(atomic.Int64)
		a.skew.Store(int64(offset))
	}
	if a.fail, err = parseFailpoints(os.Getenv("KANLOG_FAILPOINT")); err != nil {
		return err
	}
	a.now = a.clock()
	return nil
}

// clock reads the time; verbs use app.now, which was read once.
func (a *app) clock() eventlog.Time { return eventlog.TimeOf(time.Now().Add(a.offset())) }

// offset is what the clock is ahead of the machine's.
func (a *app) offset() time.Duration {
	if a.skew == nil {
		return 0
	}
	return time.Duration(a.skew.Load())
}

// settings reads the settings once. Inside a worker what is wrong with them is
// said and passed over: somebody's typo in a file, made while the worker ran,
// must not cost its answer. Nothing is started by such settings: a worker may not
// dispatch.
func (a *app) settings() (*settings, error) {
	if a.set == nil {
		s, err := loadSettings(a.home, a.boardDir)
		if err != nil && os.Getenv("KANLOG_TASK") == "" {
			return nil, err
		}
		if err != nil {
			a.warn("%v; going on with the defaults", err)
			s = defaults()
		}
		a.set = &s
	}
	return a.set, nil
}

func (a *app) options() (eventlog.Options, error) {
	s, err := a.settings()
	if err != nil {
		return eventlog.Options{}, err
	}
	return eventlog.Options{LockTimeout: s.lockTimeout, AllowNetwork: s.allowNetwork}, nil
}

// board returns the store of the chosen board.
func (a *app) board() (*projection.Store, error) {
	if a.store == nil {
		o, err := a.options()
		if err != nil {
			return nil, err
		}
		a.store = projection.Open(a.boardDir, o)
	}
	return a.store, nil
}

// reading is a board for who only reads: as it is, or as it was.
type reading interface {
	View(fn func(projection.View) error) error
	EachCard(fn func(projection.View, *projection.Task) error) error
	TaskCommits(task string, from uint64, fn func(eventlog.Commit) error) error
	RecentRuns(max int, fn func(*projection.Run)) (all bool, err error)
}

// reads returns what the reading verbs read.
func (a *app) reads() (reading, error) {
	if a.past != nil {
		return a.past, nil
	}
	return a.board()
}

// init makes the chosen board.
func (a *app) init() (created bool, err error) {
	o, err := a.options()
	if err != nil {
		return false, err
	}
	created, err = eventlog.Create(a.home, a.slug, randomID(), a.now, o)
	if err != nil {
		return false, err
	}
	return created, nil
}

func randomID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails: the program ends if the system cannot
	return id
}

// writer is who calls: a worker if KANLOG_TASK is set, else an operator. The
// run is --run or KANLOG_RUN; without a card of its own a process may still
// present one, and is then held to it.
func (a *app) writer() (projection.Writer, error) {
	w := projection.Writer{Card: os.Getenv("KANLOG_TASK"), Run: a.runFlag}
	if env := os.Getenv("KANLOG_RUN"); w.Run == 0 && env != "" {
		n, err := strconv.ParseUint(env, 10, 63)
		if err != nil || n == 0 {
			return w, usage("KANLOG_RUN: %q is no run", env)
		}
		w.Run = n
	}
	return w, nil
}

// actor names the caller for the log. A worker cannot name itself otherwise.
func (a *app) actor(w projection.Writer) string {
	if w.InWorker() {
		return fmt.Sprintf("worker:%s/%d", w.Card, w.Run)
	}
	return "operator:" + userName()
}

func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

func hostName() string {
	if h, err := os.Hostname(); err == nil && h != "" {
		return h
	}
	return "unknown"
}

// dispatcherActor names this process among all dispatchers there ever were.
func dispatcherActor() string {
	id := randomID()
	return fmt.Sprintf("dispatcher:%s/%d-%s", hostName(), os.Getpid(), hex.EncodeToString(id[:3]))
}

// update runs a verb's decider. What is printed comes after: success is only
// said once the commit is durable.
func (a *app) update(verb string, w projection.Writer, d projection.Decider) (projection.Result, error) {
	return a.updateThen(verb, w, d, nil)
}

// updateThen is update with a look at what it made, for the verbs that print
// it; see projection.Store.UpdateThen.
func (a *app) updateThen(verb string, w projection.Writer, d projection.Decider, then func(projection.View, projection.Result) error) (projection.Result, error) {
	s, err := a.board()
	if err != nil {
		return projection.Result{}, err
	}
	res, err := s.UpdateThen(a.actor(w), a.now, func(v projection.View, now eventlog.Time) (projection.Decision, error) {
		dec, err := d(v, now)
		a.fail.hit(verb + ".decided")
		return dec, err
	}, then)
	if err == nil {
		a.fail.hit(verb + ".committed")
	}
	return res, err
}

// view reads the chosen board.
func (a *app) view(fn func(projection.View) error) error {
	s, err := a.reads()
	if err != nil {
		return err
	}
	return s.View(fn)
}

// resolve turns an id or a unique prefix into the id.
func (a *app) resolve(prefix string) (id string, err error) {
	err = a.view(func(v projection.View) (err error) {
		id, err = v.Resolve(prefix)
		return err
	})
	if past := a.past; past != nil && errors.Is(err, projection.ErrNotFound) {
		a.past = nil
		if _, later := a.resolve(prefix); later == nil {
			err = notFound("no such card: %q (it was made after that moment)", prefix)
		}
		a.past = past
	}
	return id, err
}

// onCard is a decider for the card that an id or a unique prefix names. It finds
// the id in the transaction that decides: to open the store once more for that is
// a good part of a short call, and the board may have moved on in between. So what
// makes the decider runs inside the transaction and may not open another.
func onCard(id *string, w projection.Writer, decider func(id string, w projection.Writer) projection.Decider) projection.Decider {
	return func(v projection.View, now eventlog.Time) (projection.Decision, error) {
		full, err := v.Resolve(*id)
		if err != nil {
			return projection.Decision{}, err
		}
		*id = full
		return decider(full, w)(v, now)
	}
}

// ownCard is the id a worker's verb defaults to.
func (a *app) ownCard(verb string) (string, error) {
	if id := os.Getenv("KANLOG_TASK"); id != "" {
		return id, nil
	}
	return "", usage("%s: which card? Give its id (inside a worker it is KANLOG_TASK)", verb)
}
