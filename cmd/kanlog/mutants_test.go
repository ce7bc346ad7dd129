package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// A mutant is a deliberate bug. Each file of testdata/mutants holds one, with the
// checks that must fail for it: a check that nothing can make fail checks
// nothing. Here, in every test run, it is only made sure that the bugs can still
// be put in; scripts/mutants puts in each and runs its checks, which takes long.

var (
	mutantsRun  = flag.Bool("mutants.run", false, "put in each mutant and run its checks, as scripts/mutants does")
	mutantsOnly = flag.String("mutants.only", "", "only these mutants, separated by commas")
	mutantsJobs = flag.Int("mutants.jobs", 1, "how many mutants are tried at once")
	mutantsSims = flag.Int("mutants.histories", 2000, "how many histories a check by simulation runs")
)

const (
	root       = "../.."
	mutantsDir = root + "/testdata/mutants"
	// simulationCheck stands for the simulation of the protocol.
	simulationCheck = "simulation"
	// becomes is the name of the part that holds the new text.
	becomes = "becomes"
)

// mutant is one file of testdata/mutants; its README says how they are written.
type mutant struct {
	name   string
	broken string // what, in a sentence
	checks []mutantCheck
	edits  []mutantEdit
}

type mutantCheck struct {
	pkg  string // below the root, "./proc"
	test string // of Go's -run, without ^ and $
}

func (c mutantCheck) simulation() bool { return c.test == "TestSimulation" }

// mutantEdit replaces whole lines of a file.
type mutantEdit struct{ path, old, new string }

func parseMutant(name string, text []byte) (m mutant, err error) {
	m.name = name
	a := txtar.Parse(text)
	for line := range strings.Lines(string(a.Comment)) {
		line = strings.TrimSpace(line)
		check, is := strings.CutPrefix(line, "check:")
		switch f := strings.Fields(check); {
		case line == "" || strings.HasPrefix(line, "#"):
		case !is:
			m.broken = strings.TrimSpace(m.broken + " " + line)
		case len(f) == 1 && f[0] == simulationCheck:
			m.checks = append(m.checks, mutantCheck{"./cmd/kanlog", "TestSimulation"})
		case len(f) == 2 && strings.HasPrefix(f[0], "./") && strings.HasPrefix(f[1], "Test"):
			m.checks = append(m.checks, mutantCheck{f[0], f[1]})
		default:
			return m, fmt.Errorf("%q is not \"check: ./package TestName\" or \"check: %s\"", line, simulationCheck)
		}
	}
	switch {
	case !strings.HasSuffix(m.broken, ".") || strings.Contains(m.broken, "|"):
		return m, fmt.Errorf("it begins with a sentence that says what is broken, not with %q", m.broken)
	case len(m.checks) == 0:
		return m, errors.New("it names no check that must fail")
	case len(a.Files) == 0 || len(a.Files)%2 != 0:
		return m, fmt.Errorf("its parts are pairs: a file's name with the old text, and %q with the new one", becomes)
	}
	for i := 0; i < len(a.Files); i += 2 {
		from, to := a.Files[i], a.Files[i+1]
		if to.Name != becomes || from.Name == becomes || !filepath.IsLocal(from.Name) {
			return m, fmt.Errorf("%q, %q: its parts are a file of this repository and %q in turn", from.Name, to.Name, becomes)
		}
		m.edits = append(m.edits, mutantEdit{from.Name, string(from.Data), string(to.Data)})
	}
	return m, nil
}

// apply returns the changed text of each file.
func (m mutant) apply() (map[string][]byte, error) {
	changed := map[string][]byte{}
	for _, e := range m.edits {
		text, ok := changed[e.path]
		if !ok {
			var err error
			if text, err = os.ReadFile(filepath.Join(root, e.path)); err != nil {
				return nil, err
			}
		}
		// Whole lines, so that "x" is not found in the middle of "max".
		lines := append([]byte{'\n'}, text...)
		old := append([]byte{'\n'}, e.old...)
		switch n := bytes.Count(lines, old); {
		case e.old == "" || e.old == e.new:
			return nil, fmt.Errorf("%s: it changes nothing", e.path)
		case n == 0:
			return nil, fmt.Errorf("%s: the text to replace is not there: the code moved on, and the mutant has to follow it:\n%s", e.path, e.old)
		case n > 1:
			return nil, fmt.Errorf("%s: the text to replace is there %d times; give more of it:\n%s", e.path, n, e.old)
		}
		changed[e.path] = bytes.Replace(lines, old, append([]byte{'\n'}, e.new...), 1)[1:]
	}
	return changed, nil
}

