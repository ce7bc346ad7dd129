package proc

import (
	"bytes"
	"errors"
	"strconv"
)

// stat is what is used of one line of /proc/PID/stat.
type stat struct {
	state   byte
	parent  int
	group   int
	session int
	threads int
	start   string // clock ticks since boot; an opaque name, compared only for equality
	kernel  bool   // a thread of the kernel; it never has an environment
	// noEnv: it was executed with an empty environment. Not so while it is just
	// executing or ending, when there is none to be seen either. Means nothing
	// unless we may read its environment.
	noEnv bool
}

// ended reports whether the line is that of a process of which nothing runs.
// The leader of a process shows as a zombie while other threads go on: those
// are counted in threads.
func (s stat) ended() bool {
	return (s.state == 'Z' || s.state == 'X' || s.state == 'x') && s.threads <= 1
}

var errHalfStat = errors.New("incomplete stat line")

// parseStat reads a line of /proc/PID/stat. The name in it may hold blanks and
// parentheses, so the fields count from the last ")". A cut line is an error:
// a start tick that lost its last digit would be that of a stranger.
func parseStat(line []byte) (stat, error) {
	if !bytes.HasSuffix(line, []byte("\n")) {
		return stat{}, errHalfStat
	}
	end := bytes.LastIndexByte(line, ')')
	if end < 0 {
		return stat{}, errHalfStat
	}
	// By hand: bytes.Fields takes three times as long, and a tick reads the line of
	// every supervisor.
	var f [maxStatFields][]byte
	n := splitBlanks(line[end+1:len(line)-1], f[:])
	const start = 19 // field 22, counted from field 3
	if n <= start || len(f[0]) != 1 {
		return stat{}, errHalfStat
	}
	var s stat
	s.state = f[0][0]
	s.start = string(f[start])
	for _, field := range []struct {
		to *int
		at int
	}{{&s.parent, 1}, {&s.group, 2}, {&s.session, 3}, {&s.threads, 17}} {
		v, err := strconv.Atoi(string(f[field.at]))
		if err != nil {
			return stat{}, errHalfStat
		}
		*field.to = v
	}
	flags, err := strconv.ParseUint(string(f[6]), 10, 64)
	if err != nil {
		return stat{}, errHalfStat
	}
	const kernelThread = 0x00200000
	s.kernel = flags&kernelThread != 0
	s.noEnv = n <= statEnvEnd || string(f[statEnvEnd]) != "0" && bytes.Equal(f[statEnvStart], f[statEnvEnd])
	if _, err := strconv.ParseUint(s.start, 10, 64); err != nil {
		return stat{}, errHalfStat
	}
	return s, nil
}

// Where the environment lies: fields 50 and 51, counted from field 3.
const (
	statEnvStart = 47
	statEnvEnd   = 48
)

// environStart is the address of a process's environment, which is shown only to who may
// read it.
func environStart(line []byte) (int64, error) {
	var f [maxStatFields][]byte
	if n := splitBlanks(line[bytes.LastIndexByte(line, ')')+1:], f[:]); n <= statEnvStart {
		return 0, errHalfStat
	}
	start, err := strconv.ParseInt(string(f[statEnvStart]), 10, 64)
	if err != nil || start == 0 {
		return 0, errHalfStat
	}
	return start, nil
}

// maxStatFields is more than the kernel has behind the name.
const maxStatFields = 64

// splitBlanks cuts text at blanks into to, as far as that reaches, and counts the
// pieces.
func splitBlanks(text []byte, to [][]byte) (n int) {
	for len(text) > 0 && n < len(to) {
		end := bytes.IndexByte(text, ' ')
		if end < 0 {
			end = len(text)
		}
		if end > 0 {
			to[n] = text[:end]
			n++
		}
		text = text[min(end+1, len(text)):]
	}
	return n
}
