package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kanlog/tick"
)

// settingsDirs makes a home and a board directory with these config.toml, ""
// for none, and an environment without settings.
func settingsDirs(t *testing.T, home, board string) (homeDir, boardDir string) {
	t.Helper()
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "KANLOG_") {
			t.Setenv(k, "")
		}
	}
	homeDir = t.TempDir()
	boardDir = filepath.Join(homeDir, "boards", "b")
	if err := os.MkdirAll(boardDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, text := range map[string]string{homeDir: home, boardDir: board} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return homeDir, boardDir
}

func TestSettingsWithoutFiles(t *testing.T) {
	got, err := loadSettings(settingsDirs(t, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	// The defaults of the contract, written out.
	l := got.policy.Limits
	for name, pair := range map[string][2]any{
		"failure_limit":       {l.FailureLimit, int64(2)},
		"violation_limit":     {l.ViolationLimit, int64(3)},
		"claim_ttl":           {l.ClaimTTL, 15 * time.Minute},
		"launch_grace":        {got.policy.LaunchGrace, 30 * time.Second},
		"kill_grace":          {got.policy.KillGrace, 5 * time.Second},
		"terminal_grace":      {got.policy.TerminalGrace, 2 * time.Minute},
		"rate_limit_cooldown": {l.RateLimitCooldown, 5 * time.Minute},
		"heartbeat_stale":     {l.HeartbeatStale, time.Hour},
		"retry_backoff":       {l.RetryBackoff, 10 * time.Second},
		"max_backoff":         {l.MaxBackoff, 10 * time.Minute},
		"lock_timeout":        {got.lockTimeout, 30 * time.Second},
		"allow_network_store": {got.allowNetwork, false},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	// Unset is derived from the machine, never unlimited.
	if n := got.dispatchPolicy().MaxInProgress; n < 2 || n > 8 {
		t.Errorf("max_in_progress: %d", n)
	}
}

// keyCases is every scalar setting: a value, how it reads back, and values that
// make no sense.
var keyCases = []struct {
	key, value string
	want       any
	get        func(*settings) any
	bad        []string
}{
	{"failure_limit", "7", int64(7), func(s *settings) any { return s.policy.Limits.FailureLimit }, []string{"0", "-1", "1001", `"two"`, "1.5"}},
	{"violation_limit", "7", int64(7), func(s *settings) any { return s.policy.Limits.ViolationLimit }, []string{"0", "-1", "1001"}},
	{"max_in_progress", "7", 7, func(s *settings) any { return s.policy.MaxInProgress }, []string{"0", "-1", "1001", "true"}},
	{"breaker", "5", int64(5), func(s *settings) any { return s.policy.Breaker.Runs }, []string{"-1", "1001", "1.5", `"on"`}},
	{"breaker", "0", int64(0), func(s *settings) any { return s.policy.Breaker.Runs }, nil},
	{"breaker_pause", `"90s"`, 90 * time.Second, func(s *settings) any { return s.policy.Breaker.Pause }, []string{`"0"`, `"-1s"`, `"x"`}},
	{"interval", `"7s"`, nil, func(*settings) any { return nil }, []string{`"0"`, `"10ms"`, `"-1s"`, `"x"`}},
	{"claim_ttl", `"7m"`, 7 * time.Minute, func(s *settings) any { return s.policy.Limits.ClaimTTL }, []string{`"0"`, `"10ms"`, `"-1s"`, `"soon"`, `"99999d"`}},
	{"launch_grace", `"7s"`, 7 * time.Second, func(s *settings) any { return s.policy.LaunchGrace }, []string{`"0"`, `"-1s"`, `""`}},
	{"kill_grace", `"7"`, 7 * time.Second, func(s *settings) any { return s.policy.KillGrace }, []string{`"-1s"`, `"x"`}},
	{"terminal_grace", `"0"`, time.Duration(0), func(s *settings) any { return s.policy.TerminalGrace }, []string{`"-1s"`, `"x"`}},
	{"rate_limit_cooldown", `"0"`, time.Duration(0), func(s *settings) any { return s.policy.Limits.RateLimitCooldown }, []string{`"-1s"`, `"x"`}},
	{"heartbeat_stale", `"1d"`, 24 * time.Hour, func(s *settings) any { return s.policy.Limits.HeartbeatStale }, []string{`"-1s"`, `"x"`}},
	{"reclaim_defer", `"7s"`, 7 * time.Second, func(s *settings) any { return s.policy.ReclaimDefer }, []string{`"-1s"`, `"x"`}},
	{"retry_backoff", `"0"`, time.Duration(0), func(s *settings) any { return s.policy.Limits.RetryBackoff }, []string{`"-1s"`, `"x"`}},
	// A bare number is seconds.
	{"claim_ttl", "840", 14 * time.Minute, func(s *settings) any { return s.policy.Limits.ClaimTTL }, []string{"0", "-2", "1.5", "true", "1_000", "0x10", "1979-05-27", "[1]", "999999999999"}},
	{"kill_grace", "7", 7 * time.Second, func(s *settings) any { return s.policy.KillGrace }, []string{"-2", "1.5", "true", "nan"}},
	{"retry_backoff", "60", time.Minute, func(s *settings) any { return s.policy.Limits.RetryBackoff }, []string{"-2", "1.5", "true", "inf"}},
	{"lock_timeout", `"150ms"`, 150 * time.Millisecond, func(s *settings) any { return s.lockTimeout }, []string{`"0"`, `"-1s"`, `"x"`}},
	{"allow_network_store", "true", true, func(s *settings) any { return s.allowNetwork }, []string{`"yes"`, "1"}},
}

func TestEverySetting(t *testing.T) {
	for _, c := range keyCases {
		t.Run(c.key, func(t *testing.T) {
			line := c.key + " = " + c.value + "\n"
			got, err := loadSettings(settingsDirs(t, "# a comment\n"+line, ""))
			if err != nil {
				t.Fatal(err)
			}
			if v := c.get(&got); v != c.want {
				t.Errorf("%s = %s reads back as %v, want %v", c.key, c.value, v, c.want)
			}
			for _, bad := range c.bad {
				home, board := settingsDirs(t, "# a comment\n"+c.key+" = "+bad+"\n", "")
				_, err := loadSettings(home, board)
				wantSettingsError(t, err, filepath.Join(home, "config.toml")+":2:", c.key)
			}
		})
	}
}

// wantSettingsError: a usage error that names file with line, and key.
func wantSettingsError(t *testing.T, err error, parts ...string) {
	t.Helper()
	var u *usageError
	if !errors.As(err, &u) {
		t.Errorf("not a usage error: %v", err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
}

func TestKnownKeysAreAll(t *testing.T) {
	for typ, known := range map[reflect.Type][]string{
		reflect.TypeFor[fileSettings](): knownKeys(nil),
		reflect.TypeFor[fileProfile]():  knownKeys([]string{"profiles", "p", "x"}),
	} {
		var tags []string
		for i := range typ.NumField() {
			tags = append(tags, typ.Field(i).Tag.Get("toml"))
		}
		have := map[string]bool{}
		for _, k := range known {
			have[k] = true
		}
		for _, tag := range tags {
			if !have[tag] {
				t.Errorf("%v: an error about an unknown key does not list %s", typ, tag)
			}
		}
		if len(known) != len(tags) {
			t.Errorf("%v: %d keys are listed, there are %d", typ, len(known), len(tags))
		}
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"unknown key":             {"failure_limit = 2\nclaim_tll = '5m'\n", []string{":2:", `"claim_tll"`, "claim_ttl"}},
		"unknown profile key":     {"[profiles.w]\ncommand = ['x']\nmax_runtme = '1h'\n", []string{":3:", "profiles.w.max_runtme", "max_runtime"}},
		"another case":            {"failure_limit = 2\nFailure_Limit = 1\n", []string{":2:", `unknown key "Failure_Limit" (did you mean failure_limit?)`}},
		"another case alone":      {"\nCLAIM_TTL = '5m'\n", []string{":2:", "did you mean claim_ttl?"}},
		"profile in another case": {"[profiles.w]\ncommand = ['x']\nMax_Runtime = '1h'\n", []string{":3:", `"profiles.w.Max_Runtime" (did you mean max_runtime?)`}},
		"dotted in another case":  {"\nprofiles.w.Command = ['x']\n", []string{":2:", "did you mean command?"}},
		"table in another case":   {"failure_limit = 2\n[Profiles.w]\ncommand = ['x']\n", []string{":2:", `"Profiles" (did you mean profiles?)`}},
		"profile none":            {"failure_limit = 2\n[profiles.none]\ncommand = ['x']\n", []string{":2:", `profiles.none: "none" can be no card's assignee`}},
		"profile of no name":      {"failure_limit = 2\n[profiles.\"\"]\ncommand = ['x']\n", []string{":2:", `"" can be no card's assignee`}},
		"profile of blanks":       {"[profiles.\"  \"]\ncommand = ['x']\n", []string{":1:", "can be no card's assignee"}},
		"profile with a blank":    {"[profiles.\"w \"]\ncommand = ['x']\n", []string{":1:", `the name "w " begins or ends with a blank`}},
		"profile on two lines":    {"[profiles.\"a\\nb\"]\ncommand = ['x']\n", []string{":1:", "control character"}},
		"profile too long":        {"[profiles." + strings.Repeat("w", 129) + "]\ncommand = ['x']\n", []string{":1:", "129 bytes; it may have at most 128"}},
		"reviewer none":           {"[profiles.w]\ncommand = ['x']\nreviewer = 'none'\n", []string{":3:", "profiles.w.reviewer", "leave it out for a person"}},
		"reviewer with a blank":   {"[profiles.w]\ncommand = ['x']\nreviewer = ' r'\n", []string{":3:", "begins or ends with a blank"}},
		"reviewer on two lines":   {"[profiles.w]\ncommand = ['x']\nreviewer = \"a\\u001bb\"\n", []string{":3:", "control character"}},
		"reviewer too long":       {"[profiles.w]\ncommand = ['x']\nreviewer = '" + strings.Repeat("r", 129) + "'\n", []string{":3:", "129 bytes; it may have at most 128"}},
		"unknown table":           {"[profile.w]\ncommand = ['x']\n", []string{":1:", "profile", "profiles"}},
		"not TOML":                {"failure_limit = 2\n[profiles.w\n", []string{":2:"}},
		"key twice":               {"failure_limit = 2\nfailure_limit = 3\n", []string{":2:", "failure_limit"}},
		"no command":              {"[profiles.w]\nmax_in_progress = 1\n", []string{"profiles.w.command"}},
		"empty command":           {"[profiles.w]\ncommand = []\n", []string{":2:", "profiles.w.command"}},
		"empty program":           {"[profiles.w]\ncommand = ['']\n", []string{":2:", "profiles.w.command"}},
		"a shell line":            {"[profiles.w]\ncommand = 'sh -c true'\n", []string{":2:", "command"}},
		"profile cap":             {"[profiles.w]\ncommand = ['x']\nmax_in_progress = 0\n", []string{":3:", "profiles.w.max_in_progress"}},
		"profile runtime":         {"[profiles.w]\ncommand = ['x']\nmax_runtime = '10ms'\n", []string{":3:", "profiles.w.max_runtime"}},
		"profile runtime number":  {"[profiles.w]\ncommand = ['x']\nmax_runtime = 1.5\n", []string{":3:", "profiles.w.max_runtime"}},
		"profile runtime dotted":  {"max_in_progress = 2\nprofiles.w.command = ['x']\nprofiles.w.max_runtime = -2\n", []string{":3:", "profiles.w.max_runtime"}},
		"profile runtime in line": {"[profiles]\nw = { command = ['x'], max_runtime = 'long' }\n", []string{":2:", "profiles.w.max_runtime"}},
		"profile runtime word":    {"[profiles.w]\ncommand = ['x']\nmax_runtime = 'long'\n", []string{":3:", "max_runtime"}},
		"clean exit":              {"[profiles.w]\ncommand = ['x']\non_clean_exit = 'fine'\n", []string{":3:", "profiles.w.on_clean_exit", "violation, complete, review"}},
		"own variable":            {"[profiles.w]\ncommand = ['x']\nenv = { KANLOG_RUN = '7' }\n", []string{":3:", "profiles.w.env", "KANLOG_RUN"}},
		"bad variable":            {"[profiles.w]\ncommand = ['x']\nenv = { 'A=B' = '7' }\n", []string{":3:", "profiles.w.env", "A=B"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, where := range []string{"home", "board"} {
				home, board := settingsDirs(t, c.text, "")
				dir := home
				if where == "board" {
					home, board = settingsDirs(t, "", c.text)
					dir = board
				}
				_, err := loadSettings(home, board)
				wantSettingsError(t, err, append([]string{filepath.Join(dir, "config.toml")}, c.want...)...)
			}
		})
	}
}

// Some editors put a byte order mark before every file.
func TestSettingsBehindAByteOrderMark(t *testing.T) {
	home, board := settingsDirs(t, "\ufefffailure_limit = 3\n", "")
	got, err := loadSettings(home, board)
	if err != nil || got.policy.Limits.FailureLimit != 3 {
		t.Errorf("failure_limit %d, %v", got.policy.Limits.FailureLimit, err)
	}
	home, board = settingsDirs(t, "\ufefffailure_limit = 0\n", "")
	_, err = loadSettings(home, board)
	wantSettingsError(t, err, "config.toml:1: failure_limit")
}

func TestUnreadableSettings(t *testing.T) {
	home, board := settingsDirs(t, "", "")
	path := filepath.Join(home, "config.toml")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := loadSettings(home, board)
	wantSettingsError(t, err, path)
}

func TestSettingsOverride(t *testing.T) {
	home, board := settingsDirs(t,
		"failure_limit = 3\nclaim_ttl = '3m'\nkill_grace = '3s'\n[profiles.w]\ncommand = ['./agent.sh', '{task}']\nmax_in_progress = 3\nenv = { A = 'home' }\n[profiles.home]\ncommand = ['h']\n",
		"claim_ttl = '4m'\nkill_grace = '4s'\n[profiles.w]\nmax_in_progress = 4\npass_env = []\n[profiles.board]\ncommand = ['./b']\n")
	t.Setenv("KANLOG_KILL_GRACE", "5s")
	s, err := loadSettings(home, board)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.policy.Limits.FailureLimit, s.policy.Limits.ViolationLimit, s.policy.Limits.ClaimTTL, s.policy.KillGrace)
	if want := "3 3 4m0s 5s"; got != want {
		t.Errorf("home, default, board, environment: %s, want %s", got, want)
	}
	want := map[string]tick.Profile{
		"w":     {Name: "w", Command: []string{filepath.Join(home, "agent.sh"), "{task}"}, MaxInProgress: 4, OnCleanExit: "violation", PassEnv: []string{}, PassEnvSet: true, Env: map[string]string{"A": "home"}},
		"home":  {Name: "home", Command: []string{"h"}, OnCleanExit: "violation"},
		"board": {Name: "board", Command: []string{filepath.Join(board, "b")}, OnCleanExit: "violation"},
	}
	if !reflect.DeepEqual(s.policy.Profiles, want) {
		t.Errorf("profiles:\n%+v\nwant\n%+v", s.policy.Profiles, want)
	}
}

func TestSettingsFromTheEnvironment(t *testing.T) {
	type variable struct {
		value, want string
		bad         []string
		get         func(*settings) any
	}
	durations := []string{"soon", "-1s", "1 s"}
	for name, v := range map[string]variable{
		"KANLOG_CLAIM_TTL":           {"3s", "3s", append(durations, "0"), func(s *settings) any { return s.policy.Limits.ClaimTTL }},
		"KANLOG_LAUNCH_GRACE":        {"90", "1m30s", append(durations, "0"), func(s *settings) any { return s.policy.LaunchGrace }},
		"KANLOG_KILL_GRACE":          {"0", "0s", durations, func(s *settings) any { return s.policy.KillGrace }},
		"KANLOG_TERMINAL_GRACE":      {"1m30s", "1m30s", durations, func(s *settings) any { return s.policy.TerminalGrace }},
		"KANLOG_RATE_LIMIT_COOLDOWN": {"2h", "2h0m0s", durations, func(s *settings) any { return s.policy.Limits.RateLimitCooldown }},
		"KANLOG_HEARTBEAT_STALE":     {"2h", "2h0m0s", durations, func(s *settings) any { return s.policy.Limits.HeartbeatStale }},
		"KANLOG_RETRY_BACKOFF":       {"0", "0s", durations, func(s *settings) any { return s.policy.Limits.RetryBackoff }},
		"KANLOG_LOCK_TIMEOUT":        {"1s", "1s", append(durations, "0"), func(s *settings) any { return s.lockTimeout }},
		"KANLOG_FAILURE_LIMIT":       {"5", "5", []string{"0", "-1", "many", "1.5", "1001"}, func(s *settings) any { return s.policy.Limits.FailureLimit }},
		"KANLOG_VIOLATION_LIMIT":     {"5", "5", []string{"0", "-1", "many", "1001"}, func(s *settings) any { return s.policy.Limits.ViolationLimit }},
		"KANLOG_RECLAIM_DEFER":       {"5s", "5s", durations, func(s *settings) any { return s.policy.ReclaimDefer }},
	} {
		t.Run(name, func(t *testing.T) {
			home, board := settingsDirs(t, "", "")
			t.Setenv(name, v.value)
			s, err := loadSettings(home, board)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(v.get(&s)); got != v.want {
				t.Errorf("%s=%s: %s, want %s", name, v.value, got, v.want)
			}
			for _, bad := range v.bad {
				t.Setenv(name, bad)
				_, err := loadSettings(home, board)
				wantSettingsError(t, err, name)
			}
		})
	}
}

func TestLineOfLooksInsideItsTable(t *testing.T) {
	text := []byte("max_in_progress = 1\n\n[profiles.a]\nmax_in_progress = 2\n[ profiles.b ]\n  max_in_progress = 3\n")
	for table, want := range map[string]int{"": 1, "profiles.a": 4, "profiles.b": 6, "profiles.c": 1} {
		if got := lineOf(text, table, "max_in_progress"); got != want {
			t.Errorf("in %q: line %d, want %d", table, got, want)
		}
	}
}
