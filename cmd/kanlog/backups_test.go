package main

import (
	"slices"
	"testing"
)

// Two backups of one second differ in their last commit, and 10 comes after 9.
func TestTheNewestBackup(t *testing.T) {
	b := (&app{slug: "default", home: t.TempDir()}).backups("")
	want := []string{
		"default-20260101T000000Z-90.db", "default-20260101T000001Z-8.db", "default-20260101T000001Z-9.db",
		"default-20260101T000001Z-10.db", "default-20260102T000000Z-3.db",
	}
	got := slices.Clone(want)
	slices.Sort(got)
	if slices.SortFunc(got, b.order); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
