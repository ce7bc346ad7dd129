package tick

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"kanlog/projection"
)

// A record that cannot be read just now (no descriptors left) may say that the
// worker was done, or that it should be tried later. Booking a crash on that
// would charge the card for good: the next tick reads it.
func TestARecordThatCannotBeReadNowIsReadLater(t *testing.T) {
	b := newBench(t)
	run := b.running("a")
	b.running("b")
	b.evidence[run] = Evidence{Answer: Dead}
	code := int64(75)
	b.records[run] = &projection.ExitRecord{Cause: projection.CauseExited, ExitCode: &code}
	b.recordErr = fmt.Errorf("%w: %w", ErrInfrastructure, syscall.EMFILE)
	rep := b.ticks()
	equal(t, "the story", b.story(), "")
	if len(rep.Errors) != 1 || !strings.Contains(rep.Errors[0].Error, "too many open files") {
		t.Errorf("errors: %v", rep.Errors)
	}
	b.recordErr = nil
	b.ticks()
	equal(t, "the story of the next tick", b.story(), "rate_limited a")
}
