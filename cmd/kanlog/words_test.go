package main

import (
	"testing"

	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// Package proc imports none of ours, so the words that pass from it to the others
// are written there and here; they must be the same.
func TestWordsAgreeAcrossPackages(t *testing.T) {
	for _, pair := range [][2]string{
		{proc.CauseExited, projection.CauseExited},
		{proc.CauseSignaled, projection.CauseSignaled},
		{proc.CauseTerminated, projection.CauseTerminated},
		{proc.CauseStartFailed, projection.CauseStartFailed},
		{proc.CauseNeverStarted, projection.CauseNeverStarted},
		{proc.OOMInGroup, projection.OOMInGroup},
		{proc.OOMOnHost, projection.OOMOnHost},
		{string(proc.Alive), string(tick.Alive)},
		{string(proc.Orphaned), string(tick.Orphaned)},
		{string(proc.Dead), string(tick.Dead)},
		{string(proc.Held), string(tick.Held)},
		{string(proc.Registered), tick.Registered},
		{string(proc.Refused), tick.Refused},
		{string(proc.Died), tick.Died},
		{string(proc.TimedOut), tick.TimedOut},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%q here, %q there", pair[0], pair[1])
		}
	}
}
