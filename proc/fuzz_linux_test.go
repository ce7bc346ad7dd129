package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What the kernel, another program or a worker wrote, read by us. Wrong guesses
// here end strangers or start a second worker, so each parser is asked for more
// than not to panic.

// A name is what a process calls itself: it may look like the fields behind it.
// Two names on the same line of fields are the same process.
func FuzzStatName(f *testing.F) {
	f.Add("sh", "S 10 11 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 4567 1000 20")
	f.Add("x) R 1 2 3) (", "Z 10 11 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 18446744073709551615 1000 20")
	f.Add(")", "S 1 1 1 0 -1 99999999999999999999 1 2 3 4 5 6 7 8 20 0 3 0 7 0 0")
	f.Fuzz(func(t *testing.T, name, fields string) {
		if strings.Contains(fields, ")") {
			t.Skip() // the kernel writes numbers and one letter there
		}
		plain, err1 := parseStat([]byte("42 (sh) " + fields + "\n"))
		odd, err2 := parseStat([]byte("42 (" + name + ") " + fields + "\n"))
		if plain != odd || (err1 == nil) != (err2 == nil) {
			t.Errorf("%+v %v with a plain name, %+v %v with %q", plain, err1, odd, err2, name)
		}
		if err1 != nil {
			return
		}
		// The start tick tells two processes with one number apart. Cut at any
		// byte it must be an error, never a shorter number.
		line := "42 (sh) " + fields + "\n"
		for n := range len(line) {
			if s, err := parseStat([]byte(line[:n])); err == nil && !strings.HasSuffix(line[:n], "\n") {
				t.Fatalf("cut at %d: %+v", n, s)
			}
		}
	})
}

// The token is the first that the environment names, whole: a part of one, or a
// longer name, would make a stranger a member of a run.
func FuzzTokenOf(f *testing.F) {
	f.Add([]byte("PATH=/bin\x00KANLOG_TOKEN=board/12\x00KANLOG_TOKEN=board/13\x00"))
	f.Add([]byte("XKANLOG_TOKEN=a\x00KANLOG_TOKEN\x00KANLOG_TOKENS=b\x00"))
	f.Fuzz(func(t *testing.T, env []byte) {
		want := ""
		for _, v := range strings.Split(string(env), "\x00") {
			if name, value, ok := strings.Cut(v, "="); ok && name == TokenVariable {
				want = value
				break
			}
		}
		if got := tokenOf(env); got != want {
			t.Errorf("%q: %q, want %q", env, got, want)
		}
		// What one supervisor hands down names its own run and no other.
		clean := CleanEnv(strings.Split(string(env), "\x00"))
		if got := tokenOf([]byte(strings.Join(clean, "\x00"))); got != "" {
			t.Errorf("%q: after cleaning it still names %q", env, got)
		}
	})
}

// A fingerprint that says nothing must not compare like one that does.
func FuzzFingerprint(f *testing.F) {
	for _, s := range []string{"boot:1|300", Unverified, "", "|", ":|", "a:b|c|d", "a:b:c|d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := parseFingerprint(text)
		switch {
		case !p.known && p != (fingerprint{}):
			t.Errorf("%q is not known, and yet %+v", text, p)
		case p.known && (p.boot == "" || p.first == "" || p.start == ""):
			t.Errorf("%q is known with a part missing: %+v", text, p)
		case p.known && p.boot+":"+p.first+"|"+p.start != text:
			t.Errorf("%q became %+v", text, p)
		}
	})
}

// A lock counts only if the kernel's words for it stand in their places.
func FuzzListsShared(f *testing.F) {
	f.Add([]byte("pos:\t0\nflags:\t02100002\nmnt_id:\t29\nlock:\t1: FLOCK  ADVISORY  READ 359 00:13:11691 0 EOF\n"))
	f.Add([]byte("lock:\t1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF\nlock:\t2: POSIX  ADVISORY  READ 1 00:13:1 0 EOF\n"))
	f.Add([]byte("lock:\t1: FLOCK ADVISORY"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := listsShared(text)
		if got && !(bytes.Contains(text, []byte("lock:")) && bytes.Contains(text, []byte("FLOCK")) && bytes.Contains(text, []byte("READ"))) {
			t.Errorf("%q lists no shared lock", text)
		}
		const lock = "lock:\t1: FLOCK  ADVISORY  READ 359 00:13:11691 0 EOF\n"
		whole := append(bytes.Clone(text), '\n')
		if !listsShared(append(whole, lock...)) || !listsShared(append([]byte(lock), text...)) {
			t.Errorf("beside %q a lock is not found", text)
		}
	})
}

