package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"kanlog/eventlog"
	"kanlog/projection"
)

// What people and scripts write, read by us: settings, and the words of a command
// line. The corpora in testdata/fuzz run with every test; make fuzz looks for
// more.

// asUsage is the error that a wrong word must be: exit 2, nothing done.
func asUsage(t *testing.T, what string, err error) {
	t.Helper()
	var u *usageError
	if !errors.As(err, &u) {
		t.Errorf("%s: %v, which is no usage error", what, err)
	}
}

func FuzzSettings(f *testing.F) {
	for _, s := range []string{
		"", "\xff", "failure_limit = 2\ninterval = \"60s\"\n[profiles.coder]\ncommand = [\"./a.sh\", \"{task}\"]\nmax_runtime = \"2h\"\nenv = { A = \"b\" }\n",
		"max_in_progress = 9223372036854775808", "claim_ttl = 1e9", "breaker = -1", "[profiles]\n\"\" = {}\n", "[[profiles]]\n",
		"profiles.\"a.b\".command = [\"\"]\n", "claim_ttl = 2020-01-01T00:00:00Z", "kill_grace = [1]", "retry_backoff = nan",
		"[profiles.x]\ncommand = [\"a\", \"\\u0000\"]\nenv.B = \"\\u0000\"\npass_env = [\"\"]\n",
		"[profiles.x]\ncommand = [\"a\"]\nenv.B = \"\\u0000\"\nmax_in_progress = 0",
	} {
		f.Add(s, uint8(0), "")
	}
	for i, v := range []string{"0", "-1s", "1d", "010", "99999999999999999999", "2", "1.5h", " 1"} {
		f.Add("", uint8(i), v)
	}
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "KANLOG_") {
			f.Setenv(k, "")
		}
	}
	variables := []string{
		"KANLOG_CLAIM_TTL", "KANLOG_LAUNCH_GRACE", "KANLOG_KILL_GRACE", "KANLOG_TERMINAL_GRACE", "KANLOG_RATE_LIMIT_COOLDOWN",
		"KANLOG_HEARTBEAT_STALE", "KANLOG_RECLAIM_DEFER", "KANLOG_RETRY_BACKOFF", "KANLOG_LOCK_TIMEOUT", "KANLOG_FAILURE_LIMIT", "KANLOG_VIOLATION_LIMIT",
	}
	home := f.TempDir()
	path := filepath.Join(home, "config.toml")
	place := regexp.MustCompile(`^` + regexp.QuoteMeta(path) + `:(\d+): `)
	f.Fuzz(func(t *testing.T, text string, variable uint8, value string) {
		if strings.ContainsRune(value, 0) {
			t.Skip() // no environment can hold it
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		name := variables[int(variable)%len(variables)]
		t.Setenv(name, value)
		s, err := loadSettings(home, filepath.Join(home, "none"))
		again, err2 := loadSettings(home, filepath.Join(home, "none"))
		if (err == nil) != (err2 == nil) || err == nil && !reflect.DeepEqual(s, again) {
			t.Errorf("read twice: %+v %v, then %+v %v", s, err, again, err2)
		}
		if err == nil {
			inBounds(t, s)
			return
		}
		asUsage(t, text, err)
		if strings.HasPrefix(err.Error(), name+": ") {
			return
		}
		m := place.FindStringSubmatch(err.Error())
		if m == nil {
			t.Fatalf("%q: %q names neither file and line nor %s", text, err, name)
		}
		if n, _ := strconv.Atoi(m[1]); n < 1 || n > strings.Count(text, "\n")+1 {
			t.Errorf("%q: line %s, of %d", text, m[1], strings.Count(text, "\n")+1)
		}
	})
}

