package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The document has what the help has.
func TestWordsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "scenarios.md"))
	if err != nil {
		t.Fatal(err)
	}
	var usages []string
	for _, w := range Words {
		usages = append(usages, strings.TrimPrefix(w.Usage, "[!] "))
	}
	for _, d := range Deeds {
		usages = append(usages, d.Usage)
	}
	for _, usage := range usages {
		if !strings.Contains(string(text), "`"+usage+"`") {
			t.Errorf("docs/scenarios.md does not have `%s`", usage)
		}
	}
}

// Each thing that a worker can do is either an answer, which is a call of kanlog, or
// something that it does by itself.
func TestDeedsThatAreCalls(t *testing.T) {
	for _, c := range []struct{ step, want string }{
		{"complete", "complete"},
		{"complete all well", "complete --summary|all well"},
		{"fail no luck", "fail --|no luck"},
		{"block -- a key", "block --|-- a key"},
		{"defer 30m", "defer --for|30m"},
		{"defer 30m quota is used up", "defer --reason|quota is used up --for|30m"},
		{"request-review look", "request-review --summary|look"},
		{"approve", "approve"},
		{"request-changes no test", "request-changes --|no test"},
		{"exit 1", ""}, {"hang", ""}, {"ignore-term", ""}, {"fork", ""}, {"sleep 1s", ""},
	} {
		step := Step(strings.Fields(c.step))
		if err := step.check(); err != nil {
			t.Error(err)
		}
		got := strings.Join(step.Verb(), "|")
		if want := strings.ReplaceAll(c.want, " --", "|--"); got != want {
			t.Errorf("%s: %s, want %s", c.step, got, want)
		}
	}
}
