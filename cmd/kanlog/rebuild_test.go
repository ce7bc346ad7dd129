package main

import (
	"bytes"
	"strings"
	"testing"

	"kanlog/eventlog"
	"kanlog/projection"
)

// A log that no decider wrote is not whole, however new its tables are: what writes the
// store anew ends as verify does, so that nobody takes it for mended.
func TestAStoreWrittenAnewThatIsNotWhole(t *testing.T) {
	home := t.TempDir()
	if _, err := eventlog.Create(home, defaultBoard, [16]byte{1}, 1, eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	store := eventlog.Open(eventlog.BoardDir(home, defaultBoard), eventlog.Options{})
	for i, data := range []eventlog.Payload{&eventlog.Created{Title: "a", Status: projection.Ready}, &eventlog.Promoted{To: projection.Running}} {
		c := eventlog.Commit{At: 1, Actor: "operator:ann", Events: []eventlog.Event{{Task: "t_1", Data: data}}}
		if _, err := store.Append(uint64(i), c); err != nil {
			t.Fatal(err)
		}
	}
	for _, verb := range []string{"verify", "rebuild", "compact"} {
		var out, errw bytes.Buffer
		code := run([]string{"--home", home, "--board", defaultBoard, verb}, &out, &errw)
		if code != exitStore || !strings.Contains(errw.String(), "is running with open run 0") || strings.Contains(errw.String(), "restore") {
			t.Errorf("%s: exit %d, want %d: %s%s", verb, code, exitStore, &out, &errw)
		}
	}
}
