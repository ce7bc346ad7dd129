package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// What stands at a place of a call is read off the verb's usage line.
func TestCompletionFollowsTheUsageLine(t *testing.T) {
	name := func(c completer) string {
		switch reflect.ValueOf(c).Pointer() {
		case reflect.ValueOf(cardIDs).Pointer():
			return "id"
		case reflect.ValueOf(assignees).Pointer():
			return "assignee"
		}
		return "-"
	}
	for use, want := range map[string]string{
		"list":                "- - -",
		"show ID":             "id - -",
		"why [ID]":            "id - -",
		"archive ID...":       "id id id",
		"complete [ID...]":    "id id id",
		"assign ID PROFILE":   "id assignee -",
		"assign ID P|none":    "id - -",
		"link PARENT CHILD":   "id id -",
		"block [ID] REASON":   "id - -",
		"reclaim ID --reason": "id - -",
		"create TITLE":        "- - -",
		"apply FILE|-":        "- - -",
	} {
		at := arguments(&cobra.Command{Use: use})
		var got []string
		for n := range 3 {
			got = append(got, name(at(make([]string, n))))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", use, got, want)
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
