package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pelletier/go-toml/v2"

	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// New setting: the field here with its unit, its default in defaults, its
// bounds in check, its environment variable in envSettings if the contract
// names one, a line in docs/settings.md, and a scenario.

// fileSettings is config.toml. A nil field was not given.
type fileSettings struct {
	FailureLimit      *int64                 `toml:"failure_limit"`
	ViolationLimit    *int64                 `toml:"violation_limit"`
	BlockLimit        *int64                 `toml:"block_limit"`
	MaxInProgress     *int                   `toml:"max_in_progress"`
	Ageing            *durationText          `toml:"ageing"`
	CreateLimit       *int64                 `toml:"create_limit"`
	HostCap           *int                   `toml:"max_in_progress_host"`
	MinFreeMemory     *sizeText              `toml:"min_free_memory"`
	Breaker           *int64                 `toml:"breaker"`
	BreakerPause      *durationText          `toml:"breaker_pause"`
	Interval          *durationText          `toml:"interval"`
	ClaimTTL          *durationText          `toml:"claim_ttl"`
	LaunchGrace       *durationText          `toml:"launch_grace"`
	KillGrace         *durationText          `toml:"kill_grace"`
	TerminalGrace     *durationText          `toml:"terminal_grace"`
	RateLimitCooldown *durationText          `toml:"rate_limit_cooldown"`
	HeartbeatStale    *durationText          `toml:"heartbeat_stale"`
	ReclaimDefer      *durationText          `toml:"reclaim_defer"`
	RetryBackoff      *durationText          `toml:"retry_backoff"`
	LockTimeout       *durationText          `toml:"lock_timeout"`
	OutputLimit       *sizeText              `toml:"output_limit"`
	KeepOutput        *durationText          `toml:"keep_output"`
	KeepWorkspaces    *durationText          `toml:"keep_workspaces"`
	DirtyWorkspace    *string                `toml:"dirty_workspace"`
	AllowNetworkStore *bool                  `toml:"allow_network_store"`
	Profiles          map[string]fileProfile `toml:"profiles"`
}

// settingsName is the file of settings, of a home and of a board.
const settingsName = "config.toml"

// settings are what the program works by.
type settings struct {
	policy      tick.Policy
	interval    time.Duration // between two ticks of a daemon at most
	lockTimeout time.Duration
	outputLimit int64 // bytes of a run's output that are kept
	// keepOutput and keepWorkspaces are how long those of a finished card are kept
	// after the last that happened to it, 0 for ever.
	keepOutput     time.Duration
	keepWorkspaces time.Duration
	// dirtyWorkspace is one of tick's Dirty words, for profiles that say nothing else.
	dirtyWorkspace string
	// minFreeMemory is how many bytes have to be free before anything is started.
	minFreeMemory int64
	host          tick.Host        // see app.reasons
	past          *projection.Past // the same, of a board as it was
	allowNetwork  bool
}

func defaults() settings {
	return settings{
		policy: tick.Policy{
			Limits:        projection.DefaultLimits(),
			LaunchGrace:   30 * time.Second,
			PrepareGrace:  5 * gitTimeout,
			KillGrace:     5 * time.Second,
			TerminalGrace: 2 * time.Minute,
			ReclaimDefer:  2 * time.Minute,
			Breaker:       projection.Breaker{Pause: time.Minute, Most: projection.DefaultLimits().MaxBackoff},
			Ageing:        24 * time.Hour,
			MaxInProgress: 0, // derived when a dispatcher needs it
			Profiles:      map[string]tick.Profile{},
		},
		interval:       time.Minute,
		lockTimeout:    30 * time.Second,
		outputLimit:    64 << 20,
		keepOutput:     30 * 24 * time.Hour,
		minFreeMemory:  128 << 20,
		keepWorkspaces: 7 * 24 * time.Hour,
		dirtyWorkspace: tick.DirtyKeep,
	}
}

// dispatchPolicy is the policy with the cap that a dispatcher goes by.
func (s *settings) dispatchPolicy() tick.Policy {
	p := s.policy
	if p.MaxInProgress == 0 {
		p.MaxInProgress = derivedCap()
	}
	if p.HostCap == 0 {
		p.HostCap = max(derivedCap(), p.MaxInProgress) // a board's own cap is meant to be reached
	}
	return p
}

