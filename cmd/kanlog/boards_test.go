package main

import (
	"strings"
	"testing"

	"kanlog/eventlog"
)

func TestArchivedNames(t *testing.T) {
	const at = eventlog.Time(1_790_000_000_123_456)
	for _, slug := range []string{"default", "a", "with-hyphens-2", "under_score", strings.Repeat("x", 64), "a-20261129T211612.854510Z-b"} {
		slug = strings.ToLower(slug)
		slug = strings.ReplaceAll(slug, ".", "-")
		name := archivedName(slug, at)
		if back, when := parseArchived(name); back != slug || when != at {
			t.Errorf("%s: read back as %q at %s", name, back, when)
		}
		if eventlog.CheckSlug(name) == nil {
			t.Errorf("%s could be taken for a board of that name", name)
		}
	}
	// What somebody put there by hand is shown as it is called.
	for _, name := range []string{"shop", "shop-", "shop-20261129", "-20261129T211612.854510Z", "Shop-20261129T211612.854510Z"} {
		if slug, when := parseArchived(name); slug != name || when != 0 {
			t.Errorf("%s: read as %q at %s", name, slug, when)
		}
	}
	if eventlog.CheckSlug(archivedDir) == nil {
		t.Errorf("a board could be called %s", archivedDir)
	}
}
