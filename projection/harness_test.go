package projection

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

// board is a board in memory whose cards go by their titles, with a clock that
// only the test moves. When the test ends its log is audited and its tables are
// compared with a fresh fold, whatever the test was about.
type board struct {
	t      reporter
	s      *MemStore
	now    eventlog.Time
	limits Limits
	cards  map[string]string
	// forged: the test wrote events that no decider would; no audit.
	forged bool
	// steps are the updates that made the history, to make it again elsewhere.
	steps []step
}

// reporter is what a board needs of a test: one of Go's, or one of rapid's.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
	Cleanup(func())
}

type step struct {
	actor string
	now   eventlog.Time
	do    Decider
}

const operator = "operator:ann"

func newBoard(t reporter) *board {
	b := &board{
		t: t, s: &MemStore{eventlog.NewMem([16]byte{7})}, now: 1_700_000_000_000_000,
		limits: DefaultLimits(), cards: map[string]string{},
	}
	t.Cleanup(func() {
		if !b.forged {
			b.audit()
		}
	})
	return b
}

// audit checks the whole log and the tables as Verify does.
func (b *board) audit() {
	b.t.Helper()
	a := auditor{fresh: eventlog.NewMem(b.s.Mem.UUID())}
	if err := b.s.Mem.Read(1, a.commit); err != nil {
		b.t.Errorf("audit: %v", err)
	}
	if diff := compare(a.fresh, b.s.Mem); diff != "" {
		b.t.Errorf("tables: %s", diff)
	}
}

func (b *board) wait(d time.Duration) { b.now = b.now.Add(d) }

// must runs a decider that has to succeed.
func (b *board) must(d Decider) Result {
	b.t.Helper()
	res, err := b.try(operator, d)
	if err != nil {
		b.t.Fatalf("history: %v", err)
	}
	return res
}

// try runs a decider that may be refused.
func (b *board) try(actor string, d Decider) (Result, error) {
	b.steps = append(b.steps, step{actor, b.now, d})
	return b.s.Update(actor, b.now, d)
}

// forge appends events as they are.
func (b *board) forge(events ...eventlog.Event) {
	b.t.Helper()
	b.forged = true
	if _, err := commit(b.s.Mem, operator, b.now, events); err != nil {
		b.t.Fatalf("forge: %v", err)
	}
}

func (b *board) id(title string) string {
	b.t.Helper()
	if b.cards[title] == "" {
		b.t.Fatalf("no card %q in this history", title)
	}
	return b.cards[title]
}

func draft(title string, with ...func(*Draft)) Draft {
	d := Draft{Title: title, Assignee: "coder", WorkspaceKind: Scratch}
	copy(d.ID[:], title)
	for _, f := range with {
		f(&d)
	}
	return d
}

func (b *board) create(title string, with ...func(*Draft)) string {
	b.t.Helper()
	id := b.must(Create(draft(title, with...), Writer{})).Task
	b.cards[title] = id
	return id
}

func (b *board) claimFor(title string) ClaimFor {
	return ClaimFor{
		Task: b.id(title), Origin: OriginDispatch, Assignee: b.task(title).Assignee,
		Claimer: eventlog.Process{PID: 10, Fingerprint: "boot:1|10"},
		TTL:     15 * time.Minute, LaunchGrace: 30 * time.Second, Limits: b.limits,
	}
}

// claim opens a run as a dispatcher does and returns it.
func (b *board) claim(title string, with ...func(*ClaimFor)) uint64 {
	b.t.Helper()
	c := b.claimFor(title)
	for _, f := range with {
		f(&c)
	}
	b.must(Claim(c, Writer{}))
	return b.task(title).CurrentRun
}

func (b *board) manual(title, holder string, ttl time.Duration) uint64 {
	b.t.Helper()
	return b.claim(title, func(c *ClaimFor) { c.Origin, c.Holder, c.TTL = OriginManual, holder, ttl })
}

func (b *board) registration(title string, run uint64) Registration {
	return Registration{
		Task: b.id(title), Run: run, Token: fmt.Sprint("board/", run),
		Worker: eventlog.Process{PID: 1000 + int(run), Fingerprint: fmt.Sprint("boot:1|", run), Machine: "m", PIDNS: "1"},
	}
}

// start opens a run with a registered worker and returns it.
func (b *board) start(title string, with ...func(*ClaimFor)) uint64 {
	b.t.Helper()
	run := b.claim(title, with...)
	b.must(Register(b.registration(title, run)))
	return run
}

// worker is the process of a card's run.
func (b *board) worker(title string, run uint64) Writer { return Writer{Card: b.id(title), Run: run} }

func exited(code int64) *ExitRecord { return &ExitRecord{Cause: CauseExited, ExitCode: &code} }

// ends books that a run's command exited.
func (b *board) ends(run uint64, code int64) {
	b.t.Helper()
	b.must(BookEnd(Ending{Run: run, Record: exited(code), Evidence: "record"}, b.limits))
}

// attempt starts a card whenever that is possible and lets it exit.
func (b *board) attempt(title string, code int64) uint64 {
	b.t.Helper()
	b.wait(time.Hour)
	run := b.start(title)
	b.ends(run, code)
	return run
}

