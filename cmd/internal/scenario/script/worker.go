package script

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/rogpeppe/go-internal/testscript"

	"kanlog/cmd/internal/scenario"
)

// beginWait bounds the wait for a scripted worker to begin: a run that is not of one,
// as of kanlog work, never says that it has.
const beginWait = 5 * time.Second

// clock OFFSET moves the clock of all that follows. A supervisor that runs keeps the
// one it was started with.
func (b *Bench) clock(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || !strings.HasPrefix(args[0], "+") && !strings.HasPrefix(args[0], "-") {
		ts.Fatalf("usage: clock +2h or clock -30m")
	}
	const name = "KANLOG_CLOCK_OFFSET"
	by, err := time.ParseDuration(args[0])
	if err != nil {
		ts.Fatalf("clock: %q is no such time: +90s, +15m, +48h, -30m", args[0])
	}
	was, err := time.ParseDuration(cmp.Or(ts.Getenv(name), "0s"))
	if err != nil {
		ts.Fatalf("clock: %s: %v", name, err)
	}
	b.workersBegin(ts)
	ts.Setenv(name, (was + by).String())
	ts.Logf("for all that follows it is %s", time.Now().Add(was+by).UTC().Format("2006-01-02 15:04:05Z"))
}

// workersBegin waits until the scripted workers that run have begun with their
// scripts. A run is on record before its command is there, and the hours that the
// clock jumps over are time in which a worker would have begun long ago: one that is
// to ignore SIGTERM would be ended by it while the program still starts.
func (b *Bench) workersBegin(ts *testscript.TestScript) {
	out, err := b.CommandOf(ts, []string{"kanlog", "ps", "--json"}).Output()
	if err != nil {
		return // no board yet
	}
	const running = `map(select(.state == "running" and .log != null) | .assignee + "\t" + .log) | join("\n")`
	list, err := Query(running, out)
	ts.Check(err)
	for line := range strings.Lines(list) {
		profile, log, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if _, err := os.Stat(scenario.ScriptOf(ts.Getenv("WORK"), profile)); err != nil {
			continue // no scripted one
		}
		for late := time.Now().Add(beginWait); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
			if said, _ := os.ReadFile(log); strings.Contains(string(said), "scripted: ") {
				break
			}
		}
	}
}

// worker PROFILE BEHAVIOUR... writes what stands in for a profile's command.
func (b *Bench) worker(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: worker PROFILE BEHAVIOUR[, BEHAVIOUR]...")
	}
	list, err := scenario.ParseBehaviours(args[1:])
	if err != nil {
		ts.Fatalf("worker %s: %v", args[0], err)
	}
	work, home := ts.Getenv("WORK"), ts.Getenv("KANLOG_HOME")
	// Settings are written anew below: somebody's own must not be.
	if rel, err := filepath.Rel(work, home); err != nil || !filepath.IsLocal(rel) {
		ts.Fatalf("worker %s: KANLOG_HOME is %q, which is no home of this scenario", args[0], home)
	}
	known, err := standIn(b.Program, work, home, args[0])
	ts.Check(err)
	if !slices.Contains(known, args[0]) {
		ts.Fatalf("worker %s: the settings have no profile of that name (known: %s); add [profiles.%s] to them, or a file home/config.toml to the scenario",
			args[0], cmp.Or(strings.Join(known, ", "), "none"), args[0])
	}
	ts.Check(scenario.Write(scenario.ScriptOf(work, args[0]), list))
}

// standIn puts the scripted worker in the place of a profile's command, "" for every
// profile, in all settings of a home; it says which profiles there are. All else of a
// profile stays, but for what is put before its command: that may be a container, and
// the scripted worker is not in it.
func standIn(program, work, home, profile string) (known []string, err error) {
	paths, err := filepath.Glob(filepath.Join(home, "boards", "*", "config.toml"))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, path := range append(paths, filepath.Join(home, "config.toml")) {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var set map[string]any
		if err := toml.Unmarshal(text, &set); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		profiles, _ := set["profiles"].(map[string]any)
		changed := false
		for name, of := range profiles {
			names[name] = true
			p, ok := of.(map[string]any)
			if !ok || profile != "" && name != profile {
				continue
			}
			command := []string{program, "scenario-worker", scenario.ScriptOf(work, name), name}
			if was, given := p["command"]; given && fmt.Sprint(was) != fmt.Sprint(command) {
				p["command"], changed = command, true
			}
			if _, given := p["wrap"]; given {
				delete(p, "wrap")
				changed = true
			}
		}
		if !changed {
			continue
		}
		if text, err = toml.Marshal(set); err != nil {
			return nil, err
		}
		// Aside and renamed: a dispatcher may be reading it.
		if err := os.WriteFile(path+".new", text, 0o600); err != nil {
			return nil, err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}
