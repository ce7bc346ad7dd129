package main

import (
	"io"
	"strings"
	"testing"
)

// Only the verb that is called is made where it is plain which; where it is not,
// all are, so that help, suggestions and completion know them.
func TestPlainVerb(t *testing.T) {
	for line, want := range map[string]string{
		"list":                          "list",
		"--json --home /x list":         "list",
		"--home=/x --board b show --no": "show",
		"show help":                     "show",
		"":                              "",
		"help list":                     "",
		"--help list":                   "",
		"-- list":                       "",
		"--home":                        "",
		"--nonsense list":               "",
		"--json=perhaps list":           "",
		"--json lst":                    "",
		"__complete list":               "",
	} {
		verb := plainVerb(strings.Fields(line))
		if verb != want {
			t.Errorf("kanlog %s: %q, want %q", line, verb, want)
		}
		n := 0
		for _, c := range newRoot(&app{out: io.Discard, errw: io.Discard}, verb).Commands() {
			if verbs[c.Name()] != nil {
				n++
			}
		}
		if all := len(verbs); verb != "" && n != 1 || verb == "" && n != all {
			t.Errorf("kanlog %s: %d of %d verbs are made", line, n, all)
		}
	}
}
