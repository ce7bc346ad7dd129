package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// crashProc is a process of a run: a supervisor, the worker it started, a
// descendant of that, the program as the worker calls it ("answer"), or something
// else that it calls ("tool").
type crashProc struct {
	pid             int
	start           string
	kind, card, run string
}

// readProc reads one process that lives.
func readProc(pid int) (p crashProc, alive bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, false
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return p, false
	}
	return crashProc{pid: pid, start: f[19]}, true
}

// scan finds every process of the board's runs, by the token in its environment
// or, if it has none, by the script that it runs.
func (c *crash) scan() (found []crashProc) {
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		if pid, err := strconv.Atoi(d.Name()); err == nil {
			if p, ours := c.look(pid); ours {
				found = append(found, p)
			}
		}
	}
	return found
}

// look reads one process, if it lives and is one of the board's runs.
func (c *crash) look(pid int) (p crashProc, ours bool) {
	child := []byte(filepath.Join(c.dir, "child"))
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	_, token, ours := bytes.Cut(env, []byte("KANLOG_TOKEN="+c.uuid+"/"))
	words := bytes.Split(bytes.TrimSuffix(argv, []byte{0}), []byte{0})
	kid := slices.IndexFunc(words, func(w []byte) bool { return bytes.Equal(w, child) })
	if !ours && kid < 0 {
		return p, false
	}
	p, alive := readProc(pid)
	if !alive {
		return p, false
	}
	switch {
	case kid >= 0 && len(words) > kid+2:
		p.kind, p.card, p.run = "descendant", string(words[kid+1]), string(words[kid+2])
	case bytes.HasSuffix(argv, []byte("\x00supervise\x00")):
		p.kind = "supervisor"
	case bytes.Contains(argv, []byte(filepath.Join(c.dir, "worker"))):
		p.kind = "worker"
	case bytes.HasPrefix(argv, []byte(c.bin+"\x00")):
		p.kind = "answer"
	default:
		p.kind = "tool"
	}
	if p.card == "" {
		run, _, _ := bytes.Cut(token, []byte{'/'}) // a mark follows it
		_, card, _ := bytes.Cut(env, []byte("KANLOG_TASK="))
		card, _, _ = bytes.Cut(card, []byte{0})
		p.run, p.card = string(run), string(card)
	}
	return p, true
}

// beside proves that no two runs of a card have processes at one time. A
// supervisor that was not let in yet may be there beside a later run: it has run
// nothing, and the fence refuses it. Of two that were seen one after the other,
// the first must be alive still when the second was seen.
func (c *crash) beside(found []crashProc) {
	first := map[string]crashProc{}
	for _, p := range found {
		if p.kind == "supervisor" {
			continue
		}
		q, seen := first[p.card]
		if !seen || q.run == p.run {
			first[p.card] = p
			continue
		}
		if now, alive := readProc(q.pid); alive && now.start == q.start {
			c.Errorf("card %s has processes of two runs: %+v and %+v", p.card, q, p)
		}
	}
}

