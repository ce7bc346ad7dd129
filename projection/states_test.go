package projection_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// stateHistories says for every arrow of docs/states.md how to walk it: steps
// of stateSteps, the last of which moves the card or the run so. A new arrow in
// the drawing needs its line here, and the other way round.
var stateHistories = map[string]string{
	"card [*] --> triage: created":                     "create-triage",
	"card [*] --> todo: created":                       "create-child",
	"card [*] --> scheduled: created":                  "create-later",
	"card [*] --> ready: created":                      "create",
	"card [*] --> blocked: created":                    "create-blocked",
	"card triage --> ready: promoted":                  "create-triage promote",
	"card triage --> blocked: blocked":                 "create-triage block",
	"card triage --> review: promoted":                 "create request-review claim block-limit-1 promote",
	"card triage --> done: completed":                  "create-triage complete",
	"card todo --> scheduled: promoted":                "create-child-later complete-parent",
	"card todo --> scheduled: unlinked":                "create-child-later unlink",
	"card todo --> ready: promoted":                    "create-child complete-parent",
	"card todo --> ready: unlinked":                    "create-child unlink",
	"card todo --> blocked: blocked":                   "create-child block",
	"card todo --> blocked: gave_up":                   "create claim spawn link exit-78",
	"card todo --> review: promoted":                   "create request-review put-off link wait-a-day complete-parent",
	"card todo --> review: unlinked":                   "create request-review claim link block-dependency unlink",
	"card scheduled --> todo: linked":                  "create-later link",
	"card scheduled --> todo: retracted":               "create-child-later complete-parent reopen-parent",
	"card scheduled --> ready: promoted":               "create-later wait-a-day due",
	"card scheduled --> ready: edited":                 "create-later edit-now",
	"card scheduled --> blocked: blocked":              "create-later block",
	"card scheduled --> blocked: gave_up":              "create claim edit-later spawn exit-78",
	"card scheduled --> review: edited":                "create request-review put-off edit-now",
	"card scheduled --> review: promoted":              "create request-review put-off promote",
	"card scheduled --> done: completed":               "create-later complete",
	"card ready --> todo: linked":                      "create link",
	"card ready --> todo: retracted":                   "create-child complete-parent reopen-parent",
	"card ready --> scheduled: deferred":               "create put-off",
	"card ready --> scheduled: edited":                 "create edit-later",
	"card ready --> running: claimed":                  "create claim",
	"card ready --> blocked: blocked":                  "create block",
	"card ready --> blocked: gave_up":                  "create claim spawn exit-78",
	"card ready --> review: review_requested":          "create request-review",
	"card ready --> done: completed":                   "create complete",
	"card running --> todo: blocked":                   "create claim spawn link block-dependency",
	"card running --> todo: changes_requested":         "create request-review claim link request-changes",
	"card running --> todo: crashed":                   "create claim spawn link exit-1",
	"card running --> todo: deferred":                  "create claim spawn link defer",
	"card running --> todo: failed":                    "create claim-manual link fail",
	"card running --> todo: protocol_violation":        "create claim spawn link exit-0",
	"card running --> todo: rate_limited":              "create claim spawn link exit-75",
	"card running --> todo: reclaimed":                 "create claim-manual link reclaim",
	"card running --> todo: spawn_failed":              "create claim link not-started",
	"card running --> todo: stale":                     "create claim spawn link end-heartbeat_stale gone",
	"card running --> todo: timed_out":                 "create claim spawn link end-max_runtime gone",
	"card running --> scheduled: changes_requested":    "create request-review claim edit-later request-changes",
	"card running --> scheduled: crashed":              "create claim edit-later spawn exit-78",
	"card running --> scheduled: deferred":             "create claim-manual edit-later defer",
	"card running --> scheduled: failed":               "create claim-manual edit-later fail",
	"card running --> scheduled: protocol_violation":   "create claim spawn edit-later exit-0",
	"card running --> scheduled: rate_limited":         "create claim spawn edit-later exit-75",
	"card running --> scheduled: reclaimed":            "create claim-manual edit-later reclaim",
	"card running --> scheduled: spawn_failed":         "create claim edit-later not-started",
	"card running --> scheduled: stale":                "create claim spawn edit-later end-heartbeat_stale gone",
	"card running --> scheduled: timed_out":            "create claim spawn edit-later end-max_runtime gone",
	"card running --> ready: crashed":                  "create claim spawn exit-1",
	"card running --> ready: protocol_violation":       "create claim spawn exit-0",
	"card running --> ready: rate_limited":             "create claim spawn exit-75",
	"card running --> ready: timed_out":                "create claim spawn end-max_runtime gone",
	"card running --> ready: stale":                    "create claim spawn end-heartbeat_stale gone",
	"card running --> ready: spawn_failed":             "create claim not-started",
	"card running --> ready: failed":                   "create claim spawn fail",
	"card running --> ready: deferred":                 "create claim spawn defer",
	"card running --> ready: reclaimed":                "create work told-to-stop",
	"card running --> ready: changes_requested":        "create request-review claim request-changes",
	"card running --> blocked: blocked":                "create claim spawn block",
	"card running --> blocked: reclaimed":              "create claim-manual wait-a-day expire",
	"card running --> review: review_requested":        "create claim-review spawn exit-0",
	"card running --> review: crashed":                 "create request-review claim spawn exit-1",
	"card running --> review: deferred":                "create request-review claim-manual defer",
	"card running --> review: failed":                  "create request-review claim fail",
	"card running --> review: protocol_violation":      "create request-review claim spawn exit-0",
	"card running --> review: rate_limited":            "create request-review claim spawn exit-75",
	"card running --> review: reclaimed":               "create request-review claim reclaim",
	"card running --> review: spawn_failed":            "create request-review claim not-started",
	"card running --> review: stale":                   "create request-review claim spawn end-heartbeat_stale gone",
	"card running --> review: timed_out":               "create request-review claim spawn end-max_runtime gone",
	"card running --> done: completed":                 "create claim spawn complete",
	"card blocked --> triage: block_loop_detected":     "create claim-manual block-limit-1",
	"card blocked --> todo: unblocked":                 "create-child block unblock",
	"card blocked --> todo: blocked":                   "create claim spawn exit-1 wait-a-day claim spawn link exit-1 block-dependency",
	"card blocked --> todo: promoted":                  "create claim spawn exit-1 wait-a-day claim spawn link exit-1 edit-retries",
	"card blocked --> scheduled: unblocked":            "create-later block unblock",
	"card blocked --> scheduled: promoted":             "create claim spawn exit-1 wait-a-day claim spawn edit-later exit-1 edit-retries",
	"card blocked --> ready: unblocked":                "create block unblock",
	"card blocked --> ready: promoted":                 "create claim spawn exit-1 wait-a-day claim spawn exit-1 raise-limit",
	"card blocked --> review: promoted":                "create request-review block promote",
	"card blocked --> review: unblocked":               "create request-review block unblock",
	"card blocked --> done: completed":                 "create-blocked complete",
	"card review --> todo: retracted":                  "create-child complete-parent request-review reopen-parent",
	"card review --> scheduled: changes_requested":     "create claim-manual edit-later request-review request-changes",
	"card review --> scheduled: deferred":              "create request-review put-off",
	"card review --> scheduled: edited":                "create request-review edit-later",
	"card review --> scheduled: reopened":              "create claim-manual edit-later request-review reopen",
	"card review --> ready: changes_requested":         "create request-review request-changes",
	"card review --> ready: reopened":                  "create request-review reopen",
	"card review --> running: claimed":                 "create request-review claim-manual",
	"card review --> blocked: blocked":                 "create claim-review spawn exit-0 block",
	"card review --> blocked: gave_up":                 "create request-review claim spawn exit-78",
	"card review --> done: completed":                  "create claim-review spawn exit-0 complete",
	"card done --> todo: retracted":                    "create-child complete-parent complete reopen-parent",
	"card done --> scheduled: reopened":                "create-later complete reopen",
	"card done --> ready: reopened":                    "create complete reopen",
	"card triage --> archived: archived":               "create-triage archive",
	"card todo --> archived: archived":                 "create-child archive",
	"card scheduled --> archived: archived":            "create-later archive",
	"card ready --> archived: archived":                "create claim spawn archive gone",
	"card blocked --> archived: archived":              "create-blocked archive",
	"card review --> archived: archived":               "create claim-review spawn exit-0 archive",
	"card done --> archived: archived":                 "create complete archive",
	"run [*] --> claimed: claimed":                     "create claim",
	"run [*] --> over: completed":                      "create complete",
	"run [*] --> over: changes_requested":              "create request-review request-changes",
	"run [*] --> over: review_requested":               "create request-review",
	"run claimed --> supervised: spawned":              "create claim spawn",
	"run claimed --> over: completed":                  "create claim-manual complete",
	"run claimed --> over: failed":                     "create claim-manual fail",
	"run claimed --> over: deferred":                   "create claim-manual defer",
	"run claimed --> over: blocked":                    "create claim-manual block",
	"run claimed --> over: reclaimed":                  "create claim cut-off",
	"run claimed --> over: spawn_failed":               "create claim not-started",
	"run claimed --> over: changes_requested":          "create request-review claim request-changes",
	"run claimed --> over: review_requested":           "create claim request-review",
	"run supervised --> ending: termination_requested": "create claim spawn reclaim",
	"run supervised --> retained: completed":           "create claim spawn complete",
	"run supervised --> retained: failed":              "create claim spawn fail",
	"run supervised --> retained: deferred":            "create claim spawn defer",
	"run supervised --> retained: blocked":             "create claim spawn block",
	"run supervised --> retained: changes_requested":   "create request-review claim spawn request-changes",
	"run supervised --> retained: review_requested":    "create claim spawn request-review",
	"run supervised --> over: completed":               "create claim-complete spawn exit-0",
	"run supervised --> over: review_requested":        "create claim-review spawn exit-0",
	"run supervised --> over: crashed":                 "create claim spawn gone",
	"run supervised --> over: protocol_violation":      "create claim spawn exit-0",
	"run supervised --> over: rate_limited":            "create claim spawn exit-75",
	"run supervised --> over: spawn_failed":            "create claim spawn start-failed",
	"run supervised --> over: reclaimed":               "create claim spawn reclaim-force",
	"run ending --> reaping: completed":                "create claim spawn reclaim complete",
	"run ending --> reaping: failed":                   "create claim spawn reclaim fail",
	"run ending --> reaping: deferred":                 "create claim spawn reclaim defer",
	"run ending --> reaping: blocked":                  "create claim spawn reclaim block",
	"run ending --> reaping: changes_requested":        "create request-review claim spawn reclaim request-changes",
	"run ending --> reaping: review_requested":         "create claim spawn reclaim request-review",
	"run ending --> over: reclaimed":                   "create claim spawn reclaim gone",
	"run ending --> over: timed_out":                   "create claim spawn end-max_runtime gone",
	"run ending --> over: stale":                       "create claim spawn end-heartbeat_stale gone",
	"run ending --> over: completed":                   "create claim-complete spawn end-orphaned exit-0",
	"run ending --> over: review_requested":            "create claim-review spawn end-orphaned exit-0",
	"run ending --> over: crashed":                     "create claim spawn end-orphaned gone",
	"run ending --> over: protocol_violation":          "create claim spawn end-orphaned exit-0",
	"run ending --> over: rate_limited":                "create claim spawn end-orphaned exit-75",
	"run ending --> over: spawn_failed":                "create claim spawn end-orphaned start-failed",
	"run retained --> reaping: termination_requested":  "create claim spawn complete end-terminal_grace",
	"run retained --> over: exited":                    "create claim spawn complete gone",
	"run reaping --> over: terminal_worker_reaped":     "create claim spawn complete end-terminal_grace gone",
	"run reaping --> over: exited":                     "create claim spawn complete end-terminal_grace reclaim-force",
}

