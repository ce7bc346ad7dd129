package proc

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// stamp writes a time the way records and headers do.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

// header is the first line of a run's output. Without it an empty file could
// mean that nothing was started, or that nothing was said.
func header(task string, run uint64, now time.Time, pid int, argv []string) string {
	return fmt.Sprintf("kanlog: run %d of %s started %s pid %d: %s\n",
		run, plainText(task, maxHeaderArgs), now.UTC().Format(time.RFC3339), pid, showArgs(argv))
}

// trailer is the last line: how the command ended, and by whom. It is for
// people; the record is for programs.
func trailer(r Record) string {
	how := ""
	switch {
	case r.Cause == CauseStartFailed:
		how = "could not start: " + plainText(r.Error, maxErrorText)
	case r.Signal != "":
		how = "signal " + r.Signal
	case r.ExitCode != nil:
		how = "exit " + strconv.Itoa(*r.ExitCode)
	}
	if r.Cause == CauseTerminated {
		how += ", ended by kanlog"
	}
	return fmt.Sprintf("kanlog: run %d ended %s: %s\n", r.Run, r.Ended, how)
}

// showArgs quotes what could move a terminal or pass for another argument.
func showArgs(argv []string) string {
	var b strings.Builder
	for i, arg := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if b.Len() > maxHeaderArgs {
			break
		}
		if len(arg) > 2*maxHeaderArgs {
			arg = arg[:2*maxHeaderArgs]
		}
		if q := strconv.Quote(arg); arg == "" || q[1:len(q)-1] != arg || strings.ContainsRune(arg, ' ') {
			arg = q
		}
		b.WriteString(arg)
	}
	return cut(b.String(), maxHeaderArgs)
}

// plainText makes text fit for one line.
func plainText(text string, limit int) string {
	if len(text) > 2*limit {
		text = text[:2*limit]
	}
	if q := strconv.Quote(text); q[1:len(q)-1] != text {
		text = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
	}
	return cut(text, limit)
}

// cut shortens text to limit bytes, never inside a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "..."
}
