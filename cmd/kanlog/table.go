package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// New table: fill it with lines of cells that end in tabs, the heads first, and
// pass what comes from cards through cell. Columns that may be cut to fit a
// terminal stand in longColumns.

// longColumns hold somebody's words. Ids, numbers and times are never cut: half
// of one is a wrong one.
var longColumns = []string{"TITLE", "WHY", "WHAT", "ASSIGNEE", "HOLDER"}

// leastColumn is what is left of a column at least, heads included; a terminal
// that is narrower than that breaks the lines itself.
const leastColumn = 8

// mostTitle is how much of a title is shown where columns stand behind it: one long
// title would push them out of sight in every row. --json has all of it.
const mostTitle = 60

// colourColumns hold one word of ours, which wordColours may colour.
var colourColumns = []string{"STATUS", "OUTCOME", "STATE"}

// table prints lines of tab-separated cells in columns, the first line being the
// heads. All tables are made here, so that none can forget what is harmless, what
// is wide and what fits.
func (a *app) table(fill func(w io.Writer)) error {
	var buf bytes.Buffer
	fill(&buf)
	var rows [][]string
	for line := range strings.Lines(buf.String()) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i := range row {
			row[i] = clean(row[i], false)
		}
		rows = append(rows, row)
	}
	return a.write([]byte(layOut(rows, a.screen())))
}

// layOut is the text of a table. It is pure.
func layOut(rows [][]string, s screen) string {
	if len(rows) == 0 {
		return ""
	}
	heads := make([]string, len(rows[0]))
	for i, h := range rows[0] {
		heads[i] = strings.TrimSpace(h)
	}
	widths := columnWidths(rows)
	if i := slices.Index(heads, "TITLE"); i >= 0 && i < len(heads)-1 {
		widths[i] = min(widths[i], mostTitle)
	}
	if s.width > 0 {
		narrow(widths, heads, s.width)
	}
	var b strings.Builder
	for n, row := range rows {
		for i, text := range row {
			text, last := cutText(text, widths[i]), i == len(row)-1
			pad := widths[i] - uniseg.StringWidth(text)
			b.WriteString(s.paint(text, colourOf(n, heads, i, text)))
			if !last {
				b.WriteString(strings.Repeat(" ", pad+2))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, text := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(text))
		}
	}
	return widths
}

// narrow takes from the widest of the columns that may be cut until all fit.
func narrow(widths []int, heads []string, width int) {
	over := 2*(len(widths)-1) - width
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if i < len(heads) && slices.Contains(longColumns, heads[i]) && w > leastColumn && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// cutText shortens text to a width on a screen, between what a reader takes for
// two characters.
func cutText(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	var b strings.Builder
	left := width - 1 // for the mark of the cut
	for rest, state := text, -1; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if left -= w; left < 0 {
			break
		}
		b.WriteString(cluster)
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// wordColours are the colours of statuses, outcomes and states, as numbers of
// the terminal: green goes well, red needs somebody, yellow waits for somebody.
var wordColours = map[string]int{
	"done": 32, "completed": 32, "running": 36, "open": 36, "starting": 36,
	"blocked": 31, "crashed": 31, "failed": 31, "timed_out": 31, overdue: 31, "spawn_failed": 31, "stale": 31,
	"triage": 33, "review": 33, "review_requested": 33, "rate_limited": 33, "retained": 33, "ending": 33,
	"archived": 2,
}

const headColour = 1

func colourOf(line int, heads []string, i int, text string) int {
	switch {
	case line == 0:
		return headColour
	case i < len(heads) && slices.Contains(colourColumns, heads[i]):
		return wordColours[text]
	}
	return 0
}

// paint puts text into a colour, if there are any.
func (s screen) paint(text string, colour int) string {
	if colour == 0 || !s.colour {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text)
}