// TestEveryArrowOfTheStateDiagram walks each arrow that docs/states.md draws.
func TestEveryArrowOfTheStateDiagram(t *testing.T) {
	drawn := drawnArrows(t)
	for _, arrow := range drawn {
		if stateHistories[arrow] == "" {
			t.Errorf("docs/states.md draws %q; stateHistories does not say how to walk it", arrow)
		}
	}
	for arrow, history := range stateHistories {
		t.Run(arrow, func(t *testing.T) {
			if !slices.Contains(drawn, arrow) {
				t.Fatalf("docs/states.md does not draw %q", arrow)
			}
			s := newStateStory(t)
			for _, step := range strings.Fields(history) {
				s.last = nil
				if err := stateSteps[step](s); err != nil {
					t.Fatalf("%s: %s: %v", history, step, err)
				}
			}
			if !slices.Contains(s.last, arrow) {
				t.Errorf("the last step of %q walked %q", history, s.last)
			}
			s.allDrawn(t, drawn)
		})
	}
}

// TestNoArrowOutsideTheStateDiagram lets random histories look for an arrow
// that is not drawn. A failure prints the history that walked it.
func TestNoArrowOutsideTheStateDiagram(t *testing.T) {
	drawn := drawnArrows(t)
	var names []string
	for name := range stateSteps {
		if !strings.HasPrefix(name, "create") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	creates := []string{"create", "create", "create-triage", "create-blocked", "create-later", "create-child", "create-child-later"}
	seen := map[string]bool{}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		s := newStateStory(t)
		history := []string{creates[random.IntN(len(creates))]}
		if err := stateSteps[history[0]](s); err != nil {
			t.Fatalf("%s: %v", history[0], err)
		}
		for range 150 {
			step := names[random.IntN(len(names))]
			// Half the steps go where runs are, so that histories get deep.
			if random.IntN(2) == 0 {
				step = []string{"claim", "spawn", "wait-a-day", "unblock", "exit-1"}[random.IntN(5)]
			}
			history = append(history, step)
			_ = stateSteps[step](s) // most are refused; only what was appended counts
			for _, arrow := range s.last {
				seen[arrow] = true
				if !slices.Contains(drawn, arrow) {
					t.Fatalf("docs/states.md does not draw %q, walked by\n%s", arrow, strings.Join(history, " "))
				}
			}
			s.last = nil
		}
	}
	// Against a walk that looks nowhere.
	if len(seen) < len(drawn)/2 {
		t.Errorf("random histories walked %d of %d arrows", len(seen), len(drawn))
	}
}

