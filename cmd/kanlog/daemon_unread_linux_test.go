package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
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

// unreadBoard is a board in a home of its own, for a daemon and those who read it.
type unreadBoard struct {
	t     *testing.T
	home  string
	store *projection.Store
	cards int
}

func newUnreadBoard(t *testing.T) *unreadBoard {
	u := &unreadBoard{t: t, home: t.TempDir()}
	settings := "max_in_progress = 4\n[profiles.w]\ncommand = [\"true\"]\non_clean_exit = \"complete\"\n"
	if err := os.WriteFile(filepath.Join(u.home, "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	u.must("init")
	u.store = projection.Open(eventlog.BoardDir(u.home, "default"), eventlog.Options{LockTimeout: patience})
	return u
}

func (u *unreadBoard) kanlog(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(binDir, "kanlog"), args...)
	cmd.Env = append(os.Environ(), "KANLOG_HOME="+u.home)
	return cmd
}

func (u *unreadBoard) must(args ...string) {
	u.t.Helper()
	if out, err := u.kanlog(args...).CombinedOutput(); err != nil {
		u.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// daemon starts one and waits until it has begun to look.
func (u *unreadBoard) daemon(stdout, stderr io.Writer) (cmd *exec.Cmd, ended chan error) {
	cmd = u.kanlog("daemon", "--json")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = cmd.Process.Kill() })
	u.until("no daemon has begun", func() bool {
		out, err := u.kanlog("stats", "--json").Output()
		var board struct {
			Daemon *struct {
				LookedAt *string `json:"looked_at"`
			}
		}
		return err == nil && json.Unmarshal(out, &board) == nil && board.Daemon != nil && board.Daemon.LookedAt != nil
	})
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return cmd, ended
}

func (u *unreadBoard) until(not string, done func() bool) {
	u.t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(end) {
			u.t.Fatal(not)
		}
	}
}

// work makes so many cards, of which each says much, and waits until all are done.
func (u *unreadBoard) work(cards int) {
	u.t.Helper()
	for range cards {
		u.cards++
		u.must("create", fmt.Sprint("card ", u.cards), "--assignee", "w", "--body", strings.Repeat("x", 8<<10))
	}
	u.until("the daemon waits for who reads what it prints", func() bool {
		done := 0
		err := u.store.EachCard(func(_ projection.View, c *projection.Task) error {
			if c.Status == projection.Done {
				done++
			}
			return nil
		})
		if err != nil {
			u.t.Fatal(err)
		}
		return done == u.cards
	})
}

func (u *unreadBoard) ends(ended chan error, want int) {
	u.t.Helper()
	select {
	case err := <-ended:
		code := 0
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			u.t.Fatal(err)
		}
		if code != want {
			u.t.Errorf("it ended with %d, want %d", code, want)
		}
	case <-time.After(patience):
		u.t.Error("it does not end")
	}
}

// narrowPipe is a pipe that is full after 4 KiB.
func narrowPipe(t *testing.T) (r, w *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Fatal(err)
	}
	return r, w
}

// The output of a daemon goes into a pager that stands still, or to a log collector that
// hangs. The cards are worked on all the same; who reads again reads everything, once and
// in order; and nobody has to read for the daemon to end.
func TestDaemonThatNobodyReads(t *testing.T) {
	const cards = 30
	u := newUnreadBoard(t)
	r, w := narrowPipe(t)
	var said bytes.Buffer
	daemon, ended := u.daemon(w, &said)
	w.Close()
	u.work(cards)

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

	u.work(cards)
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if u.ends(ended, 0); said.Len() > 0 {
		t.Error(said.String())
	}
}

// A reader that goes away (head, a pager that is left) is told of once, and ends nothing;
// a terminal that goes away ends the daemon as Ctrl-C does.
func TestDaemonWhoseReaderGoesAway(t *testing.T) {
	u := newUnreadBoard(t)
	r, w := narrowPipe(t)
	var said bytes.Buffer
	daemon, ended := u.daemon(w, &said)
	w.Close()
	r.Close()
	u.work(3)
	u.work(3)
	if err := daemon.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	u.ends(ended, 0)
	if words := said.String(); strings.Count(words, "\n") != 1 || !strings.Contains(words, "broken pipe") {
		t.Errorf("it said %q, want one line of a broken pipe", words)
	}
}

// A daemon that cannot go on ends, whoever does not read why: who starts it anew waits
// for that.
func TestDaemonEndsThoughNobodyReadsWhy(t *testing.T) {
	u := newUnreadBoard(t)
	_, w := narrowPipe(t)
	if _, err := w.Write(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	_, ended := u.daemon(io.Discard, w)
	if err := os.Rename(eventlog.BoardDir(u.home, "default"), eventlog.BoardDir(u.home, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	u.ends(ended, 3)
}
