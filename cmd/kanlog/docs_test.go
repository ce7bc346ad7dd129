package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// What the documents say is checked against the code, in both directions.

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docSection is the text from a heading to the next one of its level.
func docSection(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no heading %q", heading)
	}
	level := strings.Fields(heading)[0]
	section, _, _ := strings.Cut(rest, "\n"+level+" ")
	return section
}

// docRows are the rows of the tables in a text, by what their first cell holds
// in backquotes; a cell with several words gives the row to each.
func docRows(text string) map[string][]string {
	rows := map[string][]string{}
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		for _, word := range quoted(cells[0]) {
			rows[word] = cells
		}
	}
	return rows
}

func quoted(text string) []string {
	var words []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words
}

func tomlKeys(of any) []string {
	var keys []string
	for i := range reflect.TypeOf(of).NumField() {
		keys = append(keys, reflect.TypeOf(of).Field(i).Tag.Get("toml"))
	}
	slices.Sort(keys)
	return keys
}

func sameWords(t *testing.T, what string, documented, inCode []string) {
	t.Helper()
	for _, w := range inCode {
		if !slices.Contains(documented, w) {
			t.Errorf("%s: %q is in the code and not in the document", what, w)
		}
	}
	for _, w := range documented {
		if !slices.Contains(inCode, w) {
			t.Errorf("%s: %q is in the document and not in the code", what, w)
		}
	}
}

func TestEverySettingIsDocumented(t *testing.T) {
	text := readDoc(t, "docs/settings.md")
	board := docRows(docSection(t, text, "## The board"))
	sameWords(t, "docs/settings.md, the board", slices.Sorted(maps.Keys(board)), tomlKeys(fileSettings{}))
	profile := docRows(docSection(t, text, "## A profile: `[profiles.NAME]`"))
	sameWords(t, "docs/settings.md, a profile", slices.Sorted(maps.Keys(profile)), tomlKeys(fileProfile{}))
	// What a wrong key is told to be known.
	sameWords(t, "knownKeys", knownKeys(nil), tomlKeys(fileSettings{}))
	sameWords(t, "knownKeys of a profile", knownKeys([]string{"profiles", "x", "y"}), tomlKeys(fileProfile{}))
}

// TestEveryFormIsDocumented: who looks whether a program may open a store must not be
// told a number of years ago.
func TestEveryFormIsDocumented(t *testing.T) {
	text := readDoc(t, "docs/format.md")
	if want := fmt.Sprintf("The number of the form is **%d**.", eventlog.Format); !strings.Contains(text, want) {
		t.Errorf("docs/format.md does not say %q", want)
	}
	for n := 1; n <= eventlog.Format; n++ {
		if !strings.Contains(text, fmt.Sprintf("\n| %d | ", n)) {
			t.Errorf("docs/format.md does not say what form %d added", n)
		}
	}
}

