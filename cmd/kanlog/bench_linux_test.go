package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// What the program costs, for scripts/cost. Each benchmark takes many samples
// in one iteration and reports their median: run them with -benchtime=1x.

// program is the built program: that of KANLOG_COST_PROGRAM, or a fresh build.
func program(b testing.TB) string {
	if path := os.Getenv("KANLOG_COST_PROGRAM"); path != "" {
		return path
	}
	path := filepath.Join(b.TempDir(), "kanlog")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "kanlog/cmd/kanlog")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("building the program: %v\n%s", err, out)
	}
	return path
}

// costHome is a fresh home with these settings.
func costHome(b *testing.B, settings string) string {
	home := b.TempDir()
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(settings), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "KANLOG_") && name != "KANLOG_COST_PROGRAM" {
			b.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	if code := run([]string{"--home", home, "init"}, io.Discard, os.Stderr); code != 0 {
		b.Fatalf("init exited with %d", code)
	}
	return home
}

func costStore(home string) *projection.Store {
	return projection.Open(eventlog.BoardDir(home, "default"), eventlog.Options{})
}

// add puts a card on the board without starting a process for it.
func add(b *testing.B, store *projection.Store, n int, d projection.Draft) string {
	d.Title, d.WorkspaceKind = fmt.Sprintf("card %d", n), projection.Scratch
	binary.BigEndian.PutUint64(d.ID[:], uint64(n))
	res, err := store.Update("operator:cost", eventlog.TimeOf(time.Now()), projection.Create(d, projection.Writer{}))
	if err != nil {
		b.Fatal(err)
	}
	return res.Task
}

