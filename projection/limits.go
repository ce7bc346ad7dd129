package projection

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kanlog/eventlog"
)

// Bounds on what a card may hold, in bytes unless the name says otherwise.
// Every bound of the board stands here.
const (
	MaxTitle    = 500
	MaxBody     = 256 << 10
	MaxComment  = 64 << 10
	MaxReason   = 4 << 10
	MaxNote     = 2 << 10
	MaxSummary  = 16 << 10
	MaxResult   = 64 << 10
	MaxMetadata = 64 << 10
	MaxName     = 128 // assignee, tenant, tag, holder, branch
	MaxKey      = 256
	MaxPath     = 4 << 10
	MaxError    = 2 << 10 // cut, not refused: we write it ourselves
	MaxTags     = 32      // count
	MaxParents  = 256     // count
	MaxBulk     = 1000    // ids in one call
	MaxApply    = 1000    // cards of one graph
	MaxPriority = 1 << 30
	MaxRetries  = 1000
	MaxDuration = 10 * 365 * 24 * time.Hour
)

// MaxApplyBytes bounds a graph that is applied, as a file and in the bodies of its
// cards: it is one commit, and one commit is held in memory by everybody who reads it.
const MaxApplyBytes = 8 << 20

// Bounds on one commit of an import, which is as many as it takes.
const (
	importEvents = 1000
	importBytes  = 1 << 20 // of texts
)

// NoLimit is a limit that was given and is none, whatever the profile says; as
// seconds on record it is -1.
const NoLimit time.Duration = -1

// limitSeconds is a limit as it is put on record, in whole seconds: never less
// than what was asked for.
func limitSeconds(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return int64((d + time.Second - 1) / time.Second)
}

// Bounds on loops: how many times in a row before a person has to look.
const (
	MaxRateLimited   = 24
	MaxInterruptions = 10
	MaxStale         = 10
	// MaxRounds bounds how often in all a review sends a card back.
	MaxRounds = 10
	// MaxUncounted bounds all of these and clean exits without an answer
	// together, in any order.
	MaxUncounted = 100
)

// MaxDeferred is how many reasons are written for which a requested end of one
// run waits.
const MaxDeferred = 10

// ClockSlack is how far a recorded moment may lie ahead of a decision's own time
// before it counts as written by a clock that was set back since. A tick reads
// its time once and may then wait for the store while others write: what they
// wrote is newer than its time, and nobody's clock went back. It is longer than
// the default wait for the lock; a clock set back by less costs at most as much
// delay.
const ClockSlack = 2 * time.Minute

// Limits are the settings that deciders use. All durations are positive; zero
// means off for RetryBackoff and RateLimitCooldown.
type Limits struct {
	FailureLimit      int64
	CreateLimit       int64 // cards that the worker of one run may make, 0 for no bound
	ViolationLimit    int64
	ClaimTTL          time.Duration
	HeartbeatStale    time.Duration
	RetryBackoff      time.Duration // before the second attempt; doubles
	MaxBackoff        time.Duration
	RateLimitCooldown time.Duration
	// BlockLimit is how often in a row a worker may block its card for the same
	// kind of reason, 0 for any number.
	BlockLimit int64
}

// DefaultLimits are the contract's defaults.
func DefaultLimits() Limits {
	return Limits{
		FailureLimit:      2,
		CreateLimit:       100,
		ViolationLimit:    3,
		ClaimTTL:          15 * time.Minute,
		HeartbeatStale:    time.Hour,
		RetryBackoff:      10 * time.Second,
		MaxBackoff:        10 * time.Minute,
		RateLimitCooldown: 5 * time.Minute,
		BlockLimit:        3,
	}
}

// on puts the limits on the record of a decision that they had part in.
func (l Limits) on(e eventlog.Event) eventlog.Event {
	if w, ok := e.Data.(interface{ By() **eventlog.Limits }); ok {
		*w.By() = &eventlog.Limits{
			FailureLimit: l.FailureLimit, ViolationLimit: l.ViolationLimit, BlockLimit: l.BlockLimit,
			RetryBackoffUS: l.RetryBackoff.Microseconds(), MaxBackoffUS: l.MaxBackoff.Microseconds(), RateLimitCooldownUS: l.RateLimitCooldown.Microseconds(),
		}
	}
	return e
}

// recorded are the limits on the record of a decision in the place of those in l;
// false if there are none.
func (l Limits) recorded(p eventlog.Payload) (Limits, bool) {
	w, ok := p.(interface{ By() **eventlog.Limits })
	if !ok || *w.By() == nil {
		return l, false
	}
	r, us := *w.By(), func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	l.FailureLimit, l.ViolationLimit, l.BlockLimit = r.FailureLimit, r.ViolationLimit, r.BlockLimit
	l.RetryBackoff, l.MaxBackoff, l.RateLimitCooldown = us(r.RetryBackoffUS), us(r.MaxBackoffUS), us(r.RateLimitCooldownUS)
	return l, true
}

// checkText refuses what cannot be kept or shown: too long, not UTF-8, NUL.
func checkText(what, s string, limit int) error {
	if len(s) > limit {
		return invalid("%s has %d bytes; it may have at most %d", what, len(s), limit)
	}
	if !utf8.ValidString(s) {
		return invalid("%s is not valid UTF-8", what)
	}
	for i := range len(s) {
		if s[i] == 0 {
			return invalid("%s holds a NUL byte at offset %d", what, i)
		}
	}
	return nil
}

// checkLine is checkText for what must stay on one line.
func checkLine(what, s string, limit int) error {
	if err := checkText(what, s, limit); err != nil {
		return err
	}
	for _, r := range s {
		if r == '\n' || r == '\r' || unicode.IsControl(r) && r != '\t' {
			return invalid("%s holds a line break or control character (%q); it must be one plain line", what, r)
		}
	}
	return nil
}

// checkName is checkLine for words that are compared: no blanks at the ends.
func checkName(what, s string) error {
	if err := checkLine(what, s, MaxName); err != nil {
		return err
	}
	if strings.TrimSpace(s) != s {
		return invalid("%s %q begins or ends with a blank", what, s)
	}
	return nil
}

// cut shortens our own diagnostics to a bound at a rune's border.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := limit
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + fmt.Sprintf("... (%d bytes cut)", len(s)-n)
}
