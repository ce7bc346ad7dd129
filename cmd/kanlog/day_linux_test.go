package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

var (
	dayHours = flag.Int("day.hours", 1, "TestDay: simulated hours")
	dayCards = flag.Int("day.cards", 60, "TestDay: cards made in each of them")
)

// The daemon of a test starts its supervisors from the test's own program.
func init() {
	if len(os.Args) == 2 && os.Args[1] == superviseVerb {
		os.Exit(supervise(os.Stdin))
	}
}

// dayCap is how many workers there are at once; some of them only hang about.
const dayCap = 24

// dayWorker behaves by a hash of its run's number (dayBehaviour): most do their work,
// the others do what workers do. Those that hang are ended by their time, which the
// daemon's clock runs out of long before ours does.
const dayWorker = `case $(( (KANLOG_RUN * 2654435761 >> 7) % 24 )) in
0) exit 1 ;;
1) exit 75 ;;
2) kill -9 $$ ;;
3) exec kanlog block "which colour?" ;;
4) exec kanlog fail "the tests do not pass" ;;
5) exec kanlog defer --for 20m ;;
6) exec sleep 5000 ;;
7) trap '' TERM; sleep 5000 ;;
8) sleep 5000 & exit 0 ;;
9) kanlog heartbeat --note "half way"; exec kanlog complete --summary "done" ;;
10) kanlog complete --summary "done"; exec sleep 5000 ;;
11) exit 78 ;;
12) head -c 30000 /dev/zero | tr '\0' x ;;
13) setsid sleep 5000 & exit 3 ;;
14) exec kanlog comment $KANLOG_TASK "I have looked at it" ;;
15) kill -9 $PPID ;;
esac
`

func dayBehaviour(run uint64) uint64 { return (run * 2654435761 >> 7) % 24 }

// lingers tells which of them do not end by themselves.
func lingers(r *projection.Run) bool {
	n := dayBehaviour(r.ID)
	return r.HasWorker && (n == 6 || n == 7 || n == 10)
}

