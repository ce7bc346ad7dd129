package main

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"kanlog/eventlog"
)

// However the program was built it says what is known, and of nothing else that it is
// unknown.
func TestVersion(t *testing.T) {
	const commit = "4f7e1c0aaaabbbbccccddddeeeeffff000011112"
	build := func(release string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Path: "kanlog", Version: release}}
		for _, s := range settings {
			key, value, _ := strings.Cut(s, "=")
			info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
		}
		return info
	}
	format := fmt.Sprintf("store format %d", eventlog.Format)
	for name, c := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"no information at all":       {nil, "unreleased (" + format + ")"},
		"no stamp (-buildvcs=false)":  {build("(devel)"), "unreleased (" + format + ")"},
		"no version either":           {build(""), "unreleased (" + format + ")"},
		"a commit":                    {build("(devel)", "vcs.revision="+commit, "vcs.modified=false"), "unreleased (commit 4f7e1c0aaaab, " + format + ")"},
		"a commit and changed files":  {build("(devel)", "vcs.revision="+commit, "vcs.modified=true"), "unreleased (commit 4f7e1c0aaaab, with changes, " + format + ")"},
		"the toolchain's own version": {build("v0.0.0-20261129164303-4f7e1c0aaaab+dirty", "vcs.revision="+commit, "vcs.modified=true"), "unreleased (commit 4f7e1c0aaaab, with changes, " + format + ")"},
		"installed, no release":       {build("v0.0.0-20261129164303-4f7e1c0aaaab"), "unreleased (commit 4f7e1c0aaaab, " + format + ")"},
		"installed by a release":      {build("v1.2.3"), "v1.2.3 (" + format + ")"},
		"built at a release":          {build("v1.2.3", "vcs.revision="+commit), "v1.2.3 (commit 4f7e1c0aaaab, " + format + ")"},
		"built behind a release":      {build("v1.2.4-0.20261129164303-4f7e1c0aaaab", "vcs.revision="+commit), "v1.2.4-0.20261129164303-4f7e1c0aaaab (" + format + ")"},
	} {
		if got := versionOf(c.info); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := version(); strings.Contains(got, "unknown") {
		t.Errorf("this program: %q", got)
	}
}
