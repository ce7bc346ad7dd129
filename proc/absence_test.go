package proc

import (
	"strings"
	"syscall"
	"testing"
)

// That a number is free is one probe, what /proc says another. A claimer has no
// tree to be searched, so that nothing stands behind these two.
func TestAFreeNumberAloneIsNoProof(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		statErr error
		want    Answer
		why     string
	}{
		{"both say that it is gone", syscall.ENOENT, Dead, "there is no such process"},
		{"/proc cannot be read", syscall.EIO, Held, "/proc cannot be read"},
		{"/proc may not be read", syscall.EACCES, Held, "/proc cannot be read"},
		{"/proc still shows it", nil, Held, "/proc still shows it"},
	} {
		w := newFakeWorld()
		w.supervisor().statErr = c.statErr
		w.openErr[300] = syscall.ESRCH
		if e := (&Prober{world: w}).ProbeClaimer(recorded()); e.Answer != c.want || !strings.Contains(e.Why, c.why) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, e.Answer, e.Why, c.want, c.why)
		}
	}
}

// A process that /proc hides from us has its number all the same.
func TestAMissingEntryAloneIsNoProof(t *testing.T) {
	t.Parallel()
	w := newFakeWorld()
	w.supervisor().statErr = syscall.ENOENT
	if e := (&Prober{world: w}).ProbeClaimer(recorded()); e.Answer != Held || !strings.Contains(e.Why, "hidden from us") {
		t.Errorf("%s (%s), want held", e.Answer, e.Why)
	}
}
