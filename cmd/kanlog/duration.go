package main

import (
	"strconv"
	"strings"
	"time"

	"kanlog/projection"
)

// parseDuration reads 90, 30s, 15m, 2h, 1d, 1h30m, 1d12h: whole seconds, or what Go
// writes, with whole days before it. Negative values are refused.
func parseDuration(s string) (time.Duration, error) {
	bad := func() (time.Duration, error) {
		return 0, usage("%q is no duration: whole seconds (90) or a number with a unit (30s, 15m, 2h, 1d, 1d12h)", s)
	}
	var d time.Duration
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n > int64(projection.MaxDuration/time.Second) {
			return 0, usage("%q is too long: at most %s", s, projection.MaxDuration)
		}
		d = time.Duration(n) * time.Second
	} else if days, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err != nil || strings.Trim(rest[:min(1, len(rest))], "0123456789") != "" {
			return bad() // also for a sign behind the days
		}
		if rest != "" {
			if d, err = time.ParseDuration(rest); err != nil {
				return bad()
			}
		}
		// Compared before they are added: the sum may run over and come out short.
		if n > int64(projection.MaxDuration/(24*time.Hour)) || d > projection.MaxDuration {
			return 0, usage("%q is too long: at most %s", s, projection.MaxDuration)
		}
		d += time.Duration(n) * 24 * time.Hour
	} else if d, err = time.ParseDuration(s); err != nil {
		return bad()
	}
	if d < 0 || strings.HasPrefix(s, "-") {
		return 0, usage("%q is negative", s)
	}
	if d > projection.MaxDuration {
		return 0, usage("%q is too long: at most %s", s, projection.MaxDuration)
	}
	return d, nil
}

// duration is a flag that holds one.
type duration struct{ d time.Duration }

func (d *duration) Type() string       { return "duration" }
func (d *duration) std() time.Duration { return d.d }

// String is empty for zero, which help would print as a default otherwise.
func (d *duration) String() string {
	if d.d == 0 {
		return ""
	}
	return d.d.String()
}

// Set reads a flag's value.
func (d *duration) Set(s string) (err error) {
	d.d, err = parseDuration(s)
	return err
}

// durationText is a duration as a settings file or a variable has it; a bare
// number is seconds, as everywhere. It is read only where file, line and key can
// be named with what is wrong: the parser of TOML does so for text, but not for
// a number.
type durationText string

// UnmarshalText takes what stands in the file, number or text.
func (t *durationText) UnmarshalText(b []byte) error {
	*t = durationText(b)
	return nil
}
