package scenario

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseBehaviours(t *testing.T) {
	for line, want := range map[string]string{
		"complete":                            "[[[complete]]]",
		"exit 1, exit 75, complete":           "[[[exit 1]] [[exit 75]] [[complete]]]",
		"exit 1 , complete all is well":       "[[[exit 1]] [[complete all is well]]]",
		"sleep 2s then fork then exit 0":      "[[[sleep 2s] [fork] [exit 0]]]",
		"block a, b":                          `a worker cannot "b"`,
		"defer 1h quota":                      "[[[defer 1h quota]]]",
		"":                                    "a behaviour is missing",
		"exit 1,":                             "a behaviour is missing",
		", exit 1":                            "a behaviour is missing",
		"then complete":                       "a behaviour is missing",
		"explode":                             `a worker cannot "explode"; it can complete, fail,`,
		"exit":                                "exit N, with N from 0 to 255",
		"exit 256":                            "exit N, with N from 0 to 255",
		"exit +1":                             "exit N, with N from 0 to 255",
		"exit 1 2":                            "exit N, with N from 0 to 255",
		"sleep 1d":                            "sleep D, with D like 500ms or 2s",
		"hang on":                             `"hang on" is not how that is written: hang`,
		"fail":                                `"fail" is not how that is written: fail REASON`,
		"request-changes no test, fail never": "[[[request-changes no test]] [[fail never]]]",
	} {
		list, err := ParseBehaviours(strings.Fields(line))
		got := fmt.Sprint(list)
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("worker coder %s: %s, want %s", line, got, want)
		}
	}
	// A comma inside of quotes belongs to the word.
	list, err := ParseBehaviours([]string{"complete", "said, hello,", "exit", "1"})
	if err != nil || fmt.Sprintf("%q", list) != `[[["complete" "said, hello"]] [["exit" "1"]]]` {
		t.Errorf("%q, %v", list, err)
	}
}

// Each card has attempts of its own, the last behaviour is for all that follow, and a
// script that is written anew counts anew.
func TestNext(t *testing.T) {
	path := ScriptOf(t.TempDir(), "a/b")
	if filepath.Base(filepath.Dir(path)) != "612f62" {
		t.Errorf("the script of the profile a/b is %s", path)
	}
	next := func(card string) string {
		t.Helper()
		b, err := Next(path, card)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(b)
	}
	if got := next("t_1"); got != "[]" {
		t.Errorf("without a script: %s", got)
	}
	for _, words := range []string{"exit 1, complete", "exit 2, complete"} {
		list, err := ParseBehaviours(strings.Fields(words))
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(path, list); err != nil {
			t.Fatal(err)
		}
		first := "[[" + words[:6] + "]]"
		for i, want := range []string{first, "[[complete]]", "[[complete]]"} {
			if got := next("t_1"); got != want {
				t.Errorf("%s: attempt %d: %s, want %s", words, i+1, got, want)
			}
		}
		if got := next("t_2"); got != first {
			t.Errorf("%s: the other card: %s", words, got)
		}
	}
}