// derivedCap is how many workers a machine bears when nobody said: two a core,
// one for each 512 MiB, at least 2 and at most 8. It is asked for every card that
// somebody wants to know something of.
var derivedCap = sync.OnceValue(func() int {
	n := 2 * runtime.NumCPU()
	if mem := memTotal(); mem > 0 {
		n = min(n, int(mem/(512<<20)))
	}
	return min(max(n, 2), 8)
})

// memTotal is the machine's memory in bytes, 0 if it cannot be told. It reads
// the first line only: every call of the program pays for this.
func memTotal() int64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	var b [128]byte
	n, _ := file.Read(b[:])
	line, _, _ := strings.Cut(string(b[:n]), "\n")
	if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		return kb << 10
	}
	return 0
}

// loadSettings reads the home's config.toml, then the board's over it, then
// the environment over both. Anything wrong stops the program: nothing is done
// by half-read settings.
func loadSettings(home, boardDir string) (settings, error) {
	s := defaults()
	for _, dir := range []string{home, boardDir} {
		if err := s.file(filepath.Join(dir, settingsName)); err != nil {
			return s, err
		}
	}
	if err := s.environment(); err != nil {
		return s, err
	}
	return s, nil
}

func (s *settings) file(path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unreadable("settings", err)
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff")) // some editors begin every file with it, and nobody sees it
	var f fileSettings
	dec := toml.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return settingsError(path, err)
	}
	if err := exactKeys(path, b); err != nil {
		return err
	}
	return s.apply(path, b, &f)
}

// exactKeys refuses what the parser takes for a key whatever its case: of two
// spellings of one key it would keep the last, and say nothing.
func exactKeys(path string, text []byte) error {
	var whole map[string]any
	if err := toml.Unmarshal(text, &whole); err != nil {
		return settingsError(path, err)
	}
	check := func(table map[string]any, at ...string) error {
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if full := append(slices.Clone(at), key); !slices.Contains(knownKeys(full), key) {
				return unknownKey(path, lineOf(text, strings.Join(at, "."), key), full)
			}
		}
		return nil
	}
	if err := check(whole); err != nil {
		return err
	}
	profiles, _ := whole["profiles"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		if p, ok := profiles[name].(map[string]any); ok {
			if err := check(p, "profiles", name); err != nil {
				return err
			}
		}
	}
	return nil
}

// settingsError names file, line and key of what the parser refused.
func settingsError(path string, err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		e := strict.Errors[0]
		row, _ := e.Position()
		return unknownKey(path, row, e.Key())
	}
	var d *toml.DecodeError
	if errors.As(err, &d) {
		row, _ := d.Position()
		key := ""
		if len(d.Key()) > 0 {
			key = strings.Join(d.Key(), ".") + ": "
		}
		what := strings.TrimPrefix(d.Error(), "toml: ")
		if strings.HasPrefix(what, "cannot decode TOML") {
			// The parser goes on with the names of our types.
			what = "the value is of the wrong kind (a command is a list of words, a duration is whole seconds or text like \"15m\"; docs/settings.md)"
		}
		return usage("%s:%d: %s%s", path, row, key, what)
	}
	return usage("%s: %v", path, err)
}

// unknownKey names a key that is not there, and the one that may be meant.
func unknownKey(path string, line int, key []string) error {
	known, wrong, hint := knownKeys(key), key[0], ""
	if ofProfile(key) {
		wrong = key[2]
	}
	if near := nearest(wrong, slices.Clone(known)); near != "" {
		hint = " (did you mean " + near + "?)"
	}
	return usage("%s:%d: unknown key %q%s; known are: %s", path, line, strings.Join(key, "."), hint, strings.Join(known, ", "))
}

// ofProfile tells whether a key is one within a profile.
func ofProfile(key []string) bool { return len(key) > 2 && key[0] == "profiles" }

