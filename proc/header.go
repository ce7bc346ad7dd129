package proc

import (
	"bytes"
	"fmt"
	"io"
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
	return fmt.Sprintf("%s%s started %s pid %d: %s\n",
		headerBegin(run), plainText(task, maxHeaderArgs), now.UTC().Format(time.RFC3339), pid, showArgs(argv))
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
	switch r.OOMKill {
	case OOMInGroup:
		how += ", meanwhile out of memory in its control group"
	case OOMOnHost:
		how += ", meanwhile out of memory on this host"
	}
	return fmt.Sprintf("%s%s: %s\n", trailerBegin(r.Run), r.Ended, how)
}

func headerBegin(run uint64) string  { return fmt.Sprintf("kanlog: run %d of ", run) }
func trailerBegin(run uint64) string { return fmt.Sprintf("kanlog: run %d ended ", run) }

// Said is the part of a run's output, size bytes long, that its command wrote:
// without our first and our last line. Only there, since a command may print
// such a line too.
func Said(output io.ReaderAt, size int64, run uint64) *io.SectionReader {
	buf := make([]byte, min(size, maxOwnLine))
	start, end := int64(0), size
	n, _ := output.ReadAt(buf, 0)
	if first, _, whole := bytes.Cut(buf[:n], []byte{'\n'}); whole && bytes.HasPrefix(first, []byte(headerBegin(run))) {
		start = int64(len(first)) + 1
	}
	from := max(start, size-int64(len(buf)))
	n, _ = output.ReadAt(buf[:size-from], from)
	last := bytes.TrimSuffix(buf[:n], []byte{'\n'})
	begin := bytes.LastIndexByte(last, '\n') + 1
	// It is ours only if it is seen to begin a line.
	if (begin > 0 || from == start) && from+int64(n) == size && n > len(last) &&
		bytes.HasPrefix(last[begin:], []byte(trailerBegin(run))) {
		end = from + int64(begin)
	}
	return io.NewSectionReader(output, start, end-start)
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
