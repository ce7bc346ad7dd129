package eventlog

import "testing"

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