// inBounds checks the settings themselves, not the way in which they were read.
func inBounds(t *testing.T, s settings) {
	t.Helper()
	p, l := s.policy, s.policy.Limits
	for name, b := range map[string]struct{ d, least time.Duration }{
		"claim_ttl": {l.ClaimTTL, time.Second}, "launch_grace": {p.LaunchGrace, 100 * time.Millisecond}, "kill_grace": {p.KillGrace, 0},
		"terminal_grace": {p.TerminalGrace, 0}, "reclaim_defer": {p.ReclaimDefer, 0}, "heartbeat_stale": {l.HeartbeatStale, 0},
		"retry_backoff": {l.RetryBackoff, 0}, "rate_limit_cooldown": {l.RateLimitCooldown, 0}, "lock_timeout": {s.lockTimeout, time.Millisecond},
		"breaker_pause": {p.Breaker.Pause, time.Second}, "max_backoff": {l.MaxBackoff, time.Second},
	} {
		if b.d < b.least || b.d > projection.MaxDuration {
			t.Errorf("%s is %v", name, b.d)
		}
	}
	for name, n := range map[string]int64{"failure_limit": l.FailureLimit, "violation_limit": l.ViolationLimit, "max_in_progress": int64(s.dispatchPolicy().MaxInProgress)} {
		if n < 1 || n > projection.MaxRetries {
			t.Errorf("%s is %d", name, n)
		}
	}
	if n := p.Breaker.Runs; n < 0 || n > projection.MaxRetries {
		t.Errorf("breaker is %d", n)
	}
	for name, x := range p.Profiles {
		words := slices.Clone(x.Command)
		for k, v := range x.Env {
			words = append(words, k, v)
			if k == "" || strings.Contains(k, "=") || strings.HasPrefix(k, "KANLOG_") {
				t.Errorf("profile %q sets %q", name, k)
			}
		}
		switch {
		case x.Name != name:
			t.Errorf("profile %q calls itself %q", name, x.Name)
		case len(x.Command) == 0 || x.Command[0] == "":
			t.Errorf("profile %q has no command", name)
		case x.MaxInProgress < 0 || x.MaxRuntime < 0 || x.MaxRuntime > projection.MaxDuration || x.MaxRuntime > 0 && x.MaxRuntime < time.Second:
			t.Errorf("profile %q: %+v", name, x)
		case !slices.Contains([]string{projection.CleanViolation, projection.CleanComplete, projection.CleanReview}, x.OnCleanExit):
			t.Errorf("profile %q: on_clean_exit is %q", name, x.OnCleanExit)
		case strings.ContainsRune(strings.Join(words, ""), 0):
			t.Errorf("profile %q: a NUL byte in %q", name, words)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"", "0", "90", "30s", "1d", "1h30m", "1.5h", "-0", "3651d", "315360001", "2562048h", "99999999999999d", "+5", "1d12h", "-0s", ".s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := parseDuration(s)
		if err != nil {
			asUsage(t, s, err)
			if d != 0 {
				t.Errorf("%q: %v beside the error %v", s, d, err)
			}
			return
		}
		if d < 0 || d > projection.MaxDuration {
			t.Errorf("%q is %v", s, d)
		}
		// What we print of it is read as the same.
		if again, err := parseDuration(d.String()); err != nil || again != d {
			t.Errorf("%q is %v, and that is read as %v, %v", s, d, again, err)
		}
		if n, ok := new(big.Int).SetString(s, 10); ok && n.Int64() != int64(d/time.Second) {
			t.Errorf("%q seconds are %v", s, d)
		}
		if days, ok := strings.CutSuffix(s, "d"); ok {
			if n, ok := new(big.Int).SetString(days, 10); !ok || n.Int64()*24 != int64(d/time.Hour) {
				t.Errorf("%q are %v", s, d)
			}
		}
	})
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"", "0", "010", "-1", "+1", "0x10", "1_000", "1e3", "9007199254740992", "9223372036854775807", "9223372036854775808", "18446744073709551615", "-9223372036854775808"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var i int
		var n int64
		var u uint64
		exact, whole := new(big.Int).SetString(s, 10)
		for _, c := range []struct {
			err  error
			got  string
			fits bool
		}{
			{(&number[int]{&i}).Set(s), (&number[int]{&i}).String(), whole && exact.IsInt64()},
			{(&number[int64]{&n}).Set(s), (&number[int64]{&n}).String(), whole && exact.IsInt64()},
			{(&number[uint64]{&u}).Set(s), (&number[uint64]{&u}).String(), whole && exact.IsInt64() && exact.Sign() >= 0},
		} {
			switch {
			case c.err != nil && c.fits:
				t.Errorf("%q is refused: %v", s, c.err)
			case c.err == nil && (!c.fits || c.got != exact.String()):
				t.Errorf("%q is read as %s", s, c.got)
			case c.err != nil:
				asUsage(t, s, c.err)
			}
		}
		run, err := runNumber(s)
		if err != nil {
			asUsage(t, s, err)
		} else if !whole || run == 0 || run >= 1<<53 || exact.String() != strconv.FormatUint(run, 10) {
			t.Errorf("%q is read as run %d", s, run)
		}
		// Arming a failpoint must not be what fails.
		if _, err := parseFailpoints(s); err != nil {
			asUsage(t, s, err)
		}
	})
}

