package tick

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// bench is a dispatcher on a board in memory with processes that are made up.
// It writes down what happened in the order in which it happened: every commit
// as "kind card", every start as "start card", every signal as "signal card".
type bench struct {
	host  Host
	t     *testing.T
	store *projection.MemStore
	d     *Dispatcher
	now   eventlog.Time
	cards map[string]string // title -> id

	mu    sync.Mutex
	trace []string
	calls int // of Update and View
	reads int // rows read

	// before is called ahead of each update of the dispatcher and may make it
	// fail; after is called once its commit is durable and may spoil the answer.
	before func(now eventlog.Time) error
	after  func(events []eventlog.Event) error

	evidence map[uint64]Evidence // of workers; alive if there is none
	claimers map[uint64]Evidence // alive if there is none
	records  map[uint64]*projection.ExitRecord
	// recordErr is what reading any of them meets.
	recordErr error
	looks     int
	asked     func()                 // when the host is
	signal    func(run uint64) error // at the moment of a signal
	start     func(l Launch) error   // before the fork
	fork      func()                 // in it
	word      func(ctx context.Context, l Launch) FirstWord
}

func newBench(t *testing.T) *bench {
	b := &bench{
		t: t, store: &projection.MemStore{Mem: eventlog.NewMem([16]byte{7})}, now: noon,
		cards: map[string]string{}, evidence: map[uint64]Evidence{}, claimers: map[uint64]Evidence{},
		records: map[uint64]*projection.ExitRecord{},
	}
	b.word = b.registers
	b.d = &Dispatcher{
		Board: b, World: b, Policy: testPolicy(), Actor: "dispatcher:host/1",
		Clock: func() eventlog.Time { return b.now },
		Lock:  func() (func(), error) { b.note("lock"); return func() { b.note("unlock") }, nil },
		Hook:  func(string) {},
	}
	return b
}

func (b *bench) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trace = append(b.trace, fmt.Sprintf(format, args...))
}

func (b *bench) title(id string) string {
	for title, x := range b.cards {
		if x == id {
			return title
		}
	}
	return id
}

// counting counts the rows that a tick reads.
type counting struct {
	projection.Reader
	n *int
}

func (c counting) Get(table string, key []byte) []byte {
	*c.n++
	return c.Reader.Get(table, key)
}

func (c counting) Scan(table string, from []byte, fn func(k, v []byte) bool) {
	c.Reader.Scan(table, from, func(k, v []byte) bool {
		*c.n++
		return fn(k, v)
	})
}

