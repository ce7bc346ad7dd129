package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

// Whatever the writing, what stands in one column begins at one place.
func TestTableColumnsLineUp(t *testing.T) {
	titles := []string{"plain", "日本語の題", "ｆｕｌｌ", "e\u0301 combining", "\U0001F468\u200d\U0001F469\u200d\U0001F467 joined", "🇩🇪🇫🇷", "👍🏽", "한국어", "ไทย", ""}
	var out bytes.Buffer
	a := &app{out: &out}
	err := a.table(func(w io.Writer) {
		fmt.Fprintln(w, "ID\tTITLE\tEND")
		for i, title := range titles {
			fmt.Fprintf(w, "%d\t%s\t|\n", i, cell(title))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(titles)+1 {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	column := uniseg.StringWidth(lines[0][:strings.Index(lines[0], "END")])
	for i, line := range lines[1:] {
		before, _, ok := strings.Cut(line, "|")
		if !ok || uniseg.StringWidth(before) != column || !strings.Contains(line, cell(titles[i])) {
			t.Errorf("%q does not line up with\n%q", line, lines[0])
		}
	}
}

// A cell that was not made by cell does no harm either, and no line ends in blanks.
func TestTableIsHarmless(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out}
	if err := a.table(func(w io.Writer) { fmt.Fprint(w, "ID\tSTATUS\na\x1b[31m\tdone\nb\r\u009b\ttodo\n") }); err != nil {
		t.Fatal(err)
	}
	if want := "ID             STATUS\na\\u001b[31m    done\nb\\u000d\\u009b  todo\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestTableFitsTheScreen(t *testing.T) {
	rows := [][]string{
		{"ID", "STATUS", "TITLE", "WHY"},
		{"t_12345678", "blocked", strings.Repeat("title ", 10), strings.Repeat("理由", 20)},
		{"t_12345679", "ready", "short", "-"},
	}
	whole := layOut(rows, screen{})
	for _, row := range rows {
		for _, text := range row {
			if !strings.Contains(whole, text) {
				t.Errorf("%q was cut without a screen", text)
			}
		}
	}
	for width := 1; width < 200; width++ {
		got := layOut(rows, screen{width: width})
		for _, line := range strings.Split(got, "\n") {
			// Ids and statuses stay whole, and the two texts have their least.
			if least := 10 + 2 + 7 + 2 + leastColumn + 2 + leastColumn; uniseg.StringWidth(line) > max(width, least) {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		if !strings.Contains(got, "t_12345678  blocked  title") || !strings.Contains(got, "t_12345679  ready    short") {
			t.Errorf("%d columns:\n%s", width, got)
		}
	}
	if layOut(rows, screen{width: 500}) != whole {
		t.Error("a screen that is wide enough changes something")
	}
}

// One long title does not push what stands behind it out of sight, neither on a
// terminal nor in a pipe; at the end of a line it is whole.
func TestTableCutsLongTitles(t *testing.T) {
	long := strings.Repeat("x", 300)
	rows := [][]string{{"ID", "TITLE", "WHY"}, {"a", long, "waits"}, {"b", "short", "waits"}}
	for _, s := range []screen{{}, {width: 500}} {
		got := layOut(rows, s)
		if want := "a   " + strings.Repeat("x", mostTitle-1) + "…  waits\n"; !strings.Contains(got, want) {
			t.Errorf("%+v: got\n%swant\n%s", s, got, want)
		}
		if want := "b   short" + strings.Repeat(" ", mostTitle-5) + "  waits\n"; !strings.HasSuffix(got, want) {
			t.Errorf("%+v: got\n%swant\n%s", s, got, want)
		}
	}
	if got := layOut([][]string{{"ID", "TITLE"}, {"a", long}}, screen{}); !strings.Contains(got, long) {
		t.Errorf("a title at the end was cut:\n%s", got)
	}
}

func TestTableColours(t *testing.T) {
	rows := [][]string{{"ID", "STATUS", "TITLE"}, {"a", "done", "done"}, {"b", "todo", "x"}}
	got := layOut(rows, screen{colour: true})
	want := "\x1b[1mID\x1b[0m  \x1b[1mSTATUS\x1b[0m  \x1b[1mTITLE\x1b[0m\na   \x1b[32mdone\x1b[0m    done\nb   todo    x\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if plain := layOut(rows, screen{}); strings.Contains(plain, "\x1b") {
		t.Errorf("colour without a screen: %q", plain)
	}
}

func TestCutText(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"abcdef", 6, "abcdef"}, {"abcdefg", 6, "abcde…"}, {"ab cdefg", 4, "ab…"},
		{"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"👨‍👩‍👧x", 2, "…"}, {"👨‍👩‍👧xyz", 3, "👨‍👩‍👧…"},
		{"", 3, ""}, {"abc", 0, "…"},
	} {
		if got := cutText(c.in, c.width); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.in, c.width, got, c.want)
		}
	}
}