// TestDocumentedDefaultsAndBounds sets each scalar to its documented bound,
// which is taken, and to less, which is refused.
func TestDocumentedDefaultsAndBounds(t *testing.T) {
	d := defaults()
	inCode := map[string]time.Duration{
		"claim_ttl": d.policy.Limits.ClaimTTL, "launch_grace": d.policy.LaunchGrace, "kill_grace": d.policy.KillGrace,
		"terminal_grace": d.policy.TerminalGrace, "heartbeat_stale": d.policy.Limits.HeartbeatStale,
		"retry_backoff": d.policy.Limits.RetryBackoff, "rate_limit_cooldown": d.policy.Limits.RateLimitCooldown,
		"lock_timeout": d.lockTimeout, "reclaim_defer": d.policy.ReclaimDefer, "breaker_pause": d.policy.Breaker.Pause,
		"interval": d.interval, "ageing": d.policy.Ageing, "keep_output": d.keepOutput, "keep_workspaces": d.keepWorkspaces,
	}
	sizes := map[string]int64{"output_limit": d.outputLimit, "min_free_memory": d.minFreeMemory}
	counts := map[string]int64{
		"failure_limit": d.policy.Limits.FailureLimit, "violation_limit": d.policy.Limits.ViolationLimit, "block_limit": d.policy.Limits.BlockLimit, "create_limit": d.policy.Limits.CreateLimit,
	}
	accepts := func(key, value string) bool {
		s := defaults()
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(key+" = "+value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return s.file(path) == nil
	}
	for key, row := range docRows(docSection(t, readDoc(t, "docs/settings.md"), "## The board")) {
		unit, byDefault, bounds, env := row[1], row[2], row[3], row[4]
		if want := "`KANLOG_" + strings.ToUpper(key) + "`"; env != "-" && env != want {
			t.Errorf("%s: documented variable %s, want %s", key, env, want)
		}
		switch unit {
		case "count":
			if byDefault != strconv.FormatInt(counts[key], 10) {
				t.Errorf("%s: documented default %s, in the code %d", key, byDefault, counts[key])
			}
			for value, ok := range map[string]bool{"-1": false, "0": strings.HasPrefix(bounds, "0 "), "1": true, "1000": true, "1001": false} {
				if accepts(key, value) != ok {
					t.Errorf("%s = %s: taken is %v, documented %v", key, value, !ok, ok)
				}
			}
		case "size":
			bound := strings.Fields(strings.ReplaceAll(bounds, ";", ""))
			var least, most int64
			for i, to := range []*int64{&least, &most} {
				text := bound[2*i]
				if err := sizeText(text).set(to, 0, math.MaxInt64); err != nil || !accepts(key, strconv.Quote(text)) {
					t.Errorf("%s: a documented bound, %s, is refused (%v)", key, text, err)
				}
			}
			if want := "`" + sizeWords(sizes[key]) + "`"; byDefault != want {
				t.Errorf("%s: documented default %s, in the code %s", key, byDefault, want)
			}
			for _, value := range []string{strconv.FormatInt(least-1, 10), strconv.FormatInt(most+1, 10), "-1", `"much"`, "1e999", "true"} {
				if accepts(key, value) {
					t.Errorf("%s = %s is taken, documented is %s", key, value, bounds)
				}
			}
		case "duration":
			if byDefault != "-" {
				if want, err := parseDuration(strings.Trim(byDefault, "`")); err != nil || want != inCode[key] {
					t.Errorf("%s: documented default %s, in the code %s", key, byDefault, inCode[key])
				}
			}
			least, err := parseDuration(strings.Fields(bounds)[0])
			if err != nil {
				t.Fatalf("%s: bounds %q: %v", key, bounds, err)
			}
			if !accepts(key, strconv.Quote(least.String())) {
				t.Errorf("%s: the documented least value %s is refused", key, least)
			}
			if less := least - time.Microsecond; accepts(key, strconv.Quote(less.String())) {
				t.Errorf("%s: %s is taken, documented is %s", key, less, bounds)
			}
		}
	}
}

// goFiles calls fn for each file of the program that is no test.
func goFiles(t *testing.T, fn func(f *ast.File)) {
	t.Helper()
	n := 0
	for _, dir := range []string{"cmd/kanlog", "tick", "projection", "proc", "eventlog"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			fn(f)
			n++
		}
	}
	if n == 0 {
		t.Fatal("no files were read")
	}
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != gotoken.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

func TestEveryEnvironmentVariableIsDocumented(t *testing.T) {
	name := regexp.MustCompile(`^KANLOG_[A-Z_]*[A-Z]$`)
	inCode := map[string]bool{}
	goFiles(t, func(f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Getenv" || sel.Sel.Name == "LookupEnv") {
					if s, ok := literal(call.Args[0]); ok {
						inCode[s] = true
					}
				}
			}
			if e, ok := n.(ast.Expr); ok {
				if s, ok := literal(e); ok && name.MatchString(s) {
					inCode[s] = true
				}
			}
			return true
		})
	})
	var documented []string
	for _, word := range quoted(readDoc(t, "docs/settings.md")) {
		if name.MatchString(word) || strings.HasPrefix(word, "XDG_") || word == "NO_COLOR" || word == "TERM" {
			documented = append(documented, word)
		}
	}
	slices.Sort(documented)
	sameWords(t, "docs/settings.md, environment", slices.Compact(documented), slices.Sorted(maps.Keys(inCode)))
}

func TestEveryFailpointIsDocumented(t *testing.T) {
	inCode := map[string]bool{}
	goFiles(t, func(f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "hit" && sel.Sel.Name != "Hook" {
				return true
			}
			if s, ok := literal(call.Args[0]); ok {
				inCode[s] = true
			} else if sum, ok := call.Args[0].(*ast.BinaryExpr); ok {
				if s, ok := literal(sum.Y); ok {
					inCode["VERB"+s] = true // verb + ".decided"
				}
			}
			return true
		})
	})
	point := regexp.MustCompile(`^(dispatch|supervise|VERB|[a-z]+)\.[a-z]+$`)
	text := readDoc(t, "testdata/README.md")
	_, list, ok := strings.Cut(text, "Points:")
	if !ok {
		t.Fatal("testdata/README.md lists no points")
	}
	list, _, _ = strings.Cut(list, "\n\n")
	var documented []string
	for _, word := range quoted(list) {
		if point.MatchString(word) {
			documented = append(documented, word)
		}
	}
	sameWords(t, "testdata/README.md, failpoints", documented, slices.Sorted(maps.Keys(inCode)))
}

