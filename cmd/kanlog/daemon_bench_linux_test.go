package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kanlog/projection"
)

// What a daemon costs, for scripts/daemon. As those for scripts/cost: medians of many
// samples in one iteration, to be run with -benchtime=1x on a machine that rests.

// startDaemon starts a daemon on a home and waits until its first tick is over.
func startDaemon(b *testing.B, kanlog, home string) *exec.Cmd {
	cmd := exec.Command(kanlog, "--home", home, "daemon")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lock := filepath.Join(home, "boards", "default", "daemon.lock")
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if text, _ := os.ReadFile(lock); strings.HasPrefix(string(text), fmt.Sprintf(`{"pid":%d,`, cmd.Process.Pid)) {
			return cmd
		}
		if time.Now().After(end) {
			b.Fatal("the daemon does not begin")
		}
	}
}

// BenchmarkDaemonReaction is the time from the start of a `kanlog create` process to
// the first thing that the worker does: date prints the time.
func BenchmarkDaemonReaction(b *testing.B) {
	const samples = 100
	kanlog := program(b)
	home := costHome(b, "max_in_progress = 4\n[profiles.w]\ncommand = [\"date\", \"+%s.%N\"]\non_clean_exit = \"complete\"\n")
	store := costStore(home)
	startDaemon(b, kanlog, home)
	var reaction, create, bare []time.Duration
	for b.Loop() {
		for i := range samples {
			began := time.Now()
			out, err := exec.Command(kanlog, "--home", home, "create", fmt.Sprintf("card %d", i), "--assignee", "w").Output()
			if err != nil {
				b.Fatal(err)
			}
			create = append(create, time.Since(began))
			id := strings.TrimSpace(string(out))
			// Not before it can be done: each look takes the board's lock, and would be
			// in the way of what is measured.
			time.Sleep(100 * time.Millisecond)
			until(b, store, 20*time.Millisecond, "the card is done", func(v projection.View) (bool, error) {
				t, err := v.MustTask(id)
				return err == nil && t.Status == projection.Done && t.Worker == 0, err
			})
			logs, _ := filepath.Glob(filepath.Join(home, "boards", "default", "runs", id, "*.log"))
			text, err := os.ReadFile(logs[len(logs)-1])
			if err != nil {
				b.Fatal(err)
			}
			_, said, _ := strings.Cut(string(text), "\n") // behind the header
			said, _, _ = strings.Cut(said, "\n")
			at, err := strconv.ParseFloat(said, 64)
			if err != nil {
				b.Fatalf("the worker printed %q", text)
			}
			reaction = append(reaction, time.Unix(0, int64(at*1e9)).Sub(began))
			bare = append(bare, process(b, "/bin/true"))
			time.Sleep(20 * time.Millisecond)
		}
	}
	b.ReportMetric(ms(reaction), "ms-to-the-worker")
	b.ReportMetric(ms(create), "ms-create")
	b.ReportMetric(ms(bare), "ms-true")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkDaemonIdle is what a daemon uses of a processor while nothing happens, in
// percent, with cards and a worker on the board.
func BenchmarkDaemonIdle(b *testing.B) {
	const rest = 20 * time.Second
	kanlog := program(b)
	home := costHome(b, "[profiles.w]\ncommand = [\"sleep\", \"600\"]\n")
	store := costStore(home)
	for i := range 1000 {
		add(b, store, i, projection.Draft{})
	}
	add(b, store, 1001, projection.Draft{Assignee: "w"})
	cmd := startDaemon(b, kanlog, home)
	until(b, store, 20*time.Millisecond, "the worker is there", func(v projection.View) (bool, error) {
		active, err := v.Active()
		return len(active) == 1 && active[0].HasWorker, err
	})
	time.Sleep(time.Second)
	for b.Loop() {
		before := cpuOf(b, cmd.Process.Pid)
		time.Sleep(rest)
		b.ReportMetric(100*float64(cpuOf(b, cmd.Process.Pid)-before)/float64(rest), "%-of-a-core")
	}
	_ = exec.Command(kanlog, "--home", home, "stop", "--kill").Run()
	b.ReportMetric(0, "ns/op")
}

// cpuOf is what all threads of a process have run, by the scheduler's own count: the
// ticks in stat are too coarse for who does next to nothing.
func cpuOf(b *testing.B, pid int) (sum time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		ran, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ran)
	}
	return sum
}

// BenchmarkThousandWorkers is one tick beside a thousand workers at work.
func BenchmarkThousandWorkers(b *testing.B) {
	const workers, ticks = 1000, 21
	kanlog := program(b)
	home := costHome(b, fmt.Sprintf("max_in_progress = %d\nmin_free_memory = 0\nlaunch_grace = \"5m\"\n[profiles.w]\ncommand = [\"sleep\", \"3600\"]\n", workers))
	store := costStore(home)
	for i := range workers + 10 {
		add(b, store, i, projection.Draft{Assignee: "w"})
	}
	defer func() {
		_ = exec.Command(kanlog, "--home", home, "pause").Run()
		_ = exec.Command(kanlog, "--home", home, "stop", "--kill").Run()
	}()
	began := time.Now()
	if out, err := exec.Command(kanlog, "--home", home, "dispatch").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	started := time.Since(began)
	until(b, store, 100*time.Millisecond, "all are at work", func(v projection.View) (bool, error) {
		active, err := v.Active()
		for _, r := range active {
			if !r.HasWorker {
				return false, err
			}
		}
		return len(active) == workers, err
	})
	time.Sleep(20 * time.Second) // until their commands are started, and the machine rests
	var one []time.Duration
	for b.Loop() {
		for range ticks {
			one = append(one, process(b, kanlog, "--home", home, "dispatch", "--json"))
		}
	}
	b.ReportMetric(ms(one), "ms-tick")
	b.ReportMetric(started.Seconds(), "s-to-start-all")
	b.ReportMetric(0, "ns/op")
}
