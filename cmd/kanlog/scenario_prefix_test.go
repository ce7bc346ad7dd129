package main_test

import (
	"testing"

	program "kanlog/cmd/kanlog"
	"kanlog/eventlog"
	"kanlog/projection"
)

// prefixes is what the cut logs of all scenarios came across.
var prefixes program.PrefixFigures

// checkPrefixes cuts the log of a board and proves that what is left can go on.
func checkPrefixes(t *testing.T, name string, store *projection.Store) {
	uuid, err := store.UUID()
	var commits []eventlog.Commit
	if err == nil {
		err = store.Commits(1, func(c eventlog.Commit) error { commits = append(commits, c); return nil })
	}
	if err != nil {
		t.Errorf("%s: reading its log: %v", name, err)
		return
	}
	program.CheckPrefixes(t, &prefixes, name, uuid, commits)
}