// unreadable is a wrong file (a directory, one of another user), unless the
// machine failed: then nobody gave a bad value.
func unreadable(what string, err error) error {
	if errors.Is(err, syscall.EIO) || proc.LacksRoom(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return usage("%s: %v", what, err)
}

func knownKeys(at []string) []string {
	if ofProfile(at) {
		return []string{"command", "max_in_progress", "max_runtime", "on_clean_exit", "wrap", "stdin", "dirty_workspace", "reviewer", "pass_env", "env"}
	}
	return []string{
		"ageing", "allow_network_store", "block_limit", "breaker", "breaker_pause", "claim_ttl", "create_limit", "dirty_workspace", "failure_limit", "heartbeat_stale", "interval", "keep_output", "keep_workspaces", "kill_grace", "launch_grace",
		"lock_timeout", "max_in_progress", "max_in_progress_host", "min_free_memory", "output_limit", "profiles", "rate_limit_cooldown", "reclaim_defer", "retry_backoff",
		"terminal_grace", "violation_limit",
	}
}

// lineOf finds the line of a key in the text, for errors about values that
// parse but make no sense.
func lineOf(text []byte, table, key string) int {
	want := strings.TrimPrefix(table+"."+key, ".")
	plain := strings.NewReplacer(" ", "", "\t", "", "\"", "", "'", "")
	at := ""
	for i, line := range strings.Split(string(text), "\n") {
		l := strings.TrimSpace(line)
		if strings.HasPrefix(l, "[") {
			head, _, _ := strings.Cut(strings.TrimLeft(l, "["), "]")
			at = plain.Replace(head) + "."
			if strings.HasPrefix(at, want+".") {
				return i + 1
			}
			continue
		}
		k, v, ok := strings.Cut(l, "=")
		name := at + plain.Replace(k)
		inline := strings.HasPrefix(want, name+".") && strings.HasPrefix(strings.TrimSpace(v), "{")
		if ok && (name == want || strings.HasPrefix(name, want+".") || inline) {
			return i + 1
		}
	}
	return 1
}

func (s *settings) apply(path string, text []byte, f *fileSettings) error {
	bad := func(table, key, format string, args ...any) error {
		name := key
		if table != "" {
			name = table + "." + key
		}
		return usage("%s:%d: %s: %s", path, lineOf(text, table, key), name, fmt.Sprintf(format, args...))
	}
	for _, b := range s.bounded(f) {
		if !b.given {
			continue
		}
		if err := b.set(); err != nil {
			return bad("", b.key, "%v", err)
		}
	}
	if f.AllowNetworkStore != nil {
		s.allowNetwork = *f.AllowNetworkStore
	}
	for _, name := range slices.Sorted(maps.Keys(f.Profiles)) {
		if err := profileName(name); err != nil {
			return bad("profiles", name, "%v", err)
		}
		p, err := profileWith(s.policy.Profiles[name], path, name, f.Profiles[name], bad)
		if err != nil {
			return err
		}
		s.policy.Profiles[name] = p
	}
	return nil
}

// boundedSetting is one scalar with the check of its value.
type boundedSetting struct {
	key   string
	given bool
	set   func() error
}

func (s *settings) bounded(f *fileSettings) []boundedSetting {
	p, l := &s.policy, &s.policy.Limits
	dur := func(key string, v *durationText, to *time.Duration, least time.Duration) boundedSetting {
		return boundedSetting{key, v != nil, func() error { return setDuration(*v, to, least) }}
	}
	return []boundedSetting{
		{"failure_limit", f.FailureLimit != nil, func() error { return setCount(*f.FailureLimit, &l.FailureLimit) }},
		{"violation_limit", f.ViolationLimit != nil, func() error { return setCount(*f.ViolationLimit, &l.ViolationLimit) }},
		{"max_in_progress", f.MaxInProgress != nil, func() error {
			var n int64
			err := setCount(int64(*f.MaxInProgress), &n)
			p.MaxInProgress = int(n)
			return err
		}},
		{"create_limit", f.CreateLimit != nil, func() error { return setOrOff(*f.CreateLimit, &l.CreateLimit) }},
		{"max_in_progress_host", f.HostCap != nil, func() error {
			var n int64
			err := setCount(int64(*f.HostCap), &n)
			p.HostCap = int(n)
			return err
		}},
		{"min_free_memory", f.MinFreeMemory != nil, func() error {
			return f.MinFreeMemory.set(&s.minFreeMemory, 0, 1<<50)
		}},
		{"breaker", f.Breaker != nil, func() error { return setOrOff(*f.Breaker, &p.Breaker.Runs) }},
		{"block_limit", f.BlockLimit != nil, func() error { return setOrOff(*f.BlockLimit, &l.BlockLimit) }},
		dur("breaker_pause", f.BreakerPause, &p.Breaker.Pause, time.Second),
		dur("ageing", f.Ageing, &p.Ageing, 0),
		dur("interval", f.Interval, &s.interval, time.Second),
		dur("claim_ttl", f.ClaimTTL, &l.ClaimTTL, time.Second),
		dur("launch_grace", f.LaunchGrace, &p.LaunchGrace, 100*time.Millisecond),
		dur("kill_grace", f.KillGrace, &p.KillGrace, 0),
		dur("terminal_grace", f.TerminalGrace, &p.TerminalGrace, 0),
		dur("rate_limit_cooldown", f.RateLimitCooldown, &l.RateLimitCooldown, 0),
		dur("heartbeat_stale", f.HeartbeatStale, &l.HeartbeatStale, 0),
		dur("reclaim_defer", f.ReclaimDefer, &p.ReclaimDefer, 0),
		dur("retry_backoff", f.RetryBackoff, &l.RetryBackoff, 0),
		dur("lock_timeout", f.LockTimeout, &s.lockTimeout, time.Millisecond),
		dur("keep_output", f.KeepOutput, &s.keepOutput, 0),
		{"dirty_workspace", f.DirtyWorkspace != nil, func() error { return setDirty(*f.DirtyWorkspace, &s.dirtyWorkspace) }},
		dur("keep_workspaces", f.KeepWorkspaces, &s.keepWorkspaces, 0),
		{"output_limit", f.OutputLimit != nil, func() error { return f.OutputLimit.set(&s.outputLimit, proc.MinOutputLimit, proc.MaxOutputLimit) }},
	}
}

func setDirty(word string, to *string) error {
	switch word {
	case tick.DirtyKeep, tick.DirtyRefuse, tick.DirtyStash:
		*to = word
		return nil
	}
	return fmt.Errorf("%q is none of %s, %s, %s", word, tick.DirtyKeep, tick.DirtyRefuse, tick.DirtyStash)
}

func setDuration(text durationText, to *time.Duration, least time.Duration) error {
	d, err := parseDuration(string(text))
	if err != nil {
		return err
	}
	if d < least {
		return fmt.Errorf("%s is less than %s", d, least)
	}
	*to = d
	return nil
}

func setCount(n int64, to *int64) error {
	if n < 1 || n > projection.MaxRetries {
		return fmt.Errorf("%d is out of range (1 to %d)", n, projection.MaxRetries)
	}
	*to = n
	return nil
}

// setOrOff is setCount for what 0 turns off, also where the home's file has it on.
func setOrOff(n int64, to *int64) error {
	if n < 0 || n > projection.MaxRetries {
		return fmt.Errorf("%d is out of range (0 to %d; 0 = off)", n, projection.MaxRetries)
	}
	*to = n
	return nil
}

// environment applies the variables of the contract, through the same checks
// as the file.
func (s *settings) environment() error {
	var f fileSettings
	durations := map[string]**durationText{
		"KANLOG_CLAIM_TTL": &f.ClaimTTL, "KANLOG_LAUNCH_GRACE": &f.LaunchGrace, "KANLOG_KILL_GRACE": &f.KillGrace,
		"KANLOG_TERMINAL_GRACE": &f.TerminalGrace, "KANLOG_RATE_LIMIT_COOLDOWN": &f.RateLimitCooldown,
		"KANLOG_HEARTBEAT_STALE": &f.HeartbeatStale, "KANLOG_RECLAIM_DEFER": &f.ReclaimDefer,
		"KANLOG_RETRY_BACKOFF": &f.RetryBackoff, "KANLOG_LOCK_TIMEOUT": &f.LockTimeout,
	}
	for name, to := range durations {
		if v := durationText(os.Getenv(name)); v != "" {
			*to = &v
		}
	}
	for name, to := range map[string]**int64{"KANLOG_FAILURE_LIMIT": &f.FailureLimit, "KANLOG_VIOLATION_LIMIT": &f.ViolationLimit} {
		v := os.Getenv(name)
		if v == "" {
			continue
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return usage("%s: %q is no whole number", name, v)
		}
		*to = &n
	}
	for _, b := range s.bounded(&f) {
		if b.given {
			if err := b.set(); err != nil {
				return usage("KANLOG_%s: %v", strings.ToUpper(b.key), err)
			}
		}
	}
	return nil
}