func (b *board) view() View { return View{b.s.Mem} }

func (b *board) owner(title string) uint64 { return b.task(title).Owner() }

func (b *board) task(title string) *Task {
	b.t.Helper()
	t, err := b.view().MustTask(b.id(title))
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

func (b *board) run(n uint64) *Run {
	b.t.Helper()
	r, err := b.view().runOf(n)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *board) head() eventlog.Head {
	h, err := b.s.Mem.Head()
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

// since returns the events appended after a commit.
func (b *board) since(n uint64) []eventlog.Event {
	b.t.Helper()
	var events []eventlog.Event
	err := b.s.Mem.Read(n+1, func(c eventlog.Commit) error {
		events = append(events, c.Events...)
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return events
}

// rows is every table, byte for byte.
func rows(s tableSet) string {
	var all bytes.Buffer
	for _, table := range s.Tables() {
		for _, p := range dump(s, table) {
			fmt.Fprintf(&all, "%s %x %x\n", table, p.k, p.v)
		}
	}
	return all.String()
}

// brief renders events on one line: kind, where the card goes, and what marks
// the ends of runs and budgets.
func brief(events []eventlog.Event) string {
	var list []string
	for _, e := range events {
		s := string(e.Kind())
		to := func(status string) { s += ">" + status }
		switch d := e.Data.(type) {
		case *eventlog.Reclaimed:
			to(d.To)
			for _, mark := range []struct {
				set  bool
				name string
			}{{d.Interrupted, "interrupted"}, {d.Forced, "forced"}, {d.Unproven, "unproven"}} {
				if mark.set {
					s += " " + mark.name
				}
			}
		case *eventlog.Crashed:
			to(d.To)
			if d.Final {
				s += " final"
			}
		case *eventlog.ProtocolViolation:
			to(d.To)
		case *eventlog.RateLimited:
			to(d.To)
		case *eventlog.TimedOut:
			to(d.To)
		case *eventlog.Stale:
			to(d.To)
		case *eventlog.SpawnFailed:
			to(d.To)
			if d.Infrastructure {
				s += " infrastructure"
			}
		case *eventlog.Failed:
			to(d.To)
		case *eventlog.Deferred:
			to(d.To)
		case *eventlog.Linked:
			if d.To != "" {
				to(d.To)
			}
		case *eventlog.Unlinked:
			if d.To != "" {
				to(d.To)
			}
		case *eventlog.Edited:
			if d.To != "" {
				to(d.To)
			}
		case *eventlog.Blocked:
			if d.To != "" {
				to(d.To)
			}
		case *eventlog.Reopened:
			to(d.To)
		case *eventlog.Retracted:
			s += " " + d.From
			to(d.To)
		case *eventlog.ChangesRequested:
			to(d.To)
		case *eventlog.Unblocked:
			to(d.To)
		case *eventlog.Promoted:
			to(d.To)
			s += " " + d.Reason
		case *eventlog.Created:
			to(d.Status)
		case *eventlog.TerminationRequested:
			to(d.To)
			s += " " + d.Reason
		case *eventlog.Completed:
			s += " by " + d.By
		case *eventlog.GaveUp:
			s += fmt.Sprintf(" %s %d/%d", d.Budget, d.Failures, d.Limit)
			if d.Sticky {
				s += " sticky"
			}
		}
		list = append(list, s)
	}
	return strings.Join(list, "; ")
}

// decision is one row of a decider's table: a history, a command, and what it
// decides.
type decision struct {
	name  string
	given func(b *board)
	when  func(b *board) Decider
	// want is what was appended, as brief says it; a refusal may leave fenced.
	want string
	// kind and says are the refusal's kind and a piece of its words; without a
	// kind, says is a piece of the note.
	kind error
	says string
	// then looks at what has become of it.
	then func(t *testing.T, b *board, events []eventlog.Event)
}

func decide(t *testing.T, rowsOf []decision) {
	t.Helper()
	for _, c := range rowsOf {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

func (c decision) check(t *testing.T) {
	b := newBoard(t)
	c.given(b)
	command := c.when(b)
	head, before := b.head(), rows(b.s.Mem)
	res, err := b.s.Update(operator, b.now, command)
	events := b.since(head.Commit)
	if got := brief(events); got != c.want {
		t.Errorf("decided %q, want %q", got, c.want)
	}
	if c.kind != nil {
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("refused with %v, want %v with %q", err, c.kind, c.says)
		}
		if c.want == "" && rows(b.s.Mem) != before {
			t.Error("a refusal changed the tables")
		}
	} else {
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		if c.says == "" && res.Note != "" || !strings.Contains(res.Note, c.says) {
			t.Errorf("noted %q, want %q", res.Note, c.says)
		}
	}
	if c.then != nil {
		c.then(t, b, events)
	}
}

// one returns the only event of a payload type.
func one[P eventlog.Payload](t *testing.T, events []eventlog.Event) P {
	t.Helper()
	var found []P
	for _, e := range events {
		if p, ok := e.Data.(P); ok {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d events of type %T in %q", len(found), *new(P), brief(events))
	}
	return found[0]
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
