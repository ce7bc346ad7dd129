package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kanlog/eventlog"
	"kanlog/projection"
)

// The output of a daemon goes into a pager that stands still, or to a log collector that
// hangs. The cards are worked on all the same; who reads again reads everything, once and
// in order; and nobody has to read for the daemon to end.
func TestDaemonThatNobodyReads(t *testing.T) {
	home := t.TempDir()
	settings := "max_in_progress = 4\n[profiles.w]\ncommand = [\"true\"]\non_clean_exit = \"complete\"\n"
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	kanlog := func(args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(binDir, "kanlog"), args...)
		cmd.Env = append(os.Environ(), "KANLOG_HOME="+home)
		return cmd
	}
	must := func(args ...string) {
		t.Helper()
		if out, err := kanlog(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	const cards = 30
	create := func() {
		for n := range cards {
			must("create", fmt.Sprint("card ", n), "--assignee", "w", "--body", strings.Repeat("x", 8<<10))
		}
	}
	must("init")
	store := projection.Open(eventlog.BoardDir(home, "default"), eventlog.Options{LockTimeout: patience})
	allDone := func(want int) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			done := 0
			err := store.EachCard(func(_ projection.View, c *projection.Task) error {
				if c.Status == projection.Done {
					done++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if done == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d of %d cards are done: the daemon waits for who reads what it prints", done, want)
			}
		}
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Fatal(err)
	}
	daemon := kanlog("daemon", "--json")
	var said bytes.Buffer
	daemon.Stdout, daemon.Stderr = w, &said
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	defer daemon.Process.Kill()
	w.Close()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if out, err := kanlog("stats").CombinedOutput(); err == nil && !bytes.Contains(out, []byte("daemon: none")) {
			break // it has begun to look
		} else if time.Now().After(end) {
			t.Fatalf("no daemon: %v\n%s", err, out)
		}
	}
	create()
	allDone(cards)

	// Somebody reads again. What is printed while he does is as good as the rest.
	dec := json.NewDecoder(r)
	var last uint64
	kinds := map[string]int{}
	for kinds["completed"] < cards {
		var e struct {
			Seq  uint64
			Kind string
		}
		if err := dec.Decode(&e); err != nil {
			t.Fatalf("behind event %d: %v, having read %v", last, err, kinds)
		}
		if e.Seq <= last {
			t.Fatalf("event %d is printed behind %d", e.Seq, last)
		}
		last = e.Seq
		kinds[e.Kind]++
	}
	for _, kind := range []string{"created", "claimed", "spawned", "completed"} {
		if kinds[kind] != cards {
			t.Errorf("%d events are %q, want %d: %v", kinds[kind], kind, cards, kinds)
		}
	}

	create()
	allDone(2 * cards)
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	select {
	case err := <-ended:
		if err != nil || said.Len() > 0 {
			t.Errorf("%v: %s", err, said.String())
		}
	case <-time.After(patience):
		t.Error("it does not end while nobody reads")
	}
	_, _ = io.Copy(io.Discard, io.MultiReader(dec.Buffered(), r))
}