// until waits for a condition on the board; each look is one short transaction.
func until(b *testing.B, store *projection.Store, pause time.Duration, what string, ok func(projection.View) (bool, error)) {
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(pause) {
		done := false
		err := store.View(func(v projection.View) (err error) {
			done, err = ok(v)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		if done {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%s: not within two minutes", what)
		}
	}
}

func quiet(v projection.View) (bool, error) {
	active, err := v.Active()
	return len(active) == 0, err
}

// BenchmarkCreateProcess is a whole `kanlog create` process: start, settings,
// one durable commit, end.
func BenchmarkCreateProcess(b *testing.B) {
	const samples = 50
	kanlog, home := program(b), costHome(b, "")
	empty := emptyProgram(b)
	var create, help, bare, nothing []time.Duration
	settle()
	for b.Loop() {
		for i := range samples {
			create = append(create, process(b, kanlog, "--home", home, "create", fmt.Sprintf("card %d", i)))
			help = append(help, process(b, kanlog, "help"))
			bare = append(bare, process(b, "/bin/true"))
			nothing = append(nothing, process(b, empty))
		}
	}
	b.ReportMetric(ms(create), "create-ms")
	b.ReportMetric(ms(help), "start-ms")
	b.ReportMetric(ms(bare), "true-ms")
	b.ReportMetric(ms(nothing), "empty-ms")
}

// emptyProgram builds a Go program that does nothing: what the runtime alone
// costs on this machine.
func emptyProgram(b *testing.B) string {
	dir := b.TempDir()
	source := filepath.Join(dir, "empty.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "empty"), source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "empty")
}

// settle waits until what was built or filled before is not measured too: this process's
// own collections, and pages that are written back.
func settle() {
	debug.FreeOSMemory()
	syscall.Sync()
	time.Sleep(3 * time.Second)
}

// process runs one to its end.
func process(b *testing.B, args ...string) time.Duration {
	took, err := runProcess(args)
	if err != nil {
		b.Fatalf("%v: %v", args, err)
	}
	return took
}

// runProcess waits for it on its own thread: what package os/exec does beside that is a
// fifth of what /bin/true takes.
func runProcess(args []string) (time.Duration, error) {
	nowhere, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer nowhere.Close()
	null := nowhere.Fd()
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{null, null, os.Stderr.Fd()}}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := time.Now()
	pid, err := syscall.ForkExec(args[0], args, attr)
	if err != nil {
		return 0, err
	}
	var status syscall.WaitStatus
	for {
		if _, err = syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			break
		}
	}
	took := time.Since(start)
	if err == nil && status != 0 {
		err = fmt.Errorf("status %#x", status)
	}
	return took, err
}

// BenchmarkCard is claim, fork, register, /bin/true, book: 200 cards in one
// tick, until the last is booked.
func BenchmarkCard(b *testing.B) {
	const cards = 200
	kanlog := program(b)
	home := costHome(b, fmt.Sprintf("max_in_progress = %d\n[profiles.cost]\ncommand = [\"true\"]\non_clean_exit = \"complete\"\n", cards))
	store := costStore(home)
	for i := range cards {
		add(b, store, i, projection.Draft{Assignee: "cost"})
	}
	settle()
	var took time.Duration
	for b.Loop() {
		start := time.Now()
		process(b, kanlog, "--home", home, "dispatch")
		// Seldom: each look is in the way of those who book.
		until(b, store, 50*time.Millisecond, "booking", quiet)
		took = time.Since(start)
	}
	done := 0
	err := store.EachCard(func(_ projection.View, t *projection.Task) error {
		if t.Status == projection.Done {
			done++
		}
		return nil
	})
	if err != nil || done != cards {
		b.Fatalf("%d of %d cards are done, %v", done, cards, err)
	}
	b.ReportMetric(float64(took.Microseconds())/1e3/cards, "card-ms")
	b.ReportMetric(float64(barePairs(b, cards).Microseconds())/1e3/cards, "pair-ms")
}

// barePairs is what the two processes that each card needs take by themselves, two cards
// at a time: a Go program that does nothing, as the supervisor, and /bin/true.
func barePairs(b *testing.B, cards int) time.Duration {
	pair := [][]string{{emptyProgram(b)}, {"/bin/true"}}
	settle()
	half := func() error {
		for range cards / 2 {
			for _, args := range pair {
				if _, err := runProcess(args); err != nil {
					return fmt.Errorf("%v: %w", args, err)
				}
			}
		}
		return nil
	}
	start := time.Now()
	other := make(chan error)
	go func() { other <- half() }()
	if err := errors.Join(half(), <-other); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// BenchmarkSupervisor is the resident memory of supervisors whose workers wait, once
// they have given back what starting took.
func BenchmarkSupervisor(b *testing.B) {
	const workers = 5
	kanlog := program(b)
	fifo := filepath.Join(b.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		b.Fatal(err)
	}
	home := costHome(b, fmt.Sprintf("max_in_progress = %d\n[profiles.cost]\ncommand = [\"sh\", \"-c\", \"exec cat <%s\"]\non_clean_exit = \"complete\"\n", workers, fifo))
	store := costStore(home)
	for i := range workers {
		add(b, store, i, projection.Draft{Assignee: "cost"})
	}
	var rss, anon []int64 // KiB
	for b.Loop() {
		// Held open for reading and writing, so that no worker waits in its
		// open and all end when it is closed.
		gate, err := os.OpenFile(fifo, os.O_RDWR, 0)
		if err != nil {
			b.Fatal(err)
		}
		process(b, kanlog, "--home", home, "dispatch")
		var runs []*projection.Run
		until(b, store, 10*time.Millisecond, "registering", func(v projection.View) (bool, error) {
			runs, err = v.Active()
			return len(runs) == workers, err
		})
		for _, r := range runs {
			for !hasWorkerWaiting(r.PID, fifo) {
				time.Sleep(5 * time.Millisecond)
			}
		}
		time.Sleep(3 * time.Second)
		for _, r := range runs {
			rss = append(rss, memoryKiB(b, r.PID, "VmRSS:"))
			anon = append(anon, memoryKiB(b, r.PID, "RssAnon:"))
		}
		gate.Close()
		// Seldom: each look is in the way of those who book.
		until(b, store, 50*time.Millisecond, "booking", quiet)
	}
	b.ReportMetric(mib(rss), "rss-MiB")
	b.ReportMetric(mib(anon), "anon-MiB")
}

// hasWorkerWaiting tells whether a child of pid has the fifo as its input.
func hasWorkerWaiting(pid int, fifo string) bool {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) {
		if in, _ := os.Readlink("/proc/" + child + "/fd/0"); in == fifo {
			return true
		}
	}
	return false
}

// memoryKiB is one line of a process's status.
func memoryKiB(b *testing.B, pid int, name string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("/proc/%d/status has no %s", pid, name)
	return 0
}

// BenchmarkIdleTick is a tick with nothing to do on boards of growing size, in
// this process, so that the start of a program does not hide what grows.
func BenchmarkIdleTick(b *testing.B) {
	const samples = 51
	sizes := []int{100, 1000, 10000}
	homes := make([]string, len(sizes))
	for i, size := range sizes {
		homes[i] = costHome(b, "[profiles.cost]\ncommand = [\"true\"]\n")
		fill(b, homes[i], size)
	}
	took := make([][]time.Duration, len(sizes))
	for b.Loop() {
		for range samples {
			for i := range sizes { // in turn: what disturbs one disturbs all
				start := time.Now()
				if code := run([]string{"--home", homes[i], "dispatch"}, io.Discard, os.Stderr); code != 0 {
					b.Fatalf("dispatch exited with %d", code)
				}
				took[i] = append(took[i], time.Since(start))
			}
		}
	}
	for i, size := range sizes {
		b.ReportMetric(ms(took[i]), fmt.Sprintf("tick-%d-ms", size))
		b.ReportMetric(ms(took[i])/ms(took[0]), fmt.Sprintf("ratio-%d", size))
	}
}

// BenchmarkBigBoard is what calls on one card, and a look at the first ones, cost a
// process on a board of 100,000 cards, beside the same on one of 100.
func BenchmarkBigBoard(b *testing.B) {
	const samples = 41
	sizes := []int{100, 100_000}
	homes := make([]string, len(sizes))
	for i, size := range sizes {
		homes[i] = costHome(b, "[profiles.cost]\ncommand = [\"true\"]\n")
		fill(b, homes[i], size)
	}
	// Every even card is blocked and waits; the odd ones are done.
	card := func(n int) string { return fmt.Sprintf("t_%08x", n) }
	calls := []struct {
		name string
		args func(n int) []string
	}{
		{"create", func(n int) []string { return []string{"create", fmt.Sprint("new ", n)} }},
		{"show", func(n int) []string { return []string{"show", card(2 * n)} }},
		{"why", func(n int) []string { return []string{"why", card(2 * n)} }},
		{"complete", func(n int) []string { return []string{"complete", card(2 * n)} }},
		{"list-50", func(int) []string { return []string{"list", "--limit", "50"} }},
		{"tick", func(int) []string { return []string{"dispatch", "--max", "0"} }},
	}
	took := map[string][]time.Duration{}
	bin := program(b)
	settle()
	for b.Loop() {
		for n := range samples {
			for _, c := range calls {
				for i, size := range sizes {
					name := fmt.Sprintf("%s-%d", c.name, size)
					took[name] = append(took[name], process(b, append([]string{bin, "--home", homes[i]}, c.args(n)...)...))
				}
			}
		}
	}
	for _, c := range calls {
		small, big := took[c.name+"-100"], took[c.name+"-100000"]
		b.ReportMetric(ms(big), "big-"+c.name+"-ms")
		b.ReportMetric(ms(big)/ms(small), "big-"+c.name+"-ratio")
	}
}

// fill puts cards on a board that will never start: every other one done, the
// others blocked. Many commits go into one transaction, since a sync for each
// would take minutes; the log and the tables are the same.
func fill(b *testing.B, home string, cards int) {
	const batch = 500
	file := eventlog.Open(eventlog.BoardDir(home, "default"), eventlog.Options{})
	now := eventlog.TimeOf(time.Now())
	for from := 0; from < cards; from += batch {
		err := file.Update(func(tx *eventlog.Tx) error {
			tx.SetTablesFormat(projection.TablesFormat)
			for n := from; n < min(from+batch, cards); n++ {
				id := fmt.Sprintf("t_%08x", n)
				created := &eventlog.Created{Title: fmt.Sprintf("card %d", n), Assignee: "cost", Status: projection.Ready, WorkspaceKind: projection.Scratch}
				var then eventlog.Payload = &eventlog.Completed{Summary: "did it", By: "answer"}
				if n%2 == 0 {
					then = &eventlog.Blocked{Reason: "waits for a person", BlockKind: projection.NeedsInput}
				}
				for _, data := range []eventlog.Payload{created, then} {
					head, err := tx.Head()
					if err != nil {
						return err
					}
					c, err := tx.Append(head.Commit, eventlog.Commit{At: now, Actor: "operator:cost", Events: []eventlog.Event{{Task: id, Data: data}}})
					if err != nil {
						return err
					}
					if err := projection.Fold(tx, c); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if rep, err := costStore(home).Verify(); err != nil || rep.Problem != "" || rep.Tasks != cards {
		b.Fatalf("the board that was made: %d cards, %v %s", rep.Tasks, err, rep.Problem)
	}
}

// ms is the median in milliseconds.
func ms(samples []time.Duration) float64 {
	slices.Sort(samples)
	return float64(samples[len(samples)/2].Microseconds()) / 1e3
}

// mib is the median in MiB.
func mib(kib []int64) float64 {
	slices.Sort(kib)
	return float64(kib[len(kib)/2]) / 1024
}
