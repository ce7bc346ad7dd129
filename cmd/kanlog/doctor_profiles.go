package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// checkProfiles looks whether the commands could be started, from here and with
// the environment that a worker would get from a dispatch in this shell.
func (d *doctor) checkProfiles() ([]finding, error) {
	var list []finding
	var without []string
	w := &world{a: d.a, set: &d.set}
	for _, name := range slices.Sorted(maps.Keys(d.set.policy.Profiles)) {
		p := d.set.policy.Profiles[name]
		env := w.environment(tick.Launch{Task: &projection.Task{}, Profile: p}, "", prepared{})
		list = append(list, d.checkCommand(p, env)...)
		list = append(list, d.checkRelativeWords(p)...)
		list = append(list, d.checkPassEnv(p, env)...)
		if _, err := proc.FindCommand("kanlog", "/", env); err != nil {
			without = append(without, name)
		}
	}
	if without != nil {
		list = append(list, found(sevNote, "", "no kanlog is in the PATH of the workers of "+some(without, maxFindings),
			"one that calls kanlog by that name ends with 127 and without an answer. Its path is in $KANLOG_BIN", ""))
	}
	return list, nil
}

func (d *doctor) checkCommand(p tick.Profile, env []string) []finding {
	table := "profiles." + p.Name
	f := commandFault(p, env)
	if f == nil {
		return nil
	}
	fix := d.changeSetting(table, f.key)
	switch {
	case f.script != "":
		fix = edit(f.script, 1)
	case errors.Is(f.err, fs.ErrPermission) && f.file != "":
		fix = "chmod +x " + shellWord(f.file)
	}
	return []finding{found(sevError, table, table+": "+f.message, "no card of this profile is started until that is mended. A dispatch from elsewhere, cron for example, may have another PATH", fix)}
}

// checkRelativeWords finds "./agent.sh" behind the first word, where nothing
// makes it one beside the settings.
func (d *doctor) checkRelativeWords(p tick.Profile) []finding {
	var list []finding
	table := "profiles." + p.Name
	for _, word := range p.Command[1:] {
		if !strings.HasPrefix(word, "./") && !strings.HasPrefix(word, "../") && !strings.HasPrefix(word, "~/") {
			continue
		}
		severity, where := sevNote, ""
		for _, path := range d.settingsFiles() {
			beside := filepath.Join(filepath.Dir(path), word)
			if _, err := os.Stat(beside); err == nil {
				severity, where = sevWarning, "; "+beside+" is there, but is not found by this name"
			}
		}
		list = append(list, found(severity, table, fmt.Sprintf("%s.command: %q is looked for in the card's workspace%s", table, word, where),
			"only the first word is found beside the settings file; a scratch workspace is empty at first", d.changeSetting(table, "command")))
	}
	return list
}

func (d *doctor) checkPassEnv(p tick.Profile, env []string) []finding {
	if !p.PassEnvSet {
		return nil
	}
	var list []finding
	table := "profiles." + p.Name
	for _, v := range []struct{ name, severity, why string }{
		{"PATH", sevWarning, "its commands are looked for in a few standard directories only"},
		{"HOME", sevNote, "many programs look there for their configuration and credentials, and fail or ask without it"},
	} {
		if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, v.name+"=") }) && os.Getenv(v.name) != "" {
			list = append(list, found(v.severity, table, fmt.Sprintf("%s: the worker gets no %s: it is neither in pass_env nor in env", table, v.name),
				v.why, d.changeSetting(table, "pass_env")))
		}
	}
	return list
}
