package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestNextLook(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	tests := []struct {
		name       string
		grown      int64
		span, last time.Duration
		limit      int64
		want       time.Duration
	}{
		{"the first look", 0, time.Microsecond, 0, 64 * mib, capPauseMin},
		{"quiet: twice as long", 0, 100 * time.Millisecond, 100 * time.Millisecond, 64 * mib, 200 * time.Millisecond},
		{"quiet for long", 0, time.Second, time.Second, 64 * mib, 2 * time.Second},
		{"quiet for longer", 0, 8 * time.Second, 8 * time.Second, 64 * mib, capPauseRoomy},
		{"a few lines", 1000, time.Second, time.Second, 64 * mib, 2 * time.Second},
		{"16 MiB in the last of eight seconds", 16 * mib, 8 * time.Second, 8 * time.Second, 64 * mib, 500 * time.Millisecond},
		{"16 MiB a second", 16 * mib, time.Second, time.Second, 64 * mib, 500 * time.Millisecond},
		{"a gigabyte a second", 1024 * mib, time.Second, time.Second, 64 * mib, capPauseMin},
		{"emptied", -mib, time.Second, time.Second, 64 * mib, 2 * time.Second},
		{"slept for a year", 1, 365 * 24 * time.Hour, time.Second, MaxOutputLimit, 2 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := nextLook(tt.grown, tt.span, tt.last, tt.limit); got != tt.want {
				t.Errorf("next look in %s, want %s", got, tt.want)
			}
		})
	}
}

func TestLongestPause(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for room, want := range map[int64]time.Duration{
		0: time.Second, 4 * gib: time.Second, 16 * gib: 2 * time.Second, 40 * gib: 5 * time.Second, 64 * gib: 8 * time.Second, 1 << 62: 8 * time.Second,
	} {
		if got := longestPause(room); got != want {
			t.Errorf("with room for %d bytes a quiet worker is looked at every %s, want %s", room, got, want)
		}
	}
	f, _ := written(t)
	if room := freeBytes(f); room <= 0 {
		t.Errorf("no room on the file system of a file that was just made: %d", room)
	}
}

// written is an output to which somebody appends, in lines of their own number.
func written(t *testing.T) (f *os.File, write func(size int)) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "1.log"), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	line := 0
	return f, func(size int) {
		var b bytes.Buffer
		for b.Len() < size {
			line++
			fmt.Fprintf(&b, "line %07d\n", line)
		}
		if _, err := f.Write(b.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
}

// What is kept stays under the limit however often it is written, and head, tail
// and size are those of the whole.
func TestOutputCapKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	f, write := written(t)
	c := outputCap{f: f, limit: MinOutputLimit, at: time.Now()}
	cuts, was := 0, int64(0)
	for range 40 {
		write(200 << 10)
		c.look(time.Now())
		if c.hole != was {
			cuts, was = cuts+1, c.hole
		}
	}
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(text)) != st.Size() || len(text) < 40*200<<10 {
		t.Errorf("%d bytes, %d in all", len(text), st.Size())
	}
	first := bytes.IndexByte(text, 0)
	last := bytes.LastIndexByte(text, 0)
	if first < MinOutputLimit/8 || len(text)-last < MinOutputLimit/2 {
		t.Errorf("%d bytes of the head and %d of the tail were kept", first, len(text)-last)
	}
	if kept := first + len(text) - last - 1; kept > MinOutputLimit {
		t.Errorf("%d bytes are kept of at most %d", kept, MinOutputLimit)
	}
	if cuts > 25 {
		t.Errorf("%d cuts in 40 looks", cuts)
	}
	hole, end, err := NextHole(f, 0, st.Size())
	if err != nil || hole != int64(first) || end != int64(last)+1 {
		t.Errorf("the hole is from %d to %d, want %d to %d: %v", hole, end, first, last+1, err)
	}
	if hole, _, err := NextHole(f, end, st.Size()); hole != st.Size() || err != nil {
		t.Errorf("another hole at %d: %v", hole, err)
	}
}

// A worker may empty its own output, and write anew.
func TestOutputCapOfAnEmptiedFile(t *testing.T) {
	t.Parallel()
	f, write := written(t)
	c := outputCap{f: f, limit: MinOutputLimit, at: time.Now()}
	write(3 << 20)
	c.look(time.Now())
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	write(1000)
	c.look(time.Now())
	write(3 << 20)
	c.look(time.Now())
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if zeroes := bytes.Count(text, []byte{0}); zeroes < 2<<20 || text[0] == 0 {
		t.Errorf("%d zeroes in %d bytes", zeroes, len(text))
	}
}

// Where a file system knows no holes the middle is cut out, and a line says so.
func TestOutputCapWithoutHoles(t *testing.T) {
	t.Parallel()
	f, write := written(t)
	c := outputCap{f: f, limit: MinOutputLimit}
	for range 3 {
		write(3 << 20)
		st, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		c.shorten(st.Size())
	}
	write(1)
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if len(text) > MinOutputLimit || lines[0] != "line 0000001" || lines[len(lines)-2] < "line 0700000" {
		t.Errorf("%d bytes, from %q to %q", len(text), lines[0], lines[len(lines)-2])
	}
	var said []string
	for _, l := range lines {
		if strings.HasPrefix(l, "kanlog: ") {
			said = append(said, l)
		}
	}
	if len(said) != 1 || !strings.HasSuffix(said[0], " bytes of output dropped here (output_limit)") {
		t.Errorf("it says %q", said)
	}
}