// drain lets nothing go wrong any more, and ticks until every card is done and
// nothing of any run is left.
func (c *crash) drain() {
	if err := os.WriteFile(filepath.Join(c.dir, "calm"), nil, 0o600); err != nil {
		c.Fatal(err)
	}
	deadline := time.Now().Add(2 * patience)
	for !c.Failed() {
		c.call(nil, "dispatcher", "dispatch")
		tasks, left := c.list(), 0
		var open []crashTask
		for _, t := range tasks {
			if t.Status == "blocked" {
				c.call([]int{4}, "verb", "unblock", t.ID)
			}
			if t.Status != "done" || t.RetainedRun != nil {
				open = append(open, t)
			}
		}
		if len(open) == 0 {
			if left = len(c.scan()); left == 0 {
				return
			}
		}
		if time.Now().After(deadline) {
			c.Errorf("not drained: %d cards are not done and %d processes left: %+v %+v", len(open), left, open, c.scan())
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// crashEvent is an event as the program prints it.
type crashEvent struct {
	Seq  uint64          `json:"seq"`
	Kind string          `json:"kind"`
	Task string          `json:"task"`
	Run  uint64          `json:"run"`
	Data json.RawMessage `json:"data"`
}

func (c *crash) events() (events []crashEvent) {
	out, _ := c.call(nil, "verb", "events", "--json")
	for line := range bytes.Lines(out) {
		var e crashEvent
		if err := json.Unmarshal(line, &e); err != nil {
			c.Errorf("events: %v in %s", err, line)
			return nil
		}
		events = append(events, e)
	}
	return events
}

// check is the oracle: what the workers wrote by themselves against the board.
func (c *crash) check() {
	events := c.events()
	c.checkCards(events)
	c.checkRuns(events)
	c.checkFiles()
	if out, ok := c.call(nil, "verb", "verify"); !ok {
		c.Errorf("verify: %s", out)
	}
	before := dumpTables(c.T, c.board)
	c.call(nil, "verb", "rebuild")
	if after := dumpTables(c.T, c.board); before != after {
		c.Errorf("the tables differ after a rebuild:\n%s", firstDifference(before, after))
	}
	checkPrefixes(c.T, "crash", projection.Open(c.board, eventlog.Options{LockTimeout: patience}))
}

// checkCards: what was acknowledged is there once, what was not at most once, and
// nothing else; each card as it was given, done by one completion.
func (c *crash) checkCards(events []crashEvent) {
	created, completed, comments := map[string][]string{}, map[string]int{}, map[string][]string{}
	for _, e := range events {
		var data struct {
			Title, Text string
		}
		_ = json.Unmarshal(e.Data, &data)
		switch e.Kind {
		case "created":
			created[data.Title] = append(created[data.Title], e.Task)
		case "completed":
			completed[e.Task]++
		case "commented":
			comments[data.Text] = append(comments[data.Text], e.Task)
		}
	}
	once := func(what string, want map[string]*crashCard, got map[string][]string) {
		for _, text := range slices.Sorted(maps.Keys(want)) {
			w, ids := want[text], got[text]
			switch {
			case w.sure && len(ids) != 1, len(ids) > 1, len(ids) == 1 && w.id != "" && ids[0] != w.id:
				c.Errorf("%s %q (acknowledged: %t, card %s) is there as %v", what, text, w.sure, w.id, ids)
			}
			delete(got, text)
		}
		if len(got) > 0 {
			c.Errorf("nobody asked for these: %s %v", what, got)
		}
	}
	ids := maps.Clone(created)
	once("card", c.cards, created)
	once("comment", c.comments, comments)
	store := projection.Open(c.board, eventlog.Options{LockTimeout: patience})
	err := store.View(func(v projection.View) error {
		for title, got := range ids {
			t, err := v.MustTask(got[0])
			if err != nil {
				return err
			}
			want := c.cards[title]
			if want == nil {
				continue
			}
			if parents := strings.Join(v.Parents(t.ID), " "); t.Title != title || v.Body(t.ID) != want.body || parents != want.parent {
				c.Errorf("card %s is %q with body %q under %q, want %q, %q, %q", t.ID, t.Title, v.Body(t.ID), parents, title, want.body, want.parent)
			}
			if completed[t.ID] != 1 || t.Status != projection.Done {
				c.Errorf("card %s is %s and has %d completions", t.ID, t.Status, completed[t.ID])
			}
		}
		return nil
	})
	if err != nil {
		c.Error(err)
	}
}

// checkRuns: a command starts once, after its run was registered, and never
// beside another run of its card; the run that completed a card has its bill.
func (c *crash) checkRuns(events []crashEvent) {
	spawned, done := map[string]bool{}, map[string]string{}
	for _, e := range events {
		run := fmt.Sprintf("%s %d", e.Task, e.Run)
		switch e.Kind {
		case "spawned":
			spawned[run] = true
		case "completed":
			done[e.Task] = run
		}
	}
	text, err := os.ReadFile(filepath.Join(c.dir, "lines"))
	if err != nil {
		c.Fatal(err)
	}
	count, running := map[string]int{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 4 {
			c.Fatalf("lines: %q", line)
		}
		what, card, run := f[0], f[1], f[1]+" "+f[2]
		if count[what+" "+run]++; count[what+" "+run] > 1 && (what == "START" || what == "BILL") {
			c.Errorf("%s of run %s is there twice", what, run)
		}
		if what == "START" {
			running[card] = run
			if !spawned[run] {
				c.Errorf("run %s started its command and never registered", run)
			}
		}
		if running[card] != run {
			c.Errorf("%s: run %s is at it although run %s has started", strings.TrimSpace(line), run, running[card])
		}
	}
	for card, run := range done {
		if count["BILL "+run] != 1 {
			c.Errorf("card %s is completed by run %q, which billed %d times", card, run, count["BILL "+run])
		}
	}
	c.signals["starts"] = 0
	for key, n := range count {
		if strings.HasPrefix(key, "START ") {
			c.signals["starts"] += n
		}
	}
	if c.signals["starts"] == 0 {
		c.Errorf("nothing was started; this proves nothing")
	}
}

var runFile = regexp.MustCompile(`^(board-id|[0-9]+\.(log|exit|context\.md))$`)

// checkFiles: nothing half made is left.
func (c *crash) checkFiles() {
	for _, dir := range []string{filepath.Join(c.board, "runs"), filepath.Join(c.dir, "tmp")} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !runFile.MatchString(d.Name()) && d.Name() != ".keep" {
				c.Errorf("%s is left", path)
			}
			return err
		})
		if err != nil {
			c.Error(err)
		}
	}
}

func (c *crash) report(played, took time.Duration) {
	c.mu.Lock()
	starts := c.signals["starts"]
	delete(c.signals, "starts")
	var signals []string
	total := 0
	for _, k := range slices.Sorted(maps.Keys(c.signals)) {
		signals = append(signals, fmt.Sprintf("%s %d", k, c.signals[k]))
		total += c.signals[k]
	}
	c.mu.Unlock()
	if total == 0 {
		c.Error("nobody was hit; this proves nothing")
	}
	outcomes := map[string]int{}
	cards, events := 0, uint64(0)
	store := projection.Open(c.board, eventlog.Options{LockTimeout: patience})
	err := store.EachCard(func(v projection.View, t *projection.Task) error {
		cards++
		runs, err := v.Runs(t.ID)
		for _, r := range runs {
			outcomes[r.Outcome]++
		}
		return err
	})
	if err == nil {
		err = store.Commits(1, func(k eventlog.Commit) error { events = k.Seq + uint64(len(k.Events)) - 1; return nil })
	}
	if err != nil {
		c.Error(err)
	}
	var ends []string
	for _, k := range slices.Sorted(maps.Keys(outcomes)) {
		ends = append(ends, fmt.Sprintf("%s %d", k, outcomes[k]))
	}
	c.Logf("seed %d: %d rounds in %.0f s, %.0f s with the drain; %d cards, %d events", c.seed, *crashRounds, played.Seconds(), took.Seconds(), cards, events)
	c.Logf("signals: %s", strings.Join(signals, ", "))
	c.Logf("commands started: %d; runs by outcome: %s", starts, strings.Join(ends, ", "))
}
