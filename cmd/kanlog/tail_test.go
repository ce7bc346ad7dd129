package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	aHeader  = "kanlog: run 12 of t_1 started 2026-11-29T14:00:00Z pid 77: sh\n"
	aTrailer = "kanlog: run 12 ended 2026-11-29T14:00:01.000000Z: exit 3\n"
)

func TestOutputTail(t *testing.T) {
	a := &app{boardDir: t.TempDir()}
	path := a.files().output("t_1", 12)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := a.outputTail("t_1", 12); got != nil || err != nil {
		t.Errorf("without a file: %v %v", got, err)
	}
	lines := strings.Repeat("0123456789abcde\n", 1000)
	wide := strings.Repeat("é", tailBytes)
	for _, tt := range []struct{ output, want string }{
		{"", ""},
		{aHeader + aTrailer, ""},
		{aHeader + "boom\n" + aTrailer, "boom\n"},
		{aHeader + "boom", "boom"},
		// Exactly as much as is shown; a byte more costs the first line.
		{aHeader + lines[:tailBytes] + aTrailer, lines[:tailBytes]},
		{aHeader + "x" + lines[:tailBytes] + aTrailer, lines[:tailBytes-16]},
		{aHeader + lines + aTrailer, lines[:tailBytes]},
		{aHeader + lines + "end", lines[:tailBytes-16] + "end"},
		// No line begins in time: from the middle, whole characters.
		{aHeader + "a\n" + strings.Repeat("x", tailBytes), strings.Repeat("x", tailBytes)},
		{aHeader + wide + "\n" + aTrailer, wide[:tailBytes-2] + "\n"},
		{aHeader + "a\xffb\n" + aTrailer, "a\ufffdb\n"},
	} {
		if err := os.WriteFile(path, []byte(tt.output), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := a.outputTail("t_1", 12)
		if err != nil || got == nil || *got != tt.want {
			t.Errorf("%.80q: got %.80q %v, want %.80q", tt.output, *got, err, tt.want)
		}
	}
	// Bytes that are no text become longer, and the bound still holds.
	if err := os.WriteFile(path, []byte(aHeader+strings.Repeat("\xff-", tailBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := a.outputTail("t_1", 12)
	if err != nil || len(*got) > tailBytes || len(*got) < tailBytes-utf8.UTFMax || !utf8.ValidString(*got) || !strings.HasSuffix(*got, "\ufffd-") {
		t.Errorf("%d bytes, %v", len(*got), err)
	}
	// Something else in its place keeps nobody waiting.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := a.outputTail("t_1", 12); got != nil || err == nil {
		t.Errorf("a directory: %v %v", got, err)
	}
}

// A tail begins where a line begins, however far that is; only where none begins
// is it cut within a line, and then between two characters.
func TestTailBeginsALine(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for _, tt := range []struct {
		output string
		n      int64
		want   string
	}{
		{"one\ntwo\nthree\n", 100, "one\ntwo\nthree\n"},
		{"one\ntwo\nthree\n", 10, "two\nthree\n"},
		{"one\ntwo\nthree\n", 9, "three\n"},
		{"one\ntwo\nthree", 7, "three"},
		{"one\ntwo\nthree\n", 0, ""},
		{"one\n" + long + "\ntwo\n", 150 << 10, "two\n"}, // the break lies further off than one read
		{"one\n" + long + "\ntwo", 150 << 10, "two"},
		{long + "\n", 5, "xxxx\n"}, // behind the only break nothing begins
		{long, 5, "xxxxx"},
		{"a日本語", 4, "語"}, {"a日本語", 5, "語"}, {"a日本語", 6, "本語"},
		{"", 5, ""},
	} {
		r := strings.NewReader(tt.output)
		if err := seekTail(r, tt.n); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(r)
		if string(got) != tt.want {
			t.Errorf("the last %d of %.20q (%d): %.20q (%d), want %.20q", tt.n, tt.output, len(tt.output), got, len(got), tt.want)
		}
	}
}

// Text shows the newest run that said something, unless it plainly completed.
func TestLastOutputAndCompletion(t *testing.T) {
	said := func(s string) *string { return &s }
	zero, seven := int64(0), int64(7)
	run := func(id uint64, tail *string, outcome any, code *int64, signal any) shownRunJSON {
		return shownRunJSON{&runJSON{ID: id, Outcome: outcome, ExitCode: code, Signal: signal}, tail}
	}
	for _, tt := range []struct {
		runs  []shownRunJSON
		last  uint64
		plain bool
	}{
		{nil, 0, false},
		{[]shownRunJSON{run(1, nil, "crashed", nil, nil), run(2, said("\n \n"), nil, nil, nil)}, 0, false},
		{[]shownRunJSON{run(1, said("a"), "crashed", &seven, nil), run(2, said(""), nil, nil, nil), run(3, nil, "spawn_failed", nil, nil)}, 1, false},
		{[]shownRunJSON{run(1, said("a"), "crashed", &seven, nil), run(2, said("b"), "completed", &zero, nil)}, 2, true},
		{[]shownRunJSON{run(1, said("a"), "completed", nil, nil)}, 1, true},
		{[]shownRunJSON{run(1, said("a"), "completed", &seven, nil)}, 1, false},
		{[]shownRunJSON{run(1, said("a"), "completed", nil, "SIGKILL")}, 1, false},
		{[]shownRunJSON{run(1, said("a"), nil, nil, nil)}, 1, false},
	} {
		s := showJSON{Runs: tt.runs}
		r := s.lastOutput()
		if r == nil {
			if tt.last != 0 {
				t.Errorf("%d runs: none, want run %d", len(tt.runs), tt.last)
			}
			continue
		}
		if r.ID != tt.last || r.plainlyCompleted() != tt.plain {
			t.Errorf("run %d, plain %v; want run %d, %v", r.ID, r.plainlyCompleted(), tt.last, tt.plain)
		}
	}
}
