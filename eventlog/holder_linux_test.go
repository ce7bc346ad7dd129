package eventlog

import (
	"regexp"
	"strconv"
	"testing"
)

const holderKnown = true

func TestFlockHolder(t *testing.T) {
	const locks = `1: POSIX  ADVISORY  WRITE 11 fd:00:77 0 EOF
2: FLOCK  ADVISORY  WRITE 12 fd:01:77 0 EOF
3: FLOCK  ADVISORY  WRITE 13 fd:00:77 0 EOF
3: -> FLOCK  ADVISORY  WRITE 14 fd:00:77 0 EOF
4: FLOCK  ADVISORY  WRITE 15 fd:00:770 0 EOF
`
	for where, want := range map[string]int{"fd:00:77": 13, "fd:01:77": 12, "fd:00:7": 0} {
		if got := flockHolder(locks, where); got != want {
			t.Errorf("%s: pid %d, want %d", where, got, want)
		}
	}
}

// What is named is the number in front of the file on a line of a held flock,
// whatever else the text holds; waiters are never named.
func FuzzFlockHolder(f *testing.F) {
	f.Add("3: FLOCK  ADVISORY  WRITE 13 fd:00:77 0 EOF\n3: -> FLOCK  ADVISORY  WRITE 14 fd:00:77 0 EOF\n", "fd:00:77")
	f.Add("3: FLOCK ADVISORY WRITE -1 fd:00:77 0 EOF", "fd:00:77")
	f.Add("3: OFDLCK ADVISORY WRITE 7 fd:00:77 0 EOF\n3: FLOCK\n", "")
	f.Fuzz(func(t *testing.T, locks, where string) {
		pid := flockHolder(locks, where)
		if pid == 0 {
			return
		}
		line := regexp.MustCompile(`(?m)^\s*\S+\s+FLOCK\s+\S+\s+\S+\s+[+]?0*` + strconv.Itoa(pid) + `\s+` + regexp.QuoteMeta(where) + `(\s|$)`)
		if pid > 0 && !line.MatchString(locks) {
			t.Fatalf("%q: process %d is no holder of %q", locks, pid, where)
		}
	})
}