func TestEveryVerbIsInTheReadme(t *testing.T) {
	var verbs []string
	for _, cmd := range newRoot(&app{out: io.Discard, errw: io.Discard}, "").Commands() {
		if !cmd.Hidden && cmd.Name() != "help" && cmd.Name() != "completion" {
			verbs = append(verbs, cmd.Name())
		}
	}
	var documented []string
	for word := range docRows(docSection(t, readDoc(t, "README.md"), "## Verbs")) {
		documented = append(documented, strings.Fields(word)[0])
	}
	slices.Sort(documented)
	sameWords(t, "README.md, verbs", slices.Compact(documented), verbs)
}

// TestDocumentsNameFilesThatExist: a reader who follows a path finds it.
func TestDocumentsNameFilesThatExist(t *testing.T) {
	docs := []string{"README.md", "CHANGELOG.md", "docs/states.md", "docs/settings.md", "docs/format.md", "docs/differences.md", "docs/seeds.md", "docs/scenarios.md"}
	path := regexp.MustCompile(`^[a-z]+/[a-z_/]+(\.[a-z]+)?$`)
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, doc := range docs {
		text := readDoc(t, doc)
		for _, word := range quoted(text) {
			first, _, _ := strings.Cut(word, "/")
			if path.MatchString(word) && slices.Contains([]string{"cmd", "docs", "eventlog", "proc", "projection", "scripts", "testdata", "tick"}, first) {
				if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(word))); err != nil {
					t.Errorf("%s names `%s`: %v", doc, word, err)
				}
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", "..", filepath.Dir(doc), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s links to %s: %v", doc, m[1], err)
			}
		}
	}
}

// TestDocumentsSayWhatScenariosShow: sentences that once said something else than the
// program does. Whoever changes one changes its scenario with it.
func TestDocumentsSayWhatScenariosShow(t *testing.T) {
	for _, c := range []struct{ doc, says, scenario string }{
		{"README.md", "It exits with 0 once the command has answered, whatever the answer (`fail`, `block` and `defer` are some too)", "work_runs_a_command_here"},
		{"README.md", "but for two: `logs` prints what a run wrote, and `watch` draws on a terminal; both refuse it with 2", "watch_shows_the_board"},
		{"docs/daemon.md", "Other verbs refuse it, but not `stop`, which says so and goes on with the defaults", "settings_broken_and_daemons"},
		{"docs/daemon.md", "begun with a bad `config.toml` says so and exits with 2 at once; `--all-boards` begins", "settings_broken_and_daemons"},
		{"docs/doctor.md", "no card of it is started until that is mended: they stay ready, no attempt is made or counted", "fault_c073_the_command_is_not_there"},
	} {
		if text := strings.Join(strings.Fields(readDoc(t, c.doc)), " "); !strings.Contains(text, c.says) {
			t.Errorf("%s does not say %q, which testdata/%s.txtar shows", c.doc, c.says, c.scenario)
		}
		readDoc(t, "testdata/"+c.scenario+".txtar")
	}
}

// TestDocumentedBuiltInBounds: the two numbers that settings cannot change.
func TestDocumentedBuiltInBounds(t *testing.T) {
	text := strings.Join(strings.Fields(readDoc(t, "docs/settings.md")), " ")
	for _, want := range []string{
		"after " + strconv.Itoa(projection.MaxRateLimited) + " times exit 75 or `defer`",
		"after " + strconv.Itoa(projection.MaxInterruptions) + " interruptions in a row",
		"after " + strconv.Itoa(projection.MaxStale) + " runs in a row whose heartbeats stopped",
		"after " + strconv.Itoa(projection.MaxUncounted) + " runs of any of these kinds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/settings.md does not say %q", want)
		}
	}
	for _, word := range secretWords {
		if !strings.Contains(text, "`"+word+"`") {
			t.Errorf("docs/settings.md does not name %q among what looks like a secret", word)
		}
	}
}
