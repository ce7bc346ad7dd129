package main_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Scenarios of this repository that use the commands that everybody has are scenarios
// for everybody: they pass where a user runs them.
func TestOwnScenariosPassForUsers(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata")
	names := []string{"story_a_morning", "scenario_commands_are_shared", "list_filters", "seed_001_plain_budget_auto_recovers"}
	args := []string{"--home", t.TempDir(), "scenario"}
	for _, name := range names {
		args = append(args, filepath.Join(dir, name+".txtar"))
	}
	cmd := exec.Command(filepath.Join(binDir, "kanlog"), args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range names {
		if !strings.Contains(string(out), "ok   "+name+" ") {
			t.Errorf("%s did not pass:\n%s", name, out)
		}
	}
}
