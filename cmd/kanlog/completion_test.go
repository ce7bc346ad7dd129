package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What stands at a place of a call is read off the verb's usage line.
func TestCompletionFollowsTheUsageLine(t *testing.T) {
	for use, want := range map[string]string{
		"list":                   "- - -",
		"show ID":                "ID - -",
		"why [ID]":               "ID - -",
		"archive ID...":          "ID ID ID",
		"complete [ID...]":       "ID ID ID",
		"assign ID PROFILE|none": "ID PROFILE -",
		"link PARENT CHILD":      "PARENT CHILD -",
		"rename OLD NEW":         "OLD NEW -",
		"apply FILE|-":           "FILE - -",
		"help [VERB]":            "VERB - -",
	} {
		var got []string
		for n := range 3 {
			got = append(got, orDash(placeOf(&cobra.Command{Use: use}, n)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", use, got, want)
		}
	}
}

// Every entry of the tables is met by some verb, place or flag: a verb that was
// renamed must not leave its line behind, offering what is refused.
func TestCompletionTablesNameWhatIsThere(t *testing.T) {
	_, verbs := everyVerbOf(t)
	there := map[string]bool{}
	for _, cmd := range verbs {
		there[verbOf(cmd)] = true
		for _, place := range places(cmd) {
			there[verbOf(cmd)+" "+place], there[place] = true, true
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			there[verbOf(cmd)+" --"+f.Name], there["--"+f.Name] = true, true
		})
	}
	for key := range offers {
		if !there[key] {
			t.Errorf("offers[%q]: there is no such verb, place or flag", key)
		}
	}
	for key := range placeWords {
		if !there[key] {
			t.Errorf("placeWords[%q]: no verb has such a place", key)
		}
	}
	for key := range flagWords {
		if key != "board" && !there[key] && !there["--"+key] {
			t.Errorf("flagWords[%q]: there is no such flag", key)
		}
	}
}

// A word that would break out of its line is never given.
func TestCompletionWordsAreWords(t *testing.T) {
	got := fixed("plain", "two\nlines", "a\tb", "\x1b[31m", "", "blank in it")(nil, "")
	if want := "plain,blank in it"; strings.Join(got, ",") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := afterComma(fixed("ready", "review"))(nil, "done,re"); strings.Join(got, " ") != "done,ready done,review" {
		t.Errorf("%q", got)
	}
	if got := described("t_1", "one\ttwo\nthree"); got != "t_1\tone\\u0009two\\u000athree" {
		t.Errorf("%q", got)
	}
}