// drawnArrows reads the diagrams: one entry for each event on each arrow.
func drawnArrows(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "states.md"))
	if err != nil {
		t.Fatal(err)
	}
	var arrows []string
	diagram, inside := "", false
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "## The card":
			diagram = "card"
		case line == "## The run":
			diagram = "run"
		case line == "```mermaid":
			inside = true
		case line == "```":
			inside = false
		case inside && line != "stateDiagram-v2":
			way, events, ok := strings.Cut(line, ": ")
			if !ok || !strings.Contains(way, " --> ") {
				t.Fatalf("docs/states.md: %q is no arrow", line)
			}
			for _, e := range strings.Split(events, ", ") {
				arrows = append(arrows, diagram+" "+way+": "+e)
			}
		}
	}
	if len(arrows) == 0 {
		t.Fatal("docs/states.md draws nothing")
	}
	slices.Sort(arrows)
	if once := slices.Compact(slices.Clone(arrows)); len(once) != len(arrows) {
		t.Fatal("docs/states.md draws an arrow twice")
	}
	return arrows
}

// stateStory is a board in memory with a card in hand. Beside it stands a board
// that gets the same events one by one: a commit may move a card twice, and
// both moves are arrows.
type stateStory struct {
	store  *projection.MemStore
	slow   *projection.MemStore
	limits projection.Limits
	now    eventlog.Time
	card   string
	parent string
	made   uint64
	walked []string // arrows, all and
	last   []string // since it was last emptied
}

