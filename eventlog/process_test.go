package eventlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestManyProcessesLoseNothing(t *testing.T) {
	f := newFile(t)
	const processes, each = 50, 20
	var cmds []*exec.Cmd
	for i := range processes {
		cmd := child("append", f.dir, fmt.Sprint("p", i), strconv.Itoa(each))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	count := map[string]int{}
	for _, c := range mustRead(t, f) {
		count[c.Actor]++
	}
	for i := range processes {
		if n := count[fmt.Sprint("operator:p", i)]; n != each {
			t.Errorf("process %d: %d commits, want %d", i, n, each)
		}
	}
}

func TestKilledAppender(t *testing.T) {
	f := newFile(t)
	for round := range 12 {
		cmd := child("loop", f.dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		last := ""
		for range 1 + round*3 {
			if !lines.Scan() {
				t.Fatal("the child ended by itself")
			}
			last = lines.Text()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		// What it acknowledged before it died counts too; a line that was cut
		// is no acknowledgement.
		for lines.Scan() {
			if _, err := strconv.Atoi(lines.Text()); err == nil {
				last = lines.Text()
			}
		}
		_ = cmd.Wait()
		acked, err := strconv.ParseUint(last, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all := mustRead(t, f)
		if n := uint64(len(all)); n < acked || n > acked+1 {
			t.Fatalf("%d commits after a kill; %d were acknowledged, one more may be in flight", n, acked)
		}
		if c := mustAppend(t, f, note("after", 1)); c.Number != uint64(len(all))+1 {
			t.Fatalf("%v does not follow", c)
		}
	}
}

func TestCreationCutAnywhere(t *testing.T) {
	for n := 1; ; n++ {
		home := filepath.Join(t.TempDir(), "deep", "home")
		killed := runKilled(t, child("create", home, strconv.Itoa(n)))
		f := Open(BoardDir(home, "default"), Options{})
		_, before := f.Head()
		created, err := Create(home, "default", [16]byte{42}, 9, Options{})
		if err != nil {
			t.Fatalf("cut at step %d: %v", n, err)
		}
		if whole := before == nil; whole == created {
			t.Errorf("cut at step %d: created %v, but the board was whole before: %v", n, created, before)
		}
		if before != nil && !errors.Is(before, ErrNoBoard) {
			t.Errorf("cut at step %d: half a board gives %v, want ErrNoBoard", n, before)
		}
		mustAppend(t, f, note("ann", 1))
		if created, err := Create(home, "default", [16]byte{43}, 9, Options{}); err != nil || created {
			t.Errorf("cut at step %d: creating again: %v %v", n, created, err)
		}
		names, err := os.ReadDir(f.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range names {
			if strings.HasSuffix(e.Name(), ".new") {
				t.Errorf("cut at step %d: %s is left over", n, e.Name())
			}
			if fi, err := e.Info(); err != nil || fi.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: mode %v, %v", e.Name(), fi.Mode(), err)
			}
		}
		if !killed {
			if n < 10 {
				t.Errorf("a creation has only %d steps", n-1)
			}
			return
		}
	}
}

func TestConcurrentCreate(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	var wg sync.WaitGroup
	made := make(chan bool, 10)
	for i := range 10 {
		wg.Go(func() {
			created, err := Create(home, "default", [16]byte{byte(i)}, 1, Options{})
			if err != nil {
				t.Error(err)
			}
			made <- created
		})
	}
	wg.Wait()
	close(made)
	n := 0
	for created := range made {
		if created {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of 10 say that they made the board", n)
	}
}

func TestCheckSlug(t *testing.T) {
	for _, s := range []string{"a", "0", "a-b_c", strings.Repeat("x", 64)} {
		if err := CheckSlug(s); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []string{"", "-a", "_a", "A", "a/b", "..", "a b", "ä", strings.Repeat("x", 65)} {
		if CheckSlug(s) == nil {
			t.Errorf("%q was accepted", s)
		}
		if _, err := Create(t.TempDir(), s, testUUID, 1, Options{}); err == nil {
			t.Errorf("%q was created", s)
		}
	}
}

func TestRebuild(t *testing.T) {
	f := newFile(t)
	if err := f.Update(func(tx *Tx) error {
		tx.SetTablesFormat(3)
		for i := range rebuildBatch*2 + 10 {
			c, err := tx.Append(uint64(i), note(fmt.Sprint("a", i%5), 1+i%2))
			if err != nil {
				return err
			}
			if err := foldAuthors(tx, c); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := dump(t, f)
	t.Run("same tables", func(t *testing.T) {
		if err := f.Update(func(tx *Tx) error {
			tx.Put("authors", []byte("a1"), []byte("wrong"))
			tx.Put("junk", []byte("k"), []byte("v"))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := f.Rebuild(foldAuthors); err != nil {
			t.Fatal(err)
		}
		if dump(t, f) != want {
			t.Error("the rebuilt store differs")
		}
	})
	t.Run("error of fold leaves the old store", func(t *testing.T) {
		before := mustBytes(t, f.store())
		mine := errors.New("mine")
		if err := f.Rebuild(func(tx *Tx, c Commit) error {
			if c.Number == rebuildBatch+5 {
				return mine
			}
			return nil
		}); !errors.Is(err, mine) {
			t.Errorf("rebuild: %v", err)
		}
		if !bytes.Equal(mustBytes(t, f.store()), before) {
			t.Error("the store was changed")
		}
	})
	t.Run("fold may not append", func(t *testing.T) {
		if err := f.Rebuild(func(tx *Tx, c Commit) error {
			_, err := tx.Append(c.Number, note("x", 1))
			return err
		}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("killed anywhere", func(t *testing.T) {
		for n := 1; ; n++ {
			killed := runKilled(t, child("rebuild", f.dir, strconv.Itoa(n)))
			if dump(t, f) != want {
				t.Errorf("killed at step %d: the store differs", n)
			}
			if !killed {
				if n < 6 {
					t.Errorf("a rebuild has only %d steps", n-1)
				}
				break
			}
		}
		if _, err := os.Lstat(filepath.Join(f.dir, asideName)); err == nil {
			t.Error("the aside file is left over")
		}
	})
}

// The file grows from nothing to 60 MiB while others read. Nobody may wait past
// the lock timeout, and no reader may see anything but the log at some moment.
func TestGrowthWhileReading(t *testing.T) {
	f := newFile(t)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			seen := uint64(0)
			for {
				if err := f.View(func(tx *Tx) error {
					h, err := tx.Head()
					if err != nil {
						return err
					}
					rows := uint64(0)
					tx.Scan("rows", nil, func(k, v []byte) bool { rows++; return true })
					if rows != h.Commit || rows < seen {
						return fmt.Errorf("%d rows beside %d commits, %d before", rows, h.Commit, seen)
					}
					seen = rows
					return nil
				}); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	bulk := bytes.Repeat([]byte("x"), 1<<20)
	for i := range uint64(60) {
		if err := f.Update(func(tx *Tx) error {
			tx.Put("rows", number(i), bulk)
			_, err := tx.Append(i, note("ann", 1))
			return err
		}); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	wg.Wait()
	if fi, err := os.Stat(f.store()); err != nil || fi.Size() < 60<<20 {
		t.Errorf("the store has %d bytes, %v", fi.Size(), err)
	}
	if n := len(mustRead(t, f)); n != 60 {
		t.Errorf("%d commits", n)
	}
}
