package main

import (
	"errors"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"0": 0, "90": 90 * time.Second, "30s": 30 * time.Second, "15m": 15 * time.Minute, "2h": 2 * time.Hour,
		"1d": 24 * time.Hour, "1d12h": 36 * time.Hour, "2d1h30m": 49*time.Hour + 30*time.Minute, "0d": 0, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, "250ms": 250 * time.Millisecond,
		"3650d": 3650 * 24 * time.Hour, "315360000": 3650 * 24 * time.Hour,
	} {
		got, err := parseDuration(in)
		if err != nil || got != want {
			t.Errorf("%q: %v %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", " ", "s", "d", "-1", "-0", "-3s", "-1d", "1 s", "soon", "1.5d", "1d-12h", "1d+12h", "1d12", "1dd", "d12h", "1d1d", "12h1d", "-1d12h", "1d 2h", "3650d1s", "1d2562047h", "1d.", "1w", "1y", "0x10", "1e3", "NaN",
		"3651d", "315360001", "87601h", "9223372036854775807", "9223372036854775808", "99999999999999d", "2562048h",
	} {
		got, err := parseDuration(in)
		var u *usageError
		if !errors.As(err, &u) || got != 0 {
			t.Errorf("%q: %v %v, want a usage error", in, got, err)
		}
	}
}

func TestDurationAsFlag(t *testing.T) {
	var d duration
	if err := d.Set("1d"); err != nil || d.std() != 24*time.Hour || d.String() != "24h0m0s" {
		t.Errorf("set: %v %v", d.String(), err)
	}
}