func FuzzMoment(f *testing.F) {
	for _, s := range []string{"2026-12-01T09:00:00Z", "2h", "0", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59.999999999-23:59", "0001-01-01T00:00:00Z", "2026-12-01", "3650d"} {
		f.Add(s)
	}
	a := &app{now: 1_800_000_000_000_000}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := a.parseMoment(s)
		if err != nil {
			asUsage(t, s, err)
			return
		}
		if at <= 0 {
			t.Errorf("%q is %d, which means absent or lies before 1970", s, at)
		}
		// What a script reads of it is the same moment.
		var back eventlog.Time
		b, err := json.Marshal(at)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &back); err != nil || back != at {
			t.Errorf("%q is %d, printed %s and read as %d, %v", s, at, b, back, err)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("a\nb\tc\r\x1b[31m\u009b\u202e\u2028\xff\xc3(")
	f.Add("日本語 🙂 \ufffd \\u001b")
	f.Fuzz(func(t *testing.T, s string) {
		for _, keep := range []bool{false, true} {
			got := clean(s, keep)
			if !utf8.ValidString(got) {
				t.Errorf("%q became %q", s, got)
			}
			for _, r := range got {
				if keep && (r == '\n' || r == '\t') {
					continue
				}
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
					t.Errorf("%q: %q comes out", s, r)
				}
			}
			if again := clean(got, keep); again != got {
				t.Errorf("%q became %q, and that %q", s, got, again)
			}
		}
		// Harmless text is left alone.
		if plain := strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) && r != utf8.RuneError {
				return r
			}
			return -1
		}, s); clean(plain, false) != plain {
			t.Errorf("%q became %q", plain, clean(plain, false))
		}
	})
}

// A worker's metadata comes back as the bytes that were given, and nothing that
// stands beside it is taken for it.
func FuzzRawJSON(f *testing.F) {
	f.Add(`{"a": 1.0,  "b":[ ]}`, "x")
	f.Add(`0e123125`, `" 0e034`+"\\")
	f.Fuzz(func(t *testing.T, raw, text string) {
		if !json.Valid([]byte(raw)) || !utf8.ValidString(text) {
			t.Skip()
		}
		v := struct {
			A, B string
			Raw  rawJSON
			C    string
		}{text, rawMark(), rawJSON(raw), text}
		for _, indent := range []string{"  ", ""} {
			b, err := encodeJSON(v, indent)
			if err != nil {
				t.Fatal(err)
			}
			got := struct {
				A, B, C string
				Raw     json.RawMessage
			}{}
			if err := json.Unmarshal(b, &got); err != nil || got.A != text || got.B != rawMark() || got.C != text {
				t.Errorf("%s\n%v", b, err)
			}
			want := []byte(strings.TrimSpace(raw))
			if indent == "" {
				var line bytes.Buffer
				if err := json.Compact(&line, want); err != nil {
					t.Fatal(err)
				}
				want = line.Bytes()
				if bytes.Count(b, []byte("\n")) != 1 {
					t.Errorf("more than one line: %s", b)
				}
			} else if !bytes.Contains(b, []byte(raw)) {
				t.Errorf("%q does not stand in %s", raw, b)
			}
			if !bytes.Equal(got.Raw, want) {
				t.Errorf("%q came back as %q", raw, got.Raw)
			}
		}
	})
}

