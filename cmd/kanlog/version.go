package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"kanlog/eventlog"
)

// version says which program this is.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

// versionOf says what the build knows of itself and nothing else: the release, the
// commit, whether files were changed since, and always the newest format that the
// program writes. How much of it there is depends on how the program was built.
func versionOf(info *debug.BuildInfo) string {
	if info == nil {
		info = &debug.BuildInfo{}
	}
	release, dirty := strings.CutSuffix(info.Main.Version, "+dirty")
	commit := ""
	if rest, ok := strings.CutPrefix(release, "v0.0.0-"); ok {
		// Of what has no release the toolchain makes v0.0.0-TIME-COMMIT.
		_, commit, _ = strings.Cut(rest, "-")
		release = ""
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			dirty = dirty || s.Value == "true"
		}
	}
	if release == "" || release == "(devel)" {
		release = "unreleased"
	}
	known := ""
	if commit != "" && !strings.Contains(release, commit) {
		known = "commit " + commit + ", "
	}
	if dirty {
		known += "with changes, "
	}
	return fmt.Sprintf("%s (%sstore format %d)", release, known, eventlog.Format)
}
