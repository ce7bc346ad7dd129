package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// fault is why a profile's command cannot be started from here.
type fault struct {
	message string
	file    string // that was found, "" if none was
	script  string // that names an interpreter which is not there
	key     string // the setting that names it
	err     error
}

// broken are the profiles whose command cannot be started here, with why. It is
// asked before a claim is spent: a command that is not there is no failure of any
// card, and becomes none of all of them.
func (a *app) broken(set *settings) map[string]string {
	list := map[string]string{}
	w := &world{a: a, set: set}
	for name, p := range set.policy.Profiles {
		if f := commandFault(p, w.environment(tick.Launch{Task: &projection.Task{}, Profile: p}, "", prepared{})); f != nil {
			list[name] = f.message
		}
	}
	return list
}

// commandFault looks for the command as the supervisor will, with the environment of
// the worker; nil if it can be started as far as can be told.
func commandFault(p tick.Profile, env []string) *fault {
	// Behind a wrapper the command may be in a container.
	name, key, noun := p.Argv()[0], "command", "command"
	if len(p.Wrap) > 0 {
		key, noun = "wrap", "wrapper"
	}
	if slices.Contains(placeholders, name) {
		return nil // not known before there is a card
	}
	file, err := proc.FindCommand(name, "/", env)
	switch {
	case err == nil:
		if missing := lacksInterpreter(file); missing != "" {
			return &fault{fmt.Sprintf("%s names the interpreter %s, which is not there", file, missing), file, file, key, fs.ErrNotExist}
		}
		return nil
	case errors.Is(err, fs.ErrPermission) && file != "":
		return &fault{file + " is not executable", file, "", key, err}
	case file == "":
		return &fault{fmt.Sprintf("the %s %q is not found in the worker's PATH (%s)", noun, name, pathOf(env)), "", "", key, err}
	case strings.Contains(file, "/~/"):
		err = fmt.Errorf("%w (~ means nothing here: write the directory out)", err)
	}
	return &fault{fmt.Sprintf("the %s cannot be executed: %v", noun, err), file, "", key, err}
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
