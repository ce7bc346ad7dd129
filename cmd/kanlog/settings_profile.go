package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kanlog/projection"
	"kanlog/tick"
)

type fileProfile struct {
	Command       []string          `toml:"command"`
	MaxInProgress *int              `toml:"max_in_progress"`
	MaxRuntime    *durationText     `toml:"max_runtime"`
	OnCleanExit   *string           `toml:"on_clean_exit"`
	Wrap          *[]string         `toml:"wrap"`
	Stdin         *string           `toml:"stdin"`
	Dirty         *string           `toml:"dirty_workspace"`
	Reviewer      *string           `toml:"reviewer"`
	PassEnv       *[]string         `toml:"pass_env"`
	Env           map[string]string `toml:"env"`
}

// profileWith is a profile with what one file says of it put over it; bad makes the
// error for a key of a table.
func profileWith(p tick.Profile, path, name string, fp fileProfile, bad func(table, key, format string, args ...any) error) (tick.Profile, error) {
	table := "profiles." + name
	p.Name = name
	if p.OnCleanExit == "" {
		p.OnCleanExit = projection.CleanViolation
	}
	if fp.Command != nil {
		p.Command = beside(path, fp.Command)
	}
	if fp.Wrap != nil {
		p.Wrap = beside(path, *fp.Wrap)
		if len(p.Wrap) > 0 && p.Wrap[0] == "" {
			return p, bad(table, "wrap", "its first word is empty; [] is for none")
		}
	}
	if len(p.Command) == 0 || p.Command[0] == "" {
		return p, bad(table, "command", "a profile needs a command, for example [\"./agent.sh\", \"{task}\"]")
	}
	if wrong := wrongWord(p.Command); wrong != "" {
		return p, bad(table, "command", "%s", wrong)
	}
	if wrong := wrongWord(p.Wrap); wrong != "" {
		return p, bad(table, "wrap", "%s", wrong)
	}
	if fp.Stdin != nil {
		if *fp.Stdin != tick.StdinNone && *fp.Stdin != tick.StdinContext {
			return p, bad(table, "stdin", "%q is none of %s, %s", *fp.Stdin, tick.StdinNone, tick.StdinContext)
		}
		p.Stdin = *fp.Stdin
	}
	if fp.Dirty != nil {
		if err := setDirty(*fp.Dirty, &p.DirtyWorkspace); err != nil {
			return p, bad(table, "dirty_workspace", "%v", err)
		}
	}
	if fp.MaxInProgress != nil {
		if *fp.MaxInProgress < 1 {
			return p, bad(table, "max_in_progress", "%d is not at least 1", *fp.MaxInProgress)
		}
		p.MaxInProgress = *fp.MaxInProgress
	}
	if fp.MaxRuntime != nil {
		var err error
		if p.MaxRuntime, err = parseDuration(string(*fp.MaxRuntime)); err != nil {
			return p, bad(table, "max_runtime", "%v", err)
		}
		if p.MaxRuntime != 0 && p.MaxRuntime < time.Second {
			return p, bad(table, "max_runtime", "%s is shorter than a second", p.MaxRuntime)
		}
	}
	if fp.OnCleanExit != nil {
		switch *fp.OnCleanExit {
		case projection.CleanViolation, projection.CleanComplete, projection.CleanReview:
			p.OnCleanExit = *fp.OnCleanExit
		default:
			return p, bad(table, "on_clean_exit", "%q is none of violation, complete, review", *fp.OnCleanExit)
		}
	}
	if fp.Reviewer != nil {
		if strings.TrimSpace(*fp.Reviewer) == "" {
			return p, bad(table, "reviewer", "it is empty; leave it out for a person")
		}
		if err := profileName(*fp.Reviewer); err != nil {
			return p, bad(table, "reviewer", "%v; leave it out for a person", err)
		}
		p.Reviewer = *fp.Reviewer
	}
	if fp.PassEnv != nil {
		p.PassEnv, p.PassEnvSet = *fp.PassEnv, true
	}
	for k, v := range fp.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			return p, bad(table, "env", "%q is no name of an environment variable", k)
		}
		if strings.Contains(v, "\x00") {
			return p, bad(table, "env", "the value of %s holds a NUL byte", k)
		}
		if strings.HasPrefix(k, "KANLOG_") {
			return p, bad(table, "env", "%s is set by kanlog", k)
		}
	}
	if fp.Env != nil {
		p.Env = fp.Env
	}
	return p, nil
}

// profileName refuses what create takes for no assignee: a profile of such a name
// would stand there, and no card could ever be its.
func profileName(name string) error {
	if checkGiven("assignee", name) != nil {
		return fmt.Errorf("%q can be no card's assignee; give it another name", name)
	}
	return projection.CheckProfileName(name)
}

// beside gives a program that is named with a slash its place beside the settings
// that name it, whatever the worker's directory will be.
func beside(settings string, argv []string) []string {
	if len(argv) == 0 || !strings.Contains(argv[0], "/") || filepath.IsAbs(argv[0]) {
		return argv
	}
	return append([]string{filepath.Join(filepath.Dir(settings), argv[0])}, argv[1:]...)
}

// wrongWord says what no card could be started with, "" if nothing.
func wrongWord(argv []string) string {
	for _, arg := range argv {
		switch {
		case strings.Contains(arg, "\x00"): // the kernel takes no such word
			return fmt.Sprintf("%q holds a NUL byte", arg)
		case isPlaceholder(arg) && !slices.Contains(placeholders, arg):
			return fmt.Sprintf("unknown placeholder %s; there are %s, each as a whole argument", arg, strings.Join(placeholders, " "))
		}
	}
	return ""
}

// placeholders are replaced in a profile's command where they are a whole
// argument.
var placeholders = []string{"{task}", "{run}", "{title}", "{workspace}", "{context}"}

// isPlaceholder tells whether an argument is meant as one, known or not.
func isPlaceholder(arg string) bool {
	name, ok := strings.CutPrefix(arg, "{")
	name, closed := strings.CutSuffix(name, "}")
	return ok && closed && madeOf(name, lowercase+"_")
}