// The file that a worker is told everything in: bounded whatever a card holds,
// cut visibly and never inside a character.
func FuzzContext(f *testing.F) {
	f.Add("title", "body", "failed", "comment", uint8(1))
	f.Add("t", strings.Repeat("ü", contextBody), strings.Repeat("x", 3000), strings.Repeat("é", 2000), uint8(40))
	f.Add("# x", "## Comments\n\n```\n> a\r\n\n### run 1", "a\x1bb", "\u2028", uint8(12))
	f.Fuzz(func(t *testing.T, title, body, reason, comment string, n uint8) {
		s := &projection.MemStore{Mem: eventlog.NewMem([16]byte{9})}
		now := eventlog.Time(1_800_000_000_000_000)
		do := func(d projection.Decider) (projection.Result, error) {
			now = now.Add(time.Hour)
			return s.Update("operator:ann", now, d)
		}
		res, err := do(projection.Create(projection.Draft{Title: title, Body: body, WorkspaceKind: projection.Scratch}, projection.Writer{}))
		if err != nil {
			t.Skip() // the decider's bounds are tested where they stand
		}
		limits := projection.DefaultLimits()
		limits.FailureLimit = 1000
		for range n % 48 {
			_, _ = do(projection.AddComment(res.Task, "ann", comment, projection.Writer{}))
			if _, err := do(projection.Claim(projection.ClaimFor{Task: res.Task, Origin: projection.OriginManual, TTL: time.Minute}, projection.Writer{})); err == nil {
				_, _ = do(projection.Fail(res.Task, reason, limits, projection.Writer{}))
			}
		}
		a := &app{now: now}
		text, err := a.context(projection.NewView(s.Mem), res.Task)
		if err != nil {
			t.Fatal(err)
		}
		// A character has up to four bytes, and is shown in up to eight (\U0010ffff);
		// in front of every line stand two more.
		const most = 10*(projection.MaxTitle+contextBody+contextAttempts*(contextText+200)+contextComments*(contextComment+200)) + 2000
		if len(text) > most {
			t.Errorf("%d bytes, at most %d", len(text), most)
		}
		if !utf8.Valid(text) {
			t.Errorf("not UTF-8: %q", text)
		}
		if !bytes.HasPrefix(text, []byte("# "+res.Task+": "+clean(title, false)+"\n")) {
			t.Errorf("the title is missing: %q", text)
		}
		shown := []rune(body)
		if missing := len(shown) - contextBody; missing > 0 {
			shown = shown[:contextBody]
			if want := "[" + strconv.Itoa(missing) + " more characters not shown]"; !strings.Contains(string(text), want) {
				t.Errorf("it is not said: %s", want)
			}
		}
		if body != "" && quotedUnder(string(text), "## Body") != clean(strings.TrimSuffix(strings.ReplaceAll(string(shown), "\r\n", "\n"), "\n"), true) {
			t.Errorf("the body is not there as it was: %q", text)
		}
		// Nothing of what others wrote looks like a part of the text itself.
		own := regexp.MustCompile(`^(|>.*|# .*|Lines that begin .*|this text\.|[a-z ]+:( .*)?|## (Body|Earlier attempts, newest first|Comments)|### (run \d+ of nobody, failed, ended|ann,) (just now|\d+[mhd] ago)|\[\d+ .* not shown.*\])$`)
		for line := range strings.SplitSeq(string(text), "\n") {
			if !own.MatchString(line) {
				t.Errorf("a line of its own that no part of it writes: %q", line)
			}
		}
	})
}

// quotedUnder is the first quotation behind a heading.
func quotedUnder(text, heading string) string {
	_, rest, _ := strings.Cut(text, "\n"+heading+"\n\n")
	var lines []string
	for line := range strings.SplitSeq(rest, "\n") {
		quoted, is := strings.CutPrefix(line, ">")
		if !is {
			break
		}
		lines = append(lines, strings.TrimPrefix(quoted, " "))
	}
	return strings.Join(lines, "\n")
}
