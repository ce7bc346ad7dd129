package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, line, text string }{
		{"plain, grün, 日本語 🙂", "plain, grün, 日本語 🙂", "plain, grün, 日本語 🙂"},
		{"a\nb\tc", `a\u000ab\u0009c`, "a\nb\tc"},
		{"a\rb", `a\u000db`, `a\u000db`},
		{"\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`, `\u001b[31mred\u001b[0m`},
		{"bell\a nul\x00 del\x7f", `bell\u0007 nul\u0000 del\u007f`, `bell\u0007 nul\u0000 del\u007f`},
		{"\u009b31m", `\u009b31m`, `\u009b31m`}, // CSI in one character
		{"user\u202egnp.exe", `user\u202egnp.exe`, `user\u202egnp.exe`},
		{"\u200e\u200f\u061c\u2066x\u2069", `\u200e\u200f\u061c\u2066x\u2069`, `\u200e\u200f\u061c\u2066x\u2069`},
		{"a\u2028b\u2029c", `a\u2028b\u2029c`, `a\u2028b\u2029c`},
		{"bad \xff\xc3( end\xe2\x82", `bad \xff\xc3( end\xe2\x82`, `bad \xff\xc3( end\xe2\x82`},
		{"the real \ufffd stays", "the real \ufffd stays", "the real \ufffd stays"},
		{"", "", ""},
	} {
		if got := clean(c.in, false); got != c.line {
			t.Errorf("clean(%q, false) = %q, want %q", c.in, got, c.line)
		}
		if got := clean(c.in, true); got != c.text {
			t.Errorf("clean(%q, true) = %q, want %q", c.in, got, c.text)
		}
	}
}

func TestCell(t *testing.T) {
	if got := cell(""); got != "-" {
		t.Errorf("an empty cell is %q", got)
	}
	if got := cell("two\nlines"); got != `two\u000alines` {
		t.Errorf("a cell of two lines is %q", got)
	}
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59*time.Minute + 59*time.Second: "59m",
		time.Hour: "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d", 400 * 24 * time.Hour: "400d",
	} {
		if got := brief(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// Ages are never negative, and what is still to come says so.
func TestAgeAndDue(t *testing.T) {
	a := &app{now: 1_700_000_000_000_000}
	for d, want := range map[time.Duration][2]string{
		0: {"0s ago", "0s ago"}, -time.Second: {"1s ago", "1s ago"}, -3 * time.Minute: {"3m ago", "3m ago"}, -49 * time.Hour: {"2d ago", "2d ago"},
		5 * time.Minute: {"0s ago", "in 5m"}, 30 * time.Hour: {"0s ago", "in 30h"}, 500 * time.Millisecond: {"0s ago", "in 0s"},
	} {
		at := a.now.Add(d)
		if got := [2]string{a.age(at), a.due(at)}; got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for moment, want := range map[string]string{"2400-01-01T00:00:00Z": "in 137378d", "9999-12-31T00:00:00Z": "in 2913220d"} {
		at, err := time.Parse(time.RFC3339, moment)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.due(eventlog.TimeOf(at)); got != want {
			t.Errorf("%s: %q, want %q", moment, got, want)
		}
	}
	if a.age(0) != "-" || a.due(0) != "-" {
		t.Error("what never was has an age")
	}
}

func TestRawJSONIsKeptByteForByte(t *testing.T) {
	type row struct {
		A   string  `json:"a"`
		Raw rawJSON `json:"raw"`
		B   rawJSON `json:"b"`
	}
	for _, raw := range []string{
		`{"a": 1.0,  "b":[ ]}`, `1.0`, `12345678901234567890.50`, `"text"`, `"<&>\u003c \u2028"`, `null`, `[]`, ` {"a":1} `,
		"{\n  \"a\":\t1\n}", `{"a":1,"a":2}`, `"0e123125"`, `0e123125`, `""`,
		`{"x": 0e034044034112119110034058034}`,
	} {
		b, err := encodeJSON([]row{{"<x>", rawJSON(raw), nil}, {"y", rawJSON(raw), rawJSON(`7`)}}, "  ")
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if n := strings.Count(string(b), `"raw": `+raw+","); n != 2 {
			t.Errorf("%s stands %d times in\n%s", raw, n, b)
		}
		if !json.Valid(b) {
			t.Errorf("not JSON: %s", b)
		}
		if !bytes.Contains(b, []byte(`"<x>"`)) || !bytes.Contains(b, []byte(`"b": null`)) || !bytes.Contains(b, []byte(`"b": 7`)) {
			t.Errorf("what stands around it: %s", b)
		}
		// A stream has one value on each line, so there it loses its breaks.
		b, err = encodeJSON(row{"x", rawJSON(raw), nil}, "")
		if err != nil || bytes.Count(b, []byte("\n")) != 1 || !json.Valid(b) {
			t.Errorf("%s in one line: %v %s", raw, err, b)
		}
	}
}

// JSON on a terminal does nothing to it, and means what it meant.
func TestJSONIsHarmless(t *testing.T) {
	in := []string{"\x1b[2J \x7f \u009b31m \u202egnp \u2028 日本 🙂 é", "\ufffd"}
	b, err := encodeJSON(in, "")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	if err := json.Unmarshal(b, &out); err != nil || !slices.Equal(in, out) {
		t.Errorf("%q, %v", out, err)
	}
	if s := strings.TrimSuffix(string(b), "\n"); clean(s, false) != s || !strings.Contains(s, "日本 🙂 é") {
		t.Errorf("not harmless: %q", s)
	}
}

// Text and numbers that look like the mark of raw JSON are what they are.
func TestNothingElseIsTakenForRawJSON(t *testing.T) {
	in := map[string]any{
		"a": "0e123125", "b": `x" 0e123125 \`, "c": "\x000e123125", "0e123125": "0e", "d": rawJSON("0e5"),
		"number": json.RawMessage(`{"x":0e034044034112119110034058034}`), // would be ","pwn":"
		"n":      0.0, "small": 1e-9, "large": 1e21, "ten": 10, "minus": -0.5,
	}
	for _, indent := range []string{"  ", ""} {
		b, err := encodeJSON(in, indent)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(map[string]any{
			"a": in["a"], "b": in["b"], "c": in["c"], "0e123125": "0e", "d": json.RawMessage("0e5"), "number": in["number"],
			"n": 0.0, "small": 1e-9, "large": 1e21, "ten": 10, "minus": -0.5,
		})
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := json.Compact(&got, b); err != nil || got.String() != string(want) {
			t.Errorf("%v:\n%s\nwant\n%s", err, got.String(), want)
		}
	}
}