// TestDay is a day of a daemon: cards come all the time, its workers do what workers
// do, and the clock is moved on whenever nothing more happens without. Every card
// comes to an end or a stated hold, the log grows as much for a late card as for an
// early one, and nothing is left over: no descriptor, goroutine, process or temporary
// file. The long form is run by hand: go test ./cmd/kanlog -run 'TestDay$' -v
// -timeout 0 -day.hours 24 -day.cards 200
func TestDay(t *testing.T) {
	home := t.TempDir()
	t.Setenv("PATH", filepath.Dir(program(t))+":"+os.Getenv("PATH"))
	settings := fmt.Sprintf(`max_in_progress = %d
min_free_memory = 0
kill_grace = "1s"
terminal_grace = "5m"
keep_workspaces = "6h"
[profiles.w]
command = ["sh", "-c", %q]
on_clean_exit = "complete"
max_runtime = "20m"
`, dayCap, dayWorker)
	if err := os.WriteFile(filepath.Join(home, settingsName), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run([]string{"--home", home, "init"}, io.Discard, os.Stderr); code != 0 {
		t.Fatalf("init exited with %d", code)
	}
	a := &app{home: home, out: io.Discard, errw: testWriter{t}}
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	a.skew = new(atomic.Int64)
	d := &day{T: t, a: a, store: projection.Open(a.boardDir, eventlog.Options{})}

	atRest := resourcesOf(t)
	daemon, err := a.newDaemon(time.Hour, &watchdog{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- daemon.run(ctx) }()

	var first, last resources
	for hour := range *dayHours {
		for step := range 12 {
			d.create(*dayCards*(step+1)/12 - *dayCards*step/12)
			d.pass(5 * time.Minute)
		}
		d.answer()
		last = d.grown(hour + 1)
		if hour == *dayHours/4 {
			first = last
		}
	}
	for d.unfinished() {
		d.pass(10 * time.Minute)
	}
	d.theDayAfter()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the daemon ended with %v", err)
	}

	d.everyCardIsBooked()
	d.onlyRunFilesAreLeft()
	d.noProcessIsLeft()
	if left := resourcesOf(t); left.goroutines > atRest.goroutines || left.descriptors > atRest.descriptors || left.zombies > 0 {
		t.Errorf("before the daemon: %+v; after it: %+v", atRest, left)
	}
	// What it holds while it is at work does not grow either, beside a watch over each
	// worker there is.
	const each = 4 * dayCap
	if last.goroutines > first.goroutines+each || last.descriptors > first.descriptors+each {
		t.Errorf("after a quarter of the time: %+v; at the end: %+v", first, last)
	}
	if late, early := last.perCard(), first.perCard(); late > early*3/2 {
		t.Errorf("the log grew by %.0f bytes a card in the first quarter, and by %.0f in all", early, late)
	}
	rep, err := d.store.Verify()
	if err != nil || rep.Problem != "" {
		t.Errorf("verify: %v %s", err, rep.Problem)
	}
	t.Logf("%d cards, %d runs, %d commits, %d events; %.1f events and %.0f bytes of the store for each card", rep.Tasks, rep.Runs, rep.Commits, rep.Events,
		float64(rep.Events)/float64(rep.Tasks), d.size()/float64(rep.Tasks))
}

type day struct {
	*testing.T
	a     *app
	store *projection.Store
	made  int
	ids   []string
}

func (d *day) update(actor string, decide projection.Decider) projection.Result {
	res, err := d.store.Update(actor, d.a.clock(), decide)
	if err != nil {
		d.Fatal(err)
	}
	return res
}

func (d *day) create(n int) {
	for range n {
		d.made++
		draft := projection.Draft{ID: randomID(), Title: fmt.Sprintf("card %d", d.made), Assignee: "w", Priority: int64(d.made % 3), WorkspaceKind: projection.Scratch}
		d.ids = append(d.ids, d.update("operator:day", projection.Create(draft, projection.Writer{})).Task)
	}
}

// pass moves the clock on and waits until nothing more happens by itself.
func (d *day) pass(by time.Duration) {
	d.a.skew.Add(int64(by))
	d.poke()
	d.settle()
}

// poke makes the log move, since nobody tells the daemon that its clock was moved.
func (d *day) poke() {
	d.update("operator:day", projection.AddComment(d.ids[0], "day", "the clock goes on", projection.Writer{}))
}

// dayPatience bounds one wait; it is long, since a slow machine must not fail a test.
const dayPatience = 90 * time.Second

// settle waits until every worker that ends by itself has, and no card could start.
func (d *day) settle() {
	var what string
	calm := 0
	for end := time.Now().Add(dayPatience); calm < 2; time.Sleep(40 * time.Millisecond) {
		what = ""
		err := d.store.View(func(v projection.View) error {
			active, err := v.Active()
			for _, r := range active {
				if !lingers(r) || r.EndRequestedAt != 0 {
					what = fmt.Sprintf("run %d of %s is active", r.ID, r.Task)
				}
			}
			if err != nil || len(active) >= dayCap {
				return err
			}
			return v.Ready("w", func(c *projection.Task) bool {
				if c.Startable(d.a.clock()) {
					what = "card " + c.ID + " could start"
				}
				return what == ""
			})
		})
		if err != nil {
			d.Fatal(err)
		}
		if calm++; what != "" {
			calm = 0
		}
		if time.Now().After(end) {
			d.Fatalf("nothing moves on: %s", what)
		}
	}
}

// answer is a person who looks at what is blocked, and lets two of three go on.
func (d *day) answer() {
	for i, c := range d.cards() {
		if c.Status == projection.Blocked && i%3 != 0 {
			d.update("operator:day", projection.Unblock(c.ID, projection.Writer{}))
		}
	}
	d.poke()
	d.settle()
}

func (d *day) cards() (list []*projection.Task) {
	err := d.store.EachCard(func(_ projection.View, c *projection.Task) error {
		list = append(list, c)
		return nil
	})
	if err != nil {
		d.Fatal(err)
	}
	return list
}

// unfinished tells whether a card will go on by itself, or something of one is left.
func (d *day) unfinished() bool {
	for _, c := range d.cards() {
		switch c.Status {
		case projection.Done, projection.Blocked, projection.Triage: // a person's
			if c.Worker == 0 {
				continue
			}
		}
		return true
	}
	return false
}

func (d *day) everyCardIsBooked() {
	ends := map[string]int{}
	for _, c := range d.cards() {
		what := c.Status
		if c.Status == projection.Blocked {
			what += " (" + c.BlockKind + ")"
			if c.BlockReason == "" {
				d.Errorf("card %s is blocked and does not say why", c.ID)
			}
		}
		ends[what]++
		done := 0
		err := d.store.TaskCommits(c.ID, 0, func(commit eventlog.Commit) error {
			for _, e := range commit.Events {
				if e.Task == c.ID && e.Kind() == eventlog.KindCompleted {
					done++
				}
			}
			return nil
		})
		if err != nil {
			d.Fatal(err)
		}
		if want := map[string]int{projection.Done: 1}[c.Status]; done != want || c.CurrentRun != 0 || c.Worker != 0 {
			d.Errorf("card %s is %s and was completed %d times; open run %d, worker of run %d", c.ID, c.Status, done, c.CurrentRun, c.Worker)
		}
	}
	if len(d.cards()) != d.made {
		d.Errorf("%d cards were made, %d are there", d.made, len(d.cards()))
	}
	d.Logf("every card is booked: %v", ends)
}

// fileOfRun is what may lie in the directory of a card's runs.
var fileOfRun = regexp.MustCompile(`^\d+\.(log|exit|context\.md)$`)

func (d *day) onlyRunFilesAreLeft() {
	known := map[string]bool{"board.db": true, "board.lock": true, "dispatch.lock": true, "daemon.lock": true, "gc.lock": true, gcStateName: true, "runs/board-id": true}
	err := filepath.WalkDir(d.a.boardDir, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(d.a.boardDir, path)
		if err == nil && !e.IsDir() && !known[name] && !fileOfRun.MatchString(e.Name()) {
			d.Errorf("%s is left over", name)
		}
		return err
	})
	if err != nil {
		d.Fatal(err)
	}
}