// Counts of the out-of-memory killer: the same file says the same, and a count is
// believed only where the kernel would write it.
func FuzzOOM(f *testing.F) {
	f.Add("0::/a/b\n", "low 0\noom 1\noom_kill 3\n", "oom_kill 9\n")
	f.Add("5:cpu,memory:/g\n0::/\n", "oom_kill_disable 0\nunder_oom 0\noom_kill 18446744073709551616\n", "")
	f.Add("0::/../../etc\n:::\n", "oom_kill -1\n", "oom_kill\t7\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, groups, events, vmstat string) {
		write := func(name, text string) {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("proc/self/cgroup", groups)
		write("proc/vmstat", vmstat)
		write("sys/fs/cgroup/a/b/memory.events", events)
		write("sys/fs/cgroup/memory/g/memory.oom_control", events)
		got := readOOM(dir)
		if again := readOOM(dir); again != got || got.grewTo(again) != "" {
			t.Errorf("%+v, then %+v without a change", got, again)
		}
		switch text := map[string]string{OOMInGroup: events, OOMOnHost: vmstat}[got.where]; {
		case got.where == "":
			if got != (oomCount{}) {
				t.Errorf("nothing is known, and yet %+v", got)
			}
		case !strings.Contains(text, strings.TrimLeft(strconv.FormatUint(got.n, 10), "0")):
			t.Errorf("%+v does not stand in %q", got, text)
		case !strings.HasPrefix(got.file, dir):
			t.Errorf("read outside of the tree: %s", got.file)
		}
	})
}

// Whatever a command printed comes back whole between our two lines, also if it
// looks like them; and without them nothing is taken away.
func FuzzSaid(f *testing.F) {
	tail := trailer(Record{Run: 12, Cause: CauseSignaled, Signal: "SIGKILL", Ended: "2026-11-29T14:00:00.000123Z"})
	for _, s := range []string{"", "boom\n", "boom", tail, "x\n" + tail, headerBegin(12) + "\n", strings.Repeat("y", maxOwnLine) + "\n" + tail} {
		f.Add([]byte(s), uint64(12), "t_1", int64(0))
		f.Add([]byte(s), uint64(1), "\x1b\n", int64(7))
	}
	f.Fuzz(func(t *testing.T, said []byte, run uint64, task string, cut int64) {
		read := func(text []byte, size int64) []byte {
			s := Said(bytes.NewReader(text), size, run)
			b := make([]byte, s.Size())
			n, _ := s.ReadAt(b, 0)
			return b[:n]
		}
		head := header(task, run, time.Unix(1_800_000_000, 0), 77, []string{task, string(said)})
		if strings.Count(head, "\n") != 1 || len(head) > maxOwnLine {
			t.Fatalf("the first line is %d bytes with %d ends", len(head), strings.Count(head, "\n"))
		}
		end := trailer(Record{Run: run, Cause: CauseStartFailed, Error: string(said), Ended: "2026-11-29T14:00:00.000123Z"})
		if strings.Count(end, "\n") != 1 || len(end) > maxOwnLine {
			t.Fatalf("the last line is %d bytes with %d ends", len(end), strings.Count(end, "\n"))
		}
		// The supervisor ends the worker's last line before it writes its own.
		whole := said
		if len(said) > 0 && said[len(said)-1] != '\n' {
			whole = append(bytes.Clone(said), '\n')
		}
		text := fmt.Appendf(nil, "%s%s%s", head, whole, end)
		if got := read(text, int64(len(text))); !bytes.Equal(got, whole) {
			t.Errorf("%q\ncame back as\n%q", whole, got)
		}
		// The file grows while it is read, or is cut off at its size: a part of
		// what stands there, never more, never a panic.
		size := max(0, min(cut, int64(len(text))))
		if got := read(text, size); !bytes.Contains(text[:size], got) {
			t.Errorf("of %d bytes: %q", size, got)
		}
		if got := read(text[:size], int64(len(text))); !bytes.Contains(text, got) {
			t.Errorf("%d of %d bytes are left: %q", size, len(text), got)
		}
	})
}
