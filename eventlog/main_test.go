package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Tests that need a process of its own start this binary again, with the name of
// a part in childEnv and its arguments behind a "--".
const childEnv = "KANLOG_EVENTLOG_CHILD"

var childParts = map[string]func(args []string) error{
	"append":  childAppend,
	"loop":    childLoop,
	"hold":    childHold,
	"create":  childCreate,
	"rebuild": childRebuild,
	"fill":    childFill,
}

func TestMain(m *testing.M) {
	if part := os.Getenv(childEnv); part != "" {
		args := os.Args[1:]
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if err := childParts[part](args); err != nil {
			fmt.Fprintln(os.Stderr, part+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(part string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"--"}, args...)...)
	cmd.Env = append(os.Environ(), childEnv+"="+part)
	cmd.Stderr = os.Stderr
	return cmd
}

var testUUID = [16]byte{1, 2, 3, 15: 16}

// impatient is for tests in which a lock is never free.
var impatient = Options{LockTimeout: 50 * time.Millisecond}

func newFile(t testing.TB) *File {
	t.Helper()
	home := t.TempDir()
	if created, err := Create(home, "default", testUUID, 1_700_000_000_000_000, Options{}); err != nil || !created {
		t.Fatalf("create: %v %v", created, err)
	}
	return Open(BoardDir(home, "default"), Options{})
}

func note(author string, n int) Commit {
	c := Commit{At: 1_700_000_000_000_000, Actor: "operator:" + author}
	for i := range n {
		c.Events = append(c.Events, Event{Task: fmt.Sprintf("t_%08x", i), Data: &Commented{Author: author, Text: fmt.Sprint("note ", i)}})
	}
	return c
}

// appendNext appends behind whatever is there, deciding again on a conflict.
func appendNext(l Log, c Commit) (Commit, error) {
	for {
		h, err := l.Head()
		if err != nil {
			return Commit{}, err
		}
		done, err := l.Append(h.Commit, c)
		if !errors.Is(err, ErrConflict) {
			return done, err
		}
	}
}

func mustAppend(t testing.TB, l Log, c Commit) Commit {
	t.Helper()
	c, err := appendNext(l, c)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return c
}

func readAll(l Log) (all []Commit, err error) {
	err = l.Read(1, func(c Commit) error {
		all = append(all, c)
		return nil
	})
	return all, err
}

func mustRead(t testing.TB, l Log) []Commit {
	t.Helper()
	all, err := readAll(l)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return all
}

func mustBytes(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustWrite(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func refusedAs(t *testing.T, err error, kind RefusedKind) {
	t.Helper()
	var r *RefusedError
	if !errors.As(err, &r) || r.Kind != kind {
		t.Errorf("%v; want a refusal of kind %s", err, kind)
	}
}

// childAppend DIR NAME N
func childAppend(args []string) error {
	f := Open(args[0], Options{})
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	for range n {
		if err := f.Update(func(tx *Tx) error {
			h, err := tx.Head()
			if err != nil {
				return err
			}
			tx.Put("count", []byte(args[1]), number(h.Commit))
			_, err = tx.Append(h.Commit, note(args[1], 2))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// childLoop DIR appends for ever and prints each number once it is acknowledged.
func childLoop(args []string) error {
	f := Open(args[0], Options{})
	for {
		c, err := appendNext(f, note("loop", 3))
		if err != nil {
			return err
		}
		fmt.Println(c.Number)
	}
}

// childHold PATH holds a lock until its standard input ends.
func childHold(args []string) error {
	l, err := TryLock(args[0])
	if err != nil {
		return err
	}
	defer l.Unlock()
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// dieAt kills this process at the n-th step, counted from 1.
func dieAt(n string) error {
	left, err := strconv.Atoi(n)
	atStep = func(string) {
		if left--; left == 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	return err
}

// childCreate HOME N
func childCreate(args []string) error {
	if err := dieAt(args[1]); err != nil {
		return err
	}
	_, err := Create(args[0], "default", testUUID, 7, Options{})
	return err
}

// childRebuild DIR N
func childRebuild(args []string) error {
	if err := dieAt(args[1]); err != nil {
		return err
	}
	return Open(args[0], Options{}).Rebuild(foldAuthors)
}

// foldAuthors counts the comments of each author in a table.
func foldAuthors(tx *Tx, c Commit) error {
	for i, e := range c.Events {
		author := []byte(e.Data.(*Commented).Author)
		n := uint64(0)
		if v := tx.Get("authors", author); v != nil {
			n = uint64(v[7]) | uint64(v[6])<<8
		}
		tx.Put("authors", author, number(n+1))
		tx.Put("events", number(c.Seq+uint64(i)), author)
	}
	return nil
}

// runKilled runs a child that may kill itself; it reports whether it did.
func runKilled(t *testing.T, cmd *exec.Cmd) bool {
	t.Helper()
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return false
}

// dump is a store's content, to compare two.
func dump(t testing.TB, f *File) string {
	t.Helper()
	var b strings.Builder
	if err := f.View(func(tx *Tx) error {
		h, err := tx.Head()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x %d %d %+v\n", tx.UUID(), tx.CreatedAt(), tx.TablesFormat(), h)
		for _, name := range tx.Tables() {
			tx.Scan(name, nil, func(k, v []byte) bool {
				fmt.Fprintf(&b, "%s %x %x\n", name, k, v)
				return true
			})
		}
		return nil
	}); err != nil {
		t.Fatalf("view: %v", err)
	}
	for _, c := range mustRead(t, f) {
		fmt.Fprintf(&b, "%v %x\n", c, c.Hash)
	}
	return b.String()
}

func unchanged(t *testing.T, path string, want []byte) {
	t.Helper()
	if !bytes.Equal(mustBytes(t, path), want) {
		t.Errorf("%s was changed", filepath.Base(path))
	}
}