// theDayAfter waits until the gc of the next day has removed the workspaces of all cards
// that are done.
func (d *day) theDayAfter() {
	kept := 1 // the card that is commented on all the time is never old
	for _, c := range d.cards() {
		if c.Status != projection.Done {
			kept++
		}
	}
	// A gc of many workspaces takes longer than a simulated day, and the next one finds it
	// at work and leaves it to the day after.
	for days, least := 1, d.made+1; ; days++ {
		d.pass(25 * time.Hour)
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			workspaces, _ := os.ReadDir(filepath.Join(d.a.boardDir, "workspaces"))
			if len(workspaces) <= kept {
				return
			}
			if len(workspaces) < least { // it is at it
				least, end = len(workspaces), time.Now().Add(10*time.Second)
			}
		}
		if days == 10 {
			d.Fatalf("%d days after the last card %d workspaces are left, and %d cards are not done", days, least, kept)
		}
	}
}

// noProcessIsLeft looks for the board in the environment of every process.
func (d *day) noProcessIsLeft() {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		if env, err := os.ReadFile(path); err == nil && strings.Contains(string(env), "KANLOG_HOME="+d.a.home+"\x00") {
			d.Errorf("a process is left: %s", path)
		}
	}
}

// resources are what a process has in use.
type resources struct {
	descriptors, goroutines, zombies int
	heap                             uint64
	cards                            int
	bytes                            float64
}

func (r resources) perCard() float64 { return r.bytes / float64(r.cards) }

func (d *day) size() float64 {
	fi, err := os.Stat(filepath.Join(d.a.boardDir, eventlog.StoreName))
	if err != nil {
		d.Fatal(err)
	}
	return float64(fi.Size())
}

func (d *day) grown(hour int) resources {
	r := resourcesOf(d.T)
	r.cards, r.bytes = d.made, d.size()
	d.Logf("hour %2d: %5d cards, %6.0f KiB (%.0f bytes a card); %d descriptors, %d goroutines, %d zombies, heap %.1f MiB",
		hour, r.cards, r.bytes/1024, r.perCard(), r.descriptors, r.goroutines, r.zombies, float64(r.heap)/(1<<20))
	return r
}

func resourcesOf(t *testing.T) (r resources) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.heap = m.HeapAlloc
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	r.descriptors, r.goroutines = len(fds), runtime.NumGoroutine()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if f[0] == "Z" && f[1] == strconv.Itoa(os.Getpid()) {
			r.zombies++
		}
	}
	return r
}

// testWriter is the log of a test.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Logf("%s", strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}