// Update is Board's.
func (b *bench) Update(actor string, now eventlog.Time, d projection.Decider) (projection.Result, error) {
	if b.before != nil {
		if err := b.before(now); err != nil {
			return projection.Result{}, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	res, err := b.store.Update(actor, now, func(projection.View, eventlog.Time) (projection.Decision, error) {
		return d(projection.NewView(counting{b.store.Mem, &b.reads}), now)
	})
	for _, e := range res.Commit.Events {
		b.trace = append(b.trace, string(e.Kind())+" "+b.title(e.Task))
	}
	if err == nil && b.after != nil {
		err = b.after(res.Commit.Events)
	}
	return res, err
}

// View is Board's.
func (b *bench) View(fn func(projection.View) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	return fn(projection.NewView(counting{b.store.Mem, &b.reads}))
}

// must is somebody else's write: no part of the trace.
func (b *bench) must(d projection.Decider) projection.Result {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	res, err := b.store.Update("operator:ann", b.now, d)
	if err != nil {
		b.t.Errorf("history: %v", err)
	}
	return res
}

func (b *bench) create(title string, with ...func(*projection.Draft)) string {
	b.t.Helper()
	d := projection.Draft{Title: title, Assignee: "coder", WorkspaceKind: projection.Scratch}
	copy(d.ID[:], title)
	for _, f := range with {
		f(&d)
	}
	b.cards[title] = b.must(projection.Create(d, projection.Writer{})).Task
	return b.cards[title]
}

// claim opens a run as an earlier dispatcher did.
func (b *bench) claim(title string) uint64 {
	b.t.Helper()
	b.must(projection.Claim(projection.ClaimFor{
		Task: b.cards[title], Origin: projection.OriginDispatch, Assignee: b.task(title).Assignee,
		TTL: 15 * time.Minute, LaunchGrace: 30 * time.Second, OnCleanExit: projection.CleanComplete,
		MaxRuntime: b.d.Policy.Profiles[b.task(title).Assignee].MaxRuntime, Limits: b.d.Policy.Limits,
	}, projection.Writer{}))
	return b.task(title).CurrentRun
}

func registration(task string, run uint64) projection.Decider {
	return projection.Register(projection.Registration{
		Task: task, Run: run, Worker: eventlog.Process{PID: 100 + int(run), Fingerprint: "f"}, Token: fmt.Sprint(run),
	})
}

// running makes a card whose worker has registered.
func (b *bench) running(title string, with ...func(*projection.Draft)) uint64 {
	b.t.Helper()
	b.create(title, with...)
	run := b.claim(title)
	b.must(registration(b.cards[title], run))
	return run
}

func (b *bench) complete(title string, run uint64) {
	b.t.Helper()
	b.must(projection.Complete(b.cards[title], projection.Answer{}, projection.Writer{Card: b.cards[title], Run: run}))
}

func (b *bench) task(title string) *projection.Task {
	b.t.Helper()
	t, err := projection.NewView(b.store.Mem).MustTask(b.cards[title])
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

func (b *bench) run(n uint64) *projection.Run {
	b.t.Helper()
	r, err := projection.NewView(b.store.Mem).Run(n)
	if err != nil || r == nil {
		b.t.Fatalf("run %d: %v", n, err)
	}
	return r
}

// Look is World's, like Claimer, Record and Start.
func (b *bench) Look([]*projection.Run) Look { b.looks++; return look{b} }

// Host is what a test says.
func (b *bench) Host(bool) (Host, func(), error) {
	if b.asked != nil {
		b.asked()
	}
	return b.host, func() {}, nil
}

// Claimer is the dispatcher's own identity.
func (b *bench) Claimer() eventlog.Process { return eventlog.Process{PID: 1, Fingerprint: "self"} }

// Tidy has nothing to do: nobody here writes files.
func (b *bench) Tidy(string, uint64) {}

func (b *bench) Record(r *projection.Run) (*projection.ExitRecord, error) {
	if b.recordErr != nil {
		return nil, b.recordErr
	}
	if rec, ok := b.records[r.ID]; ok {
		if rec == nil {
			return nil, errors.New("the record is cut")
		}
		return rec, nil
	}
	return nil, nil
}

// Start forks a supervisor that says nothing until it is awaited.
func (b *bench) Start(l Launch, begin func(fork func() error) error) (Started, error) {
	if b.start != nil {
		if err := b.start(l); err != nil {
			return nil, err
		}
	}
	err := begin(func() error {
		b.note("start %s", l.Task.Title)
		if b.fork != nil {
			b.fork()
		}
		return nil
	})
	return started{b, l}, err
}

type started struct {
	b *bench
	l Launch
}

func (s started) Await(ctx context.Context) FirstWord { return s.b.word(ctx, s.l) }
func (s started) PID() int                            { return 100 + int(s.l.Run) }
func (s started) Workspace() string                   { return "/ws/" + s.l.Task.Title }

// registers is a supervisor's good first word.
func (b *bench) registers(_ context.Context, l Launch) FirstWord {
	b.must(registration(l.Task.ID, l.Run))
	return FirstWord{State: Registered}
}

// look is the processes as the test says they are.
type look struct{ *bench }

func (b look) Worker(r *projection.Run) Evidence  { return or(b.evidence, r.ID) }
func (b look) Claimer(r *projection.Run) Evidence { return or(b.claimers, r.ID) }

func (b look) Signal(r *projection.Run, _ Evidence, s Signal) error {
	b.note("%s %s", s, b.title(r.Task))
	if b.signal != nil {
		return b.signal(r.ID)
	}
	return nil
}

func or(m map[uint64]Evidence, run uint64) Evidence {
	if e, ok := m[run]; ok {
		return e
	}
	return Evidence{Answer: Alive}
}

func (b *bench) tick(o Options) (*Report, error) {
	b.t.Helper()
	b.trace = nil
	return b.d.Tick(context.Background(), o)
}

var all = Options{Max: -1}

// ticks is a tick that must succeed.
func (b *bench) ticks() *Report {
	b.t.Helper()
	rep, err := b.tick(all)
	if err != nil {
		b.t.Fatalf("tick: %v", err)
	}
	return rep
}

// story is what the dispatcher did, without its lock.
func (b *bench) story() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(slices.DeleteFunc(slices.Clone(b.trace), func(s string) bool {
		return s == "lock" || s == "unlock"
	}), ", ")
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// kindsAfter is what everybody appended after a commit.
func (b *bench) kindsAfter(commit uint64) string {
	b.t.Helper()
	var list []string
	err := b.store.Mem.Read(commit+1, func(c eventlog.Commit) error {
		for _, e := range c.Events {
			list = append(list, string(e.Kind())+" "+b.title(e.Task))
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(list, ", ")
}

func (b *bench) head() uint64 {
	h, err := b.store.Mem.Head()
	if err != nil {
		b.t.Fatal(err)
	}
	return h.Commit
}
