package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kanlog/eventlog"
)

// settingsFiles are the files that hold settings, the one that wins last.
func (d *doctor) settingsFiles() []string {
	return []string{filepath.Join(d.a.home, settingsName), filepath.Join(d.a.boardDir, settingsName)}
}

// checkSettings reads both files and the environment, each by itself, so that
// what is wrong with one does not hide the others.
func (d *doctor) checkSettings() ([]finding, error) {
	var list []finding
	d.set = defaults()
	const why = "every command refuses to work by half-read settings (exit 2), so nothing is dispatched"
	for _, path := range d.settingsFiles() {
		if err := d.set.file(path); err != nil {
			list = append(list, found(sevError, path, err.Error(), why, d.settingsFix(path, err)))
		}
	}
	if err := d.set.environment(); err != nil {
		name, _, _ := strings.Cut(err.Error(), ":")
		list = append(list, found(sevError, name, "the environment has a bad value: "+err.Error(), why, "unset "+name))
	}
	d.settled = len(list) == 0
	d.a.set = &d.set
	d.file = eventlog.Open(d.a.boardDir, d.options())
	return list, nil
}

func (d *doctor) settingsFix(path string, err error) string {
	if m := regexp.MustCompile(`:(\d+): `).FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return edit(path, n)
	}
	st, serr := os.Stat(path)
	switch {
	case serr == nil && st.IsDir():
		return "mv " + shellWord(path) + " " + shellWord(path+".directory")
	case unix.Access(path, unix.R_OK) == unix.EACCES:
		return d.opens(path)
	}
	return edit(path, 1)
}

// contradiction is two settings that do not go together.
type contradiction struct {
	severity, table string
	keys            []string // either of which may be changed
	message, why    string
}

// contradictions of settings that are each within their bounds.
func contradictions(s *settings) []contradiction {
	var list []contradiction
	p := s.dispatchPolicy()
	longer := func(severity, key string, x time.Duration, than string, y time.Duration, why string) {
		if x > y {
			list = append(list, contradiction{severity, "", []string{key, than}, fmt.Sprintf("%s (%s) is longer than %s (%s)", key, x, than, y), why})
		}
	}
	longer(sevWarning, "kill_grace", p.KillGrace, "terminal_grace", p.TerminalGrace,
		"a worker that lives on after its answer is given more time to end than it had to live on, and keeps its slot")
	longer(sevWarning, "launch_grace", p.LaunchGrace, "claim_ttl", p.Limits.ClaimTTL,
		"a claim may run out while its supervisor still has time to register")
	longer(sevWarning, "lock_timeout", s.lockTimeout, "launch_grace", p.LaunchGrace,
		"a supervisor that waits for a busy board is given up and booked as failed before its wait is over")
	for _, name := range slices.Sorted(maps.Keys(p.Profiles)) {
		f, table := p.Profiles[name], "profiles."+name
		if f.MaxInProgress > p.MaxInProgress {
			list = append(list, contradiction{sevNote, table, []string{"max_in_progress"},
				fmt.Sprintf("%s.max_in_progress is %d, but the board's cap is %d", table, f.MaxInProgress, p.MaxInProgress),
				"the board's cap is reached first, so that the profile's means nothing"})
		}
		if f.MaxRuntime != 0 && f.MaxRuntime <= p.KillGrace {
			list = append(list, contradiction{sevNote, table, []string{"max_runtime"},
				fmt.Sprintf("%s.max_runtime (%s) is not longer than kill_grace (%s)", table, f.MaxRuntime, p.KillGrace),
				"a worker that is out of time may take as long again to end"})
		}
		if _, known := p.Profiles[f.Reviewer]; f.Reviewer != "" && !known {
			list = append(list, contradiction{sevWarning, table, []string{"reviewer"},
				fmt.Sprintf("%s.reviewer is %q, which has no profile", table, f.Reviewer),
				"no dispatch starts the reviews of its work; a person has to see to each of them"})
		}
	}
	return list
}

func (d *doctor) checkLimits() ([]finding, error) {
	var list []finding
	for _, c := range contradictions(&d.set) {
		subject := strings.TrimPrefix(c.table+"."+c.keys[0], ".")
		list = append(list, found(c.severity, subject, c.message, c.why, d.changeSetting(c.table, c.keys...)))
	}
	return list, nil
}

// changeSetting is the command that gets at a setting: where one of these keys
// stands now, or where it would be put.
func (d *doctor) changeSetting(table string, keys ...string) string {
	files := d.settingsFiles()
	for _, key := range keys {
		if name := "KANLOG_" + strings.ToUpper(key); table == "" && os.Getenv(name) != "" {
			return "unset " + name
		}
		for _, path := range slices.Backward(files) {
			body, _ := os.ReadFile(path)
			// lineOf says 1 also of what it did not find.
			n := lineOf(body, table, key)
			line := strings.Split(string(body), "\n")[n-1]
			if strings.Contains(line, key) || strings.Contains(line, "{") {
				return edit(path, n)
			}
		}
	}
	return edit(files[0], 1)
}
