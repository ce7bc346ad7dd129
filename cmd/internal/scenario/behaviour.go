package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Step is one thing that a scripted worker does, with its words.
type Step []string

// Behaviour is what it does in one attempt, step by step.
type Behaviour []Step

// Deed is a kind of step.
type Deed struct{ Name, Usage, Help string }

// Deeds are all kinds. The words of an answer are those of the verb of that name.
var Deeds = []Deed{
	{"complete", "complete [SUMMARY]", "answers: done"},
	{"fail", "fail REASON", "answers: this attempt failed"},
	{"block", "block REASON", "answers: somebody has to help"},
	{"defer", "defer D [REASON]", "answers: try again after D"},
	{"request-review", "request-review [SUMMARY]", "hands in work that somebody has to look at"},
	{"approve", "approve [SUMMARY]", "as a reviewer: good"},
	{"request-changes", "request-changes REASON", "as a reviewer: do it again"},
	{"exit", "exit N", "ends with this exit code and without an answer"},
	{"hang", "hang", "never ends by itself; a SIGTERM ends it"},
	{"ignore-term", "ignore-term", "never ends by itself, nor by SIGTERM"},
	{"fork", "fork", "leaves a process behind; then ends, or goes on: fork then complete"},
	{"sleep", "sleep D", "takes its time (real time: the clock command does not shorten it)"},
}

// ParseBehaviours reads the words of a scenario's worker command: behaviours that a
// comma at the end of a word separates, each of steps that the word then separates.
func ParseBehaviours(words []string) ([]Behaviour, error) {
	var list []Behaviour
	b, step := Behaviour{}, Step{}
	endStep := func() error {
		if len(step) == 0 {
			return errors.New("a behaviour is missing: before and behind each comma and each then stands one")
		}
		if err := step.check(); err != nil {
			return err
		}
		b, step = append(b, step), Step{}
		return nil
	}
	for _, word := range words {
		if word == "then" {
			if err := endStep(); err != nil {
				return nil, err
			}
			continue
		}
		word, comma := strings.CutSuffix(word, ",")
		if word != "" || !comma {
			step = append(step, word)
		}
		if comma {
			if err := endStep(); err != nil {
				return nil, err
			}
			list, b = append(list, b), Behaviour{}
		}
	}
	if err := endStep(); err != nil {
		return nil, err
	}
	return append(list, b), nil
}

// check refuses what the worker could not do.
func (s Step) check() error {
	i := slices.IndexFunc(Deeds, func(d Deed) bool { return d.Name == s[0] })
	if i < 0 {
		var names []string
		for _, d := range Deeds {
			names = append(names, d.Name)
		}
		return fmt.Errorf("a worker cannot %q; it can %s", s[0], strings.Join(names, ", "))
	}
	wrong := func() error {
		return fmt.Errorf("%q is not how that is written: %s", strings.Join(s, " "), Deeds[i].Usage)
	}
	switch s[0] {
	case "exit":
		if n, err := strconv.ParseUint(s.Word(1), 10, 8); err != nil || len(s) != 2 || strconv.FormatUint(n, 10) != s[1] {
			return fmt.Errorf("%w, with N from 0 to 255", wrong())
		}
	case "sleep":
		if d, err := time.ParseDuration(s.Word(1)); err != nil || d < 0 || len(s) != 2 {
			return fmt.Errorf("%w, with D like 500ms or 2s", wrong())
		}
	case "hang", "ignore-term", "fork":
		if len(s) != 1 {
			return wrong()
		}
	case "fail", "block", "request-changes", "defer":
		if s.Rest(1) == "" {
			return wrong()
		}
	}
	return nil
}

// Word is the n-th word, "" if there is none.
func (s Step) Word(n int) string {
	if n < len(s) {
		return s[n]
	}
	return ""
}

// Rest are the words from the n-th on.
func (s Step) Rest(n int) string { return strings.TrimSpace(strings.Join(s[min(n, len(s)):], " ")) }

// Verb is the call of kanlog that a step is, nil if it is none.
func (s Step) Verb() []string {
	with := func(flag, text string) []string {
		if text == "" {
			return []string{s[0]}
		}
		return []string{s[0], flag, text}
	}
	switch s[0] {
	case "complete", "request-review", "approve":
		return with("--summary", s.Rest(1))
	case "fail", "block", "request-changes":
		return []string{s[0], "--", s.Rest(1)}
	case "defer":
		return append(with("--reason", s.Rest(2)), "--for", s.Word(1))
	}
	return nil
}

// A worker's script is a file, and beside it stands one for each card that counts the
// card's attempts.

// ScriptOf is the script of a profile, below a scenario's directory. A name of a
// profile may hold what a file's may not.
func ScriptOf(work, profile string) string {
	return filepath.Join(work, ".workers", fmt.Sprintf("%x", profile), "script")
}

// Write makes the script anew; the attempts of all cards count from here.
func Write(path string, list []Behaviour) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Aside and renamed: a worker may be reading it.
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Next counts an attempt at a card and says what is done in it; nil if the script was
// never written. A card has one run at a time, so nobody else counts it meanwhile.
func Next(path, card string) (Behaviour, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Behaviour
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: it holds no behaviour", path)
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), "attempts-"+card), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := f.Write([]byte{'.'}); err != nil {
		return nil, err
	}
	return list[min(int(info.Size()), len(list)-1)], f.Close()
}
