package main

import (
	"bufio"
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
	w := &world{a: d.a, set: &d.set}
	for _, name := range slices.Sorted(maps.Keys(d.set.policy.Profiles)) {
		p := d.set.policy.Profiles[name]
		env := w.environment(tick.Launch{Task: &projection.Task{}, Profile: p}, "", "", "")
		list = append(list, d.checkCommand(p, env)...)
		list = append(list, d.checkRelativeWords(p)...)
		list = append(list, d.checkPassEnv(p, env)...)
	}
	return list, nil
}

func (d *doctor) checkCommand(p tick.Profile, env []string) []finding {
	table, name := "profiles."+p.Name, p.Command[0]
	if slices.Contains(placeholders, name) {
		return nil // not known before there is a card
	}
	const why = "each card of this profile fails to start, twice by default, and is then blocked"
	file, err := proc.FindCommand(name, "/", env)
	fix := d.changeSetting(table, "command")
	switch {
	case err == nil:
		if script := lacksInterpreter(file); script != "" {
			return []finding{found(sevError, table, fmt.Sprintf("%s: %s names the interpreter %s, which is not there", table, file, script), why, edit(file, 1))}
		}
		return nil
	case errors.Is(err, fs.ErrPermission) && file != "":
		return []finding{found(sevError, table, fmt.Sprintf("%s: %s is not executable", table, file), why, "chmod +x "+shellWord(file))}
	case file == "":
		message := fmt.Sprintf("%s: the command %q is not found in the worker's PATH (%s)", table, name, pathOf(env))
		return []finding{found(sevError, table, message, why+". A dispatch from elsewhere, cron for example, may have another PATH", fix)}
	case strings.Contains(file, "/~/"):
		err = fmt.Errorf("%w (~ means nothing here: write the directory out)", err)
	}
	return []finding{found(sevError, table, fmt.Sprintf("%s: the command cannot be executed: %v", table, err), why, fix)}
}

func pathOf(env []string) string {
	for _, v := range env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			return path
		}
	}
	return "none"
}

// lacksInterpreter returns the interpreter of a script if that is not there: the
// kernel then says that the script itself is not.
func lacksInterpreter(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return "" // may be executed without being readable
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 256).ReadSlice('\n')
	rest, ok := strings.CutPrefix(string(line), "#!")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 {
		return ""
	}
	if _, err := os.Stat(words[0]); errors.Is(err, fs.ErrNotExist) {
		return words[0]
	}
	return ""
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
