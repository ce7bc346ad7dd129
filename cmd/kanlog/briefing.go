package main

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"kanlog/eventlog"
)

// briefing is the text for a worker while it is written. Whatever others wrote
// stands behind "> ", line by line: a heading, a fence or a whole forged section in
// a body or a comment is then still seen to be theirs, by who reads lines and by
// who reads Markdown.
type briefing struct {
	b   bytes.Buffer
	now eventlog.Time
}

func (c *briefing) linef(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

// gap ends a paragraph: behind a quotation Markdown takes the next line for a part
// of it otherwise.
func (c *briefing) gap() {
	if !bytes.HasSuffix(c.b.Bytes(), []byte("\n\n")) {
		c.linef("")
	}
}

// head begins a part; marks are its level.
func (c *briefing) head(marks, format string, args ...any) {
	c.gap()
	c.linef(marks+" "+format, args...)
	c.linef("")
}

// field is one line of the header; without a value there is none.
func (c *briefing) field(name, value string) {
	if value != "" {
		c.linef("%s: %s", name, clean(value, false))
	}
}

// quote repeats what somebody wrote, up to a number of characters, and says how
// many are missing. Without a text nothing is said.
func (c *briefing) quote(name, text string, most int) {
	if text == "" {
		return
	}
	c.gap()
	if name != "" {
		c.linef("%s:", name)
	}
	shown, missing := cutAt(text, most)
	shown = clean(strings.ReplaceAll(shown, "\r\n", "\n"), true)
	for line := range strings.SplitSeq(strings.TrimSuffix(shown, "\n"), "\n") {
		if line != "" {
			line = " " + line
		}
		c.linef(">%s", line)
	}
	if missing > 0 {
		c.gap()
		c.linef("%s", notShown(missing))
	}
}

func (c *briefing) omitted(n int, what string) {
	if n > 0 {
		c.gap()
		c.linef("[%d %s not shown; kanlog show has all]", n, what)
	}
}

// cutAt splits text behind a number of characters and counts those that are left.
func cutAt(s string, most int) (shown string, missing int) {
	if len(s) <= most {
		return s, 0
	}
	n := 0
	for i := range s {
		if n == most {
			return s[:i], utf8.RuneCountInString(s[i:])
		}
		n++
	}
	return s, 0
}

func notShown(missing int) string { return fmt.Sprintf("[%d more characters not shown]", missing) }

// shorten cuts text visibly.
func shorten(s string, most int) string {
	shown, missing := cutAt(s, most)
	if missing == 0 {
		return s
	}
	return shown + "\n" + notShown(missing)
}
