package main

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// docs/seeds.md promises that each thing is proved somewhere. A promise that
// leads nowhere is worse than none, so every name in it is looked up.

// seedTests are the functions of the test files that the project began with.
var seedTests = map[string][]string{
	"000": {
		"test_dispatcher_sigkill_mid_tick_never_destroys_or_duplicates_cards",
		"test_ttl_expiry_extends_a_live_hung_workers_claim_instead_of_respawning",
	},
	"001": {
		"test_fresh_process_sweep_books_the_logged_exit_code",
		"test_violation_budget_trip_holds_until_operator_unblock",
		"test_plain_budget_trip_still_auto_recovers",
		"test_exit_single_query_writes_trailer_only_for_kanban_workers",
	},
	"002": {
		"test_worker_alive_after_completion_is_reaped_on_dispatch_tick",
		"test_recycled_pid_and_legacy_row_are_never_signalled",
		"test_fresh_terminal_run_is_left_alone_until_grace_passes",
		"test_one_failing_row_does_not_abort_the_sweep",
	},
	"003": {
		"test_recycled_pid_is_reclaimed_without_being_signalled",
		"test_matching_fingerprint_keeps_the_live_worker",
		"test_same_pid_and_start_tick_on_another_boot_is_foreign",
		"test_unverified_fingerprint_capture_never_authorizes_a_signal",
	},
}

var (
	scenarioName = regexp.MustCompile(`^testdata/[a-z0-9_]+\.txtar$`)
	goTestName   = regexp.MustCompile(`^((?:cmd/)?[a-z]+)\.((?:Test|Fuzz)[A-Z]\w*)(?:/(.+))?$`)
	proofLike    = regexp.MustCompile(`txtar|Test|Fuzz|^testdata/`)
	anchorLink   = regexp.MustCompile(`\]\(differences\.md#([^)]+)\)`)
)

// tableRows are the rows of the tables in a section, without heading and rule.
func tableRows(t *testing.T, section string) (rows [][]string) {
	t.Helper()
	lines := strings.Split(section, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "| ---") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), "|"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		t.Fatal("no table was read")
	}
	return rows
}

// proofs looks up every name in a text and returns how many lead somewhere.
func proofs(t *testing.T, where, text string) (found int) {
	t.Helper()
	for _, word := range quoted(text) {
		switch m := goTestName.FindStringSubmatch(word); {
		case scenarioName.MatchString(word):
			if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(word))); err != nil {
				t.Errorf("%s names %s: %v", where, word, err)
				continue
			}
			found++
		case m != nil:
			if problem := findGoTest(t, m[1], m[2], m[3]); problem != "" {
				t.Errorf("%s names %s: %s", where, word, problem)
				continue
			}
			found++
		case proofLike.MatchString(word):
			t.Errorf("%s: %q looks like a test and is not written as testdata/NAME.txtar or FOLDER.TestNAME", where, word)
		}
	}
	return found
}

// findGoTest says what is wrong with the name of a test, "" if it is there. A
// case has to stand as a string in a file of the folder that holds the function.
func findGoTest(t *testing.T, folder, function, sub string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ` + function + `\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !declared.Match(text) {
			continue
		}
		if sub != "" && !strings.Contains(string(text), strconv.Quote(sub)) {
			return "the function has no such case"
		}
		return ""
	}
	return "there is no such function"
}

func TestSeedsAreWhereTheDocumentSays(t *testing.T) {
	text := readDoc(t, "docs/seeds.md")
	differences := readDoc(t, "docs/differences.md")
	for _, m := range anchorLink.FindAllStringSubmatch(text, -1) {
		if strings.Count(differences, `<a id="`+m[1]+`"></a>`) != 1 {
			t.Errorf("docs/seeds.md links to differences.md#%s, which is not there once", m[1])
		}
	}

	seeds := map[string][]string{}
	for _, row := range tableRows(t, docSection(t, text, "## The first tests")) {
		if len(row) != 4 || len(quoted(row[1])) != 1 {
			t.Errorf("a row of the first tests is not | seed | `test` | proof | otherwise |: %q", row)
			continue
		}
		name := quoted(row[1])[0]
		seeds[row[0]] = append(seeds[row[0]], name)
		if proofs(t, name, row[2]) == 0 {
			t.Errorf("%s %s: nothing proves it", row[0], name)
		}
		proofs(t, name, row[3])
	}
	if !maps.EqualFunc(seeds, seedTests, slices.Equal) {
		t.Errorf("the first tests in the document are %v, want %v", seeds, seedTests)
	}

	var invariants []string
	for _, part := range [][2]int{{1, 103}, {125, 140}} {
		for n := part[0]; n <= part[1]; n++ {
			invariants = append(invariants, strconv.Itoa(n))
		}
	}
	for _, table := range []struct {
		heading string
		numbers []string
	}{
		{"## Invariants of the reference", invariants},
		{"## Weaknesses of the reference", strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12 13 17 18 19 20 25 26 31")},
	} {
		var numbers []string
		for _, row := range tableRows(t, docSection(t, text, table.heading)) {
			if len(row) != 3 || row[1] == "" {
				t.Errorf("%s: a row is not | number | words | proof |: %q", table.heading, row)
				continue
			}
			numbers = append(numbers, row[0])
			// Its link leads to the reason; that it leads somewhere is checked above.
			absent := strings.HasPrefix(row[2], "[not taken over](differences.md#")
			if proofs(t, table.heading+" "+row[0], row[2]) == 0 && !absent {
				t.Errorf("%s %s: nothing shows it", table.heading, row[0])
			}
		}
		if !slices.Equal(numbers, table.numbers) {
			t.Errorf("%s: the rows are %v, want %v", table.heading, numbers, table.numbers)
		}
	}
}

// TestEverySeedScenarioIsInTheDocument: a story that proves one of these is found
// from what it proves.
func TestEverySeedScenarioIsInTheDocument(t *testing.T) {
	text := readDoc(t, "docs/seeds.md")
	n := 0
	for _, pattern := range []string{"seed_*.txtar", "weakness_*.txtar"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "testdata", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			n++
			if name := path.Join("testdata", filepath.Base(file)); !strings.Contains(text, "`"+name+"`") {
				t.Errorf("docs/seeds.md does not name %s", name)
			}
		}
	}
	if n == 0 {
		t.Error("no scenario was found")
	}
}