func newStateStory(t *testing.T) *stateStory {
	t.Helper()
	return &stateStory{
		store:  &projection.MemStore{Mem: eventlog.NewMem([16]byte{1})},
		slow:   &projection.MemStore{Mem: eventlog.NewMem([16]byte{1})},
		limits: projection.DefaultLimits(),
		now:    eventlog.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
}

func (s *stateStory) allDrawn(t *testing.T, drawn []string) {
	t.Helper()
	for _, arrow := range s.walked {
		if !slices.Contains(drawn, arrow) {
			t.Errorf("docs/states.md does not draw %q", arrow)
		}
	}
}

func (s *stateStory) update(d projection.Decider) error {
	res, err := s.store.Update("operator:test", s.now, d)
	if res.Task != "" && s.card == "" {
		s.card = res.Task
	}
	for i, e := range res.Commit.Events {
		part := res.Commit
		part.Seq, part.Events = res.Commit.Seq+uint64(i), res.Commit.Events[i:i+1]
		run := e.Run
		cardWas, runWas := s.states(e.Task, run)
		if err := projection.Fold(s.slow.Mem, part); err != nil {
			return fmt.Errorf("fold of event %d alone: %w", part.Seq, err)
		}
		if t := s.task(s.slow, e.Task); run == 0 && t.LastRun == part.Seq {
			run = part.Seq // this event opened it
		}
		cardIs, runIs := s.states(e.Task, run)
		s.walk("card", cardWas, cardIs, e.Kind())
		s.walk("run", runWas, runIs, e.Kind())
	}
	return err
}

func (s *stateStory) walk(what, from, to string, k eventlog.Kind) {
	if from != to {
		arrow := fmt.Sprintf("%s %s --> %s: %s", what, from, to, k)
		s.walked, s.last = append(s.walked, arrow), append(s.last, arrow)
	}
}

// states is where a card and a run of it stand, "[*]" for what is not there.
func (s *stateStory) states(card string, run uint64) (cardState, runState string) {
	cardState, runState = "[*]", "[*]"
	if t := s.task(s.slow, card); t != nil {
		cardState = t.Status
	}
	var r *projection.Run
	must(s.slow.View(func(v projection.View) (err error) { r, err = v.Run(run); return err }))
	if r == nil {
		return cardState, runState
	}
	asked := r.EndRequestedAt != 0
	switch {
	case r.Open() && !r.HasWorker:
		runState = "claimed"
	case r.Open() && !asked:
		runState = "supervised"
	case r.Open():
		runState = "ending"
	case !r.HasWorker:
		runState = "over"
	case asked:
		runState = "reaping"
	default:
		runState = "retained"
	}
	return cardState, runState
}

func (s *stateStory) task(on *projection.MemStore, id string) (t *projection.Task) {
	must(on.View(func(v projection.View) (err error) { t, err = v.Task(id); return err }))
	return t
}

// must is for reads of a board in memory, which do not fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// run is the card's newest run.
func (s *stateStory) run() uint64 { return s.task(s.store, s.card).LastRun }

func (s *stateStory) owner() uint64 { return s.task(s.store, s.card).Owner() }

// writer is the worker of the open run, or an operator if there is none.
func (s *stateStory) writer() projection.Writer {
	if open := s.task(s.store, s.card).CurrentRun; open != 0 {
		return projection.Writer{Card: s.card, Run: open}
	}
	return projection.Writer{}
}

func (s *stateStory) create(d projection.Draft) error {
	s.made++
	binary.BigEndian.PutUint64(d.ID[:], s.made)
	d.Title, d.Assignee, d.WorkspaceKind = "a card", "coder", projection.Scratch
	s.card = ""
	return s.update(projection.Create(d, projection.Writer{}))
}

func (s *stateStory) createChild(later time.Duration) error {
	if err := s.create(projection.Draft{}); err != nil {
		return err
	}
	s.parent = s.card
	d := projection.Draft{Parents: []string{s.parent}}
	if later > 0 {
		d.NotBefore = s.now.Add(later)
	}
	return s.create(d)
}

func (s *stateStory) claim(origin, onCleanExit string) error {
	t := s.task(s.store, s.card)
	return s.update(projection.Claim(projection.ClaimFor{
		Task: s.card, Origin: origin, Assignee: t.Assignee, OnCleanExit: onCleanExit,
		TTL: time.Minute, LaunchGrace: time.Minute, MaxRuntime: time.Hour, Limits: s.limits,
	}, projection.Writer{}))
}

func (s *stateStory) requestEnd(reason string) error {
	return s.update(projection.RequestEnd(projection.EndRequest{Run: s.run(), Reason: reason, Evidence: "alive"}))
}

func (s *stateStory) exit(code int64) error {
	return s.end(&projection.ExitRecord{Cause: projection.CauseExited, ExitCode: &code})
}

func (s *stateStory) end(rec *projection.ExitRecord) error {
	return s.update(projection.BookEnd(projection.Ending{Run: s.run(), Record: rec}, s.limits))
}
