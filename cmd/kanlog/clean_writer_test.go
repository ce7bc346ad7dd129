package main

import (
	"bytes"
	"strings"
	"testing"
)

// However a stream is cut into writes, what comes out is the same.
func TestCleanWriter(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"plain\n\tgrün 日本 🙂\n", "plain\n\tgrün 日本 🙂\n"},
		{"\x1b]0;title\a\x1b[2J", `\u001b]0;title\u0007\u001b[2J`},
		{"one\r\ntwo\rthree\r", "one\ntwo\\u000dthree\\u000d"},
		{"\r\r\n", "\\u000d\n"},
		{"\xe2\x82", `\xe2\x82`}, {"\xff\xf0\x9f\x99", `\xff\xf0\x9f\x99`},
		{"\u009b31m \u202e", `\u009b31m \u202e`},
	} {
		for size := 1; size <= len(c.in)+1; size++ {
			var out bytes.Buffer
			w := &cleanWriter{w: &out}
			for rest := c.in; rest != ""; {
				n := min(size, len(rest))
				if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
					t.Fatal(got, err)
				}
				rest = rest[n:]
			}
			if err := finish(w); err != nil || out.String() != c.want {
				t.Errorf("%q by %d: %q, want %q (%v)", c.in, size, out.String(), c.want, err)
			}
		}
	}
	if err := finish(&strings.Builder{}); err != nil {
		t.Error(err) // raw bytes: nothing was kept
	}
}