// where names the files and lines that are changed.
func (m mutant) where() string {
	var list []string
	for _, e := range m.edits {
		text, _ := os.ReadFile(filepath.Join(root, e.path))
		before, _, _ := strings.Cut("\n"+string(text), "\n"+e.old)
		list = append(list, fmt.Sprintf("%s:%d", e.path, strings.Count(before, "\n")+1))
	}
	return strings.Join(list, ", ")
}

func readMutants(t *testing.T) []mutant {
	paths, err := filepath.Glob(mutantsDir + "/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no mutants in %s: %v", mutantsDir, err)
	}
	var list []mutant
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMutant(name, text)
		if err != nil {
			t.Errorf("mutant %s: %v", name, err)
			continue
		}
		list = append(list, m)
	}
	return list
}

func TestMutants(t *testing.T) {
	list := readMutants(t)
	if *mutantsRun {
		runMutants(t, list)
		return
	}
	tests := map[string]map[string]bool{}
	for _, m := range list {
		if _, err := m.apply(); err != nil {
			t.Errorf("mutant %s: %v", m.name, err)
		}
		for _, c := range m.checks {
			if tests[c.pkg] == nil {
				tests[c.pkg] = testsOf(t, c.pkg)
			}
			name, sub, _ := strings.Cut(c.test, "/")
			if !tests[c.pkg][name] {
				t.Errorf("mutant %s: there is no %s in %s", m.name, name, c.pkg)
			}
			if _, err := os.Stat(filepath.Join(root, "testdata", sub+".txtar")); name == "TestScenarios" && err != nil {
				t.Errorf("mutant %s: %v", m.name, err)
			}
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

func testsOf(t *testing.T, pkg string) map[string]bool {
	names := map[string]bool{}
	paths, _ := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range testFunc.FindAllSubmatch(text, -1) {
			names[string(match[1])] = true
		}
	}
	return names
}

// TestMutantsAreRefused keeps the reading of mutants from passing for nothing.
func TestMutantsAreRefused(t *testing.T) {
	const head, edit = "Nothing works.\ncheck: simulation\n", "-- go.mod --\nmodule kanlog\n-- becomes --\nmodule other\n"
	for text, want := range map[string]string{
		"":                                   "begins with a sentence",
		"Nothing works.\n" + edit:            "names no check",
		head:                                 "its parts are pairs",
		head + "check: proc\n" + edit:        "is not",
		head + edit + "-- go.mod --\n":       "its parts are pairs",
		head + "-- ../x --\n-- becomes --\n": "a file of this repository",
		head + "-- go.mod --\nmodule kan\n-- becomes --\n":           "the code moved on",
		head + "-- go.mod --\n)\n-- becomes --\n":                    "times; give more",
		head + "-- go.mod --\n)\n-- becomes --\n)\n":                 "changes nothing",
		head + "-- no/such.go --\nx\n-- becomes --\n":                "no such file",
		head + edit + "-- go.mod --\nmodule kanlog\n-- becomes --\n": "the code moved on",
	} {
		m, err := parseMutant("m", []byte(text))
		if err == nil {
			_, err = m.apply()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	m, err := parseMutant("m", []byte(head+edit))
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := m.apply(); err != nil || !bytes.HasPrefix(changed["go.mod"], []byte("module other\n")) || m.where() != "go.mod:1" {
		t.Errorf("applied at %s: %v, %.20q", m.where(), err, changed["go.mod"])
	}
}

// runMutants tries each mutant and prints the table.
func runMutants(t *testing.T, list []mutant) {
	if *mutantsOnly != "" {
		only := strings.Split(*mutantsOnly, ",")
		for _, name := range only {
			if !slices.ContainsFunc(list, func(m mutant) bool { return m.name == name }) {
				t.Errorf("there is no mutant %q", name)
			}
		}
		list = slices.DeleteFunc(list, func(m mutant) bool { return !slices.Contains(only, m.name) })
	}
	type result struct {
		caught string
		err    error
		took   time.Duration
	}
	results := make([]chan result, len(list))
	jobs := make(chan struct{}, max(1, *mutantsJobs))
	dir := t.TempDir()
	for i, m := range list {
		results[i] = make(chan result, 1)
		go func() {
			jobs <- struct{}{}
			defer func() { <-jobs }()
			began := time.Now()
			caught, err := m.try(filepath.Join(dir, m.name))
			results[i] <- result{caught, err, time.Since(began)}
		}()
	}
	fmt.Printf("| mutant | what is broken | where | caught by | s |\n| --- | --- | --- | --- | ---: |\n")
	bad := 0
	for i, m := range list {
		r := <-results[i]
		if r.err != nil {
			bad++
			r.caught = "**NOT CAUGHT**: " + oneLine(r.err.Error(), 300)
			t.Errorf("mutant %s: %v", m.name, r.err)
		}
		fmt.Printf("| %s | %s | %s | %s | %.0f |\n", m.name, m.broken, m.where(), strings.ReplaceAll(r.caught, "|", "/"), r.took.Seconds())
	}
	fmt.Printf("\n%d mutants, %d caught, %d not\n", len(list), len(list)-bad, bad)
}

// try puts one mutant into a build of its own and runs its checks, each of which
// must fail. It says what failed. The tree is not touched: Go reads the changed
// files in place of the real ones.
func (m mutant) try(dir string) (caught string, err error) {
	changed, err := m.apply()
	if err != nil {
		return "", err
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return "", err
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for path, text := range changed {
		real, err := filepath.Abs(filepath.Join(root, path))
		if err != nil {
			return "", err
		}
		overlay.Replace[real] = filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay.Replace)))
		if err := os.WriteFile(overlay.Replace[real], text, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, text, 0o600); err != nil {
		return "", err
	}
	// In the environment, so that a test which builds the program builds it with
	// the mutant too.
	env := append(os.Environ(), "GOFLAGS=-ldflags=-s -overlay="+overlayFile, "TMPDIR="+tmp)
	var by []string
	for _, c := range m.checks {
		bin := filepath.Join(dir, filepath.Base(c.pkg)+".test")
		if _, err := os.Stat(bin); err != nil {
			cmd := exec.Command("go", "test", "-c", "-vet=off", "-o", bin, c.pkg)
			cmd.Dir, cmd.Env = root, env
			if out, err := cmd.CombinedOutput(); err != nil {
				return "", fmt.Errorf("it does not compile: %v\n%s", err, out)
			}
		}
		what, err := c.run(bin, env)
		if err != nil {
			return "", err
		}
		by = append(by, what)
	}
	return strings.Join(by, "; "), nil
}

// checkPatience bounds one check. One that hangs has not said what is wrong: it
// might hang without the mutant on a busy machine too.
const checkPatience = 10 * time.Minute

// run runs one check and says how it failed; that it did not is the error.
func (c mutantCheck) run(bin string, env []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), checkPatience+time.Minute)
	defer cancel()
	pattern := "^" + strings.ReplaceAll(c.test, "/", "$/^") + "$"
	args := []string{"-test.run", pattern, "-test.timeout", checkPatience.String()}
	if c.simulation() {
		args = append(args, "-sim.count", strconv.Itoa(*mutantsSims))
	}
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = filepath.Join(root, c.pkg), env, 5*time.Second
	out, err := cmd.CombinedOutput()
	switch exit := new(exec.ExitError); {
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return "", fmt.Errorf("there is no %s in %s", c.test, c.pkg)
	case err == nil:
		return "", fmt.Errorf("it survives %s in %s", c.test, c.pkg)
	case !errors.As(err, &exit):
		return "", fmt.Errorf("%s in %s: %v", c.test, c.pkg, err)
	}
	return c.failure(string(out))
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	failedSeed = regexp.MustCompile(`(?m)seed (\d+) fails: (.*)$`)
	panicked   = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)$`)
)

// failure reads from the output of a check what failed.
func (c mutantCheck) failure(out string) (string, error) {
	if seed := failedSeed.FindStringSubmatch(out); seed != nil {
		return "simulation, seed " + seed[1] + ": " + oneLine(seed[2], 120), nil
	}
	what := ""
	for _, match := range failedTest.FindAllStringSubmatch(out, -1) {
		// The innermost of the first: subtests follow their test.
		if what == "" || strings.HasPrefix(match[1], what+"/") {
			what = match[1]
		}
	}
	panics := panicked.FindStringSubmatch(out)
	switch {
	case panics != nil && strings.Contains(panics[1], "test timed out"):
		return "", fmt.Errorf("%s in %s hung", c.test, c.pkg)
	case what == "" && panics == nil:
		// Such as a test program that cannot start: no word about the mutant.
		return "", fmt.Errorf("%s in %s did not fail, but could not be run:\n%s", c.test, c.pkg, out)
	case panics != nil:
		what = strings.TrimSpace(or(what, c.test) + " (" + oneLine(panics[1], 80) + ")")
	}
	return strings.TrimPrefix(c.pkg, "./") + " " + what, nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = s[:limit] + "..."
	}
	return s
}
