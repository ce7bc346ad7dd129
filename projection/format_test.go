package projection_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kanlog/eventlog"
	. "kanlog/projection"
)

// writeFormat makes the store of the current format anew. Use it once, when the
// format is raised; never for a format that was released.
var writeFormat = flag.Bool("write-format", false, "write testdata/formats/<current>")

var formats = filepath.Join("..", "testdata", "formats")

// A store of every format ever released opens, verifies, reads as it read then,
// and can be written to.
func TestEveryFormatOpens(t *testing.T) {
	if *writeFormat {
		writeFixture(t, filepath.Join(formats, fmt.Sprint(eventlog.Format)))
	}
	dirs, err := filepath.Glob(filepath.Join(formats, "*"))
	if err != nil || len(dirs) < eventlog.Format {
		t.Fatalf("%d stores under %s, want one for each of %d formats (%v)", len(dirs), formats, eventlog.Format, err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			board := filepath.Join(t.TempDir(), "board")
			if err := os.CopyFS(board, os.DirFS(filepath.Join(dir, "board"))); err != nil {
				t.Fatal(err)
			}
			s := Open(board, eventlog.Options{})
			if got, want := dumpEvents(t, s), readFile(t, filepath.Join(dir, "events.txt")); got != want {
				t.Errorf("the events read otherwise than when they were written:\n%s", got)
			}
			rep, err := s.Verify()
			if err != nil || rep.Problem != "" {
				t.Fatalf("verify: %v %s", err, rep.Problem)
			}
			if got, want := dumpCards(t, s), readFile(t, filepath.Join(dir, "cards.txt")); got != want {
				t.Errorf("the cards fold otherwise than when they were written:\n%s", got)
			}
			if _, err := s.Update("operator:test", 1, Create(Draft{Title: "written later", WorkspaceKind: Scratch}, Writer{})); err != nil {
				t.Fatalf("a write: %v", err)
			}
			if rep, err := s.Verify(); err != nil || rep.Problem != "" {
				t.Fatalf("verify after a write: %v %s", err, rep.Problem)
			}
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func dumpEvents(t *testing.T, s *Store) string {
	t.Helper()
	var buf bytes.Buffer
	err := s.Commits(1, func(c eventlog.Commit) error {
		for i, e := range c.Events {
			data, err := json.Marshal(e.Data)
			if err != nil {
				return err
			}
			fmt.Fprintf(&buf, "%d %d %s %s %s %q %d %s %x\n", c.Seq+uint64(i), c.Number, c.At, c.Actor, e.Kind(), e.Task, e.Run, data, c.Hash)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func dumpCards(t *testing.T, s *Store) string {
	t.Helper()
	var buf bytes.Buffer
	err := s.View(func(v View) error {
		cards, err := v.TasksAfter("", 1<<30)
		if err != nil {
			return err
		}
		for _, c := range cards {
			runs, err := v.Runs(c.ID)
			if err != nil {
				return err
			}
			fmt.Fprintf(&buf, "%s %q %q %s", c.ID, c.Title, v.Body(c.ID), c.Status)
			for _, r := range runs {
				fmt.Fprintf(&buf, " %d:%s", r.ID, r.Outcome)
			}
			fmt.Fprintln(&buf)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// writeFixture makes a board whose log holds every kind of event.
func writeFixture(t *testing.T, dir string) {
	home := t.TempDir()
	at := eventlog.Time(1_764_000_000_000_000)
	if _, err := eventlog.Create(home, "board", [16]byte{15: 1}, at, eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	board := eventlog.BoardDir(home, "board")
	s := Open(board, eventlog.Options{})
	h := fixture{t: t, s: s, now: at, l: DefaultLimits()}
	h.write()
	seen := map[eventlog.Kind]bool{}
	if err := s.Commits(1, func(c eventlog.Commit) error {
		for _, e := range c.Events {
			seen[e.Kind()] = true
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, k := range eventlog.Kinds() {
		if !seen[k] {
			t.Errorf("the fixture holds no %s", k)
		}
	}
	if t.Failed() {
		return
	}
	for _, f := range []string{"board.db", "runs/board-id"} {
		to := filepath.Join(dir, "board", f)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(readFile(t, filepath.Join(board, f))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"events.txt": dumpEvents(t, s), "cards.txt": dumpCards(t, s)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type fixture struct {
	t   *testing.T
	s   *Store
	now eventlog.Time
	l   Limits
	n   byte
}

func (h *fixture) do(actor string, d Decider) Result {
	h.t.Helper()
	h.now = h.now.Add(time.Second)
	res, err := h.s.Update(actor, h.now, d)
	if err != nil && !errors.Is(err, ErrFenced) {
		h.t.Fatal(err)
	}
	return res
}

func (h *fixture) card(d Draft) string {
	h.n++
	d.ID, d.WorkspaceKind = [16]byte{h.n}, Scratch
	return h.do("operator:alice", Create(d, Writer{})).Task
}

// run claims a card, and registers a supervisor unless the claim is manual.
func (h *fixture) run(card, origin string) uint64 {
	c := ClaimFor{
		Task: card, Origin: origin, Assignee: "coder", TTL: time.Minute, LaunchGrace: time.Second, OnCleanExit: CleanReview,
		Claimer: eventlog.Process{PID: 7, Fingerprint: "boot:1|70", Machine: "m", PIDNS: "4026531836"}, Limits: h.l,
	}
	run := h.do("dispatcher:host/7-abc", Claim(c, Writer{})).Commit.Seq
	if origin == OriginDispatch {
		h.do(fmt.Sprintf("supervisor:%s/%d", card, run), Register(Registration{
			Task: card, Run: run, Worker: eventlog.Process{PID: 8, Fingerprint: "boot:1|80", Machine: "m", PIDNS: "4026531836"},
			OutputInode: "1:2", Token: fmt.Sprintf("uuid/%d", run), Workspace: "/w",
		}))
	}
	return run
}

func (h *fixture) end(run uint64, rec *ExitRecord) {
	h.do(fmt.Sprintf("supervisor:x/%d", run), BookEnd(Ending{Run: run, Record: rec, Evidence: "record"}, h.l))
}

func (h *fixture) write() {
	code := func(n int64) *ExitRecord { return &ExitRecord{Cause: CauseExited, ExitCode: &n} }
	card := func(title string) string { return h.card(Draft{Title: title, Assignee: "coder", Body: "b"}) }
	worker := func(card string, run uint64) (string, Writer) {
		return fmt.Sprintf("worker:%s/%d", card, run), Writer{Card: card, Run: run}
	}

	// completed with everything, then exited; a child is promoted; a late
	// writer is fenced.
	a := h.card(Draft{
		Title: "every field", Body: "two\nlines", Assignee: "coder", Priority: -3, Tenant: "acme", Tags: []string{"x", "y"},
		Key: "once", MaxRuntime: time.Hour, MaxRetries: 4,
	})
	h.card(Draft{Title: "child", Assignee: "coder", Parents: []string{a}, NotBefore: h.now.Add(time.Hour)})
	run := h.run(a, OriginDispatch)
	actor, w := worker(a, run)
	h.do(actor, Beat(a, "half way", h.l, w))
	h.do(actor, AddComment(a, actor, "a note", w))
	h.now = h.now.Add(2 * time.Minute)
	h.do("dispatcher:host/9-def", Extend(run))
	h.do(actor, Complete(a, Answer{Summary: "s", Result: "r", Metadata: []byte(`{"n": 1.0}`)}, w))
	h.end(run, code(0))
	h.do(actor, Complete(a, Answer{}, w))

	// reaped after its answer
	b := card("reaped")
	run = h.run(b, OriginDispatch)
	actor, w = worker(b, run)
	h.do(actor, Block(b, "why?", Capability, DefaultLimits(), w))
	h.do("dispatcher:host/9-def", RequestEnd(EndRequest{Run: run, Reason: EndTerminalGrace, Detail: "alive 3m", Evidence: "alive"}))
	h.do("dispatcher:host/9-def", DeferEnd(run, "unreadable", "held", 0))
	h.end(run, &ExitRecord{Cause: CauseTerminated, Signal: "SIGKILL"})
	h.do("operator:alice", Unblock(b, Writer{}))
	h.do("operator:alice", Assign(b, "", Writer{}))

	// each other end
	for _, rec := range []*ExitRecord{code(1), code(75), nil, {Cause: CauseStartFailed, Error: "not found"}, code(0)} {
		c := card("ends")
		h.end(h.run(c, OriginDispatch), rec)
	}
	c := card("crashes twice")
	h.end(h.run(c, OriginDispatch), code(3))
	h.now = h.now.Add(time.Hour)
	h.end(h.run(c, OriginDispatch), code(4))

	d := card("violates")
	cl := ClaimFor{Task: d, Origin: OriginDispatch, Assignee: "coder", TTL: time.Minute, LaunchGrace: time.Second, OnCleanExit: CleanViolation, Limits: h.l}
	run = h.do("dispatcher:host/7-abc", Claim(cl, Writer{})).Commit.Seq
	h.do("supervisor:x/1", Register(Registration{Task: d, Run: run, Token: "t", Worker: eventlog.Process{PID: 9, Fingerprint: "unverified"}}))
	h.end(run, code(0))

	for _, reason := range []string{EndMaxRuntime, EndHeartbeatStale, EndReclaim} {
		c := card(reason)
		run := h.run(c, OriginDispatch)
		h.do("dispatcher:host/9-def", RequestEnd(EndRequest{Run: run, Reason: reason, Detail: "detail", Evidence: "alive"}))
		h.end(run, nil)
	}
	e := card("fails")
	run = h.run(e, OriginDispatch)
	actor, w = worker(e, run)
	h.do(actor, Fail(e, "no", h.l, w))
	f := card("defers")
	run = h.run(f, OriginDispatch)
	actor, w = worker(f, run)
	h.do(actor, Defer(f, time.Hour, "later", h.l, w))
	g := card("claimed by hand")
	run = h.run(g, OriginManual)
	h.now = h.now.Add(time.Hour)
	h.do("dispatcher:host/9-def", ExpireManual(run))

	// cancelled and archived while they run; a limit that was measured
	for _, stop := range []func(string, uint64, string, string, Writer) Decider{Cancel, Archive} {
		c := card("stopped")
		run := h.run(c, OriginDispatch)
		h.do("operator:alice", stop(c, run, "not needed", "alive", Writer{}))
		h.do("dispatcher:host/9-def", DeferEnd(run, "unreadable", "held", time.Hour))
		h.end(run, nil)
	}
	h.do("operator:alice", Archive(a, 0, "", "", Writer{}))
	h.flow(card, worker)
	m := card("measured")
	run = h.run(m, OriginDispatch)
	h.do("dispatcher:host/9-def", RequestEnd(EndRequest{Run: run, Reason: EndMaxRuntime, Detail: "d", Evidence: "alive", Limit: time.Minute, Measured: time.Hour}))
	h.end(run, nil)
}

// flow is what people and reviewers do with cards.
func (h *fixture) flow(card func(string) string, worker func(string, uint64) (string, Writer)) {
	const ann = "operator:alice"
	base, child, sub := card("base"), card("child"), card("sub-task")
	h.do(ann, Link(base, child, Writer{}))
	h.do(ann, Unlink(base, child, Writer{}))
	h.do(ann, Link(base, child, Writer{}))
	h.do(ann, Complete(base, Answer{Result: "r"}, Writer{}))

	// A worker waits for a card of its own making, then it is done.
	run := h.run(child, OriginDispatch)
	actor, w := worker(child, run)
	h.do(actor, Link(sub, child, w))
	h.do(actor, Block(child, "resume me", Dependency, h.l, w))
	h.end(run, nil)
	h.do(ann, Complete(sub, Answer{}, Writer{}))
	h.do(ann, Complete(child, Answer{}, Writer{}))

	// What it was built on is taken back: done, and running with and without a worker.
	runs, claimed := card("runs"), card("claimed")
	h.do(ann, Link(base, runs, Writer{}))
	h.do(ann, Link(base, claimed, Writer{}))
	run = h.run(runs, OriginDispatch)
	h.run(claimed, OriginManual)
	h.do(ann, Reopen(base, "wrong", Writer{}))
	h.end(run, nil)

	// Two rounds of a review.
	r := card("reviewed")
	run = h.run(r, OriginDispatch)
	actor, w = worker(r, run)
	h.do(actor, RequestReview(r, Answer{Summary: "s", Result: "r", Metadata: []byte(`{"n": 1.0}`)}, "rev", nil, w))
	h.end(run, nil)
	run = h.do("dispatcher:host/7-abc", Claim(ClaimFor{Task: r, Origin: OriginDispatch, Assignee: "rev", TTL: time.Minute, LaunchGrace: time.Second}, Writer{})).Commit.Seq
	actor, w = worker(r, run)
	h.do(actor, RequestChanges(r, "no tests", run-4, h.l, w))
	h.do(ann, RequestReview(r, Answer{}, "", nil, Writer{}))
	h.do(ann, Approve(r, Answer{Summary: "fine"}, 0, Writer{}))

	// A worker that blocks for the same reason again and again.
	b := card("loops")
	l := h.l
	l.BlockLimit = 2
	for i := range 2 {
		h.do(ann, Block(b, "by hand", "", l, Writer{}))
		h.do(ann, Unblock(b, Writer{}))
		run = h.run(b, OriginDispatch)
		actor, w = worker(b, run)
		h.do(actor, Block(b, "which port?", NeedsInput, l, w))
		h.end(run, nil)
		h.do(ann, []Decider{Unblock(b, Writer{}), Promote(b, Writer{})}[i])
	}

	h.do(ann, PauseBoard("for a look", Writer{}))
	h.do(ann, PauseBoard("for a longer look", Writer{}))
	h.do(ann, ResumeBoard(Writer{}))

	title, body, n, second, due := "new title", "", int64(3), time.Second, h.now.Add(time.Hour)
	e := card("edited")
	h.do(ann, Edit(e, Changes{Title: &title, Body: &body, Priority: &n, Tenant: &title, Tags: &[]string{"x"}, MaxRuntime: &second, MaxRetries: &n, NotBefore: &due, Reviewer: &title}, h.l, Writer{}))
	h.do(ann, Edit(e, Changes{Tags: &[]string{}}, h.l, Writer{}))
	h.do(ann, Edit(sub, Changes{Result: &title}, h.l, Writer{}))
	h.do(ann, Defer(e, 2*time.Hour, "later", h.l, Writer{}))
}
