package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Whatever group of verbs a word stands behind: if it is none of them the call is
// wrong and says what would be right, and help answers it like the call itself.
func TestUnknownVerbsAreRefusedInEveryGroup(t *testing.T) {
	t.Setenv("KANLOG_HOME", t.TempDir())
	_, verbs := everyVerbOf(t)
	for _, cmd := range verbs {
		path := strings.Fields(cmd.CommandPath())[1:]
		if cmd.HasSubCommands() {
			refused(t, append(path, "zzzzzz"), "unknown verb \"zzzzzz\"", "kanlog help")
			refused(t, append([]string{"help"}, append(path, "zzzzzz")...), "unknown verb \"zzzzzz\"", "kanlog help")
			refused(t, append(path, "--json"), "which verb?", "kanlog help")
			first := firstVerb(cmd)
			refused(t, append(path, first[:len(first)-1]+"q"), "did you mean", first)
		} else if cmd.Name() != "help" {
			refused(t, append([]string{"help"}, append(path, "zzzzzz")...), "no verbs of its own", "kanlog help "+strings.Join(path, " "))
		}
		refused(t, append(path, "--zzzzzz"), "--zzzzzz", "kanlog help")
	}
}

// What takes no arguments refuses one, also where the library made the verb.
func TestArgumentsTooManyAreRefused(t *testing.T) {
	t.Setenv("KANLOG_HOME", t.TempDir())
	for _, call := range []string{"completion bash x", "completion zsh x", "boards list x", "ps x", "stats x", "init x"} {
		refused(t, strings.Fields(call), "no arguments")
	}
}

func firstVerb(group *cobra.Command) string {
	for _, c := range group.Commands() {
		if c.IsAvailableCommand() {
			return c.Name()
		}
	}
	return ""
}

// refused runs the program and wants a wrong call with these words, and nothing on
// stdout.
func refused(t *testing.T, args []string, says ...string) {
	t.Helper()
	var out, errw bytes.Buffer
	code := run(args, &out, &errw)
	if code != exitUsage || out.Len() > 0 {
		t.Errorf("%q: exit %d, want %d; stdout %q", args, code, exitUsage, out.String())
	}
	for _, want := range says {
		if !strings.Contains(errw.String(), want) {
			t.Errorf("%q says %q, want %q in it", args, errw.String(), want)
		}
	}
}
