package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"kanlog/eventlog"
	"kanlog/projection"
	"kanlog/tick"
)

// The scenarios doctor_*.txtar show what doctor finds on real boards; here is what
// cannot be brought about there, and the pure parts.

func TestContradictions(t *testing.T) {
	with := func(change func(s *settings)) *settings {
		s := defaults()
		s.policy.MaxInProgress = 4
		change(&s)
		return &s
	}
	profile := func(p tick.Profile) *settings {
		return with(func(s *settings) { s.policy.Profiles["w"] = p })
	}
	for _, c := range []struct {
		name string
		set  *settings
		want string // severity and first key
	}{
		{"defaults", with(func(*settings) {}), ""},
		{"kill grace", with(func(s *settings) { s.policy.KillGrace = 3 * time.Minute }), "warning kill_grace"},
		{"as long is no contradiction", with(func(s *settings) { s.policy.KillGrace = 2 * time.Minute }), ""},
		{"claim ttl", with(func(s *settings) { s.policy.Limits.ClaimTTL = time.Second }), "warning launch_grace"},
		{"lock timeout", with(func(s *settings) { s.lockTimeout = time.Minute }), "warning lock_timeout"},
		{"cap", profile(tick.Profile{MaxInProgress: 5}), "note max_in_progress"},
		{"cap as large", profile(tick.Profile{MaxInProgress: 4}), ""},
		{"max runtime", profile(tick.Profile{MaxRuntime: 5 * time.Second}), "note max_runtime"},
		{"max runtime longer", profile(tick.Profile{MaxRuntime: 6 * time.Second}), ""},
		{"a reviewer that has no profile", profile(tick.Profile{Reviewer: "critic"}), "warning reviewer"},
		{"one that has", profile(tick.Profile{Reviewer: "w"}), ""},
	} {
		got := ""
		for _, x := range contradictions(c.set) {
			got += x.severity + " " + x.keys[0]
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDiskFindings(t *testing.T) {
	const gib = 1 << 30
	much := room{50 * gib, 100 * gib}
	for _, c := range []struct {
		name          string
		bytes, inodes room
		size          int64
		want          string
	}{
		{"room", much, much, 1 << 20, ""},
		{"99 MiB", room{99 << 20, gib}, much, 0, "warning"},
		{"100 MiB of few", room{100 << 20, gib}, much, 0, ""},
		{"less than 1 %", room{9 * gib, 1000 * gib}, much, 0, "warning"},
		{"1 %", room{10 * gib, 1000 * gib}, much, 0, ""},
		{"no files", much, room{0, 1000}, 0, "warning"},
		{"a file system that does not count files", much, room{}, 0, ""},
		{"large", much, much, 2 * gib, "note"},
	} {
		var got []string
		for _, f := range diskFindings("/d", c.bytes, c.inodes, c.size, "/d/board.db") {
			got = append(got, f.Severity)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestEveryRefusalHasACommand: none of them removes the store, which is evidence.
func TestEveryRefusalHasACommand(t *testing.T) {
	for _, kind := range []eventlog.RefusedKind{
		eventlog.Missing, eventlog.Empty, eventlog.Cut, eventlog.Foreign, eventlog.Damaged, eventlog.Newer, eventlog.Network,
	} {
		d := &doctor{a: &app{boardDir: "/b"}}
		f := d.storeFinding(&eventlog.RefusedError{Path: "/b/board.db", Kind: kind, Detail: "x"})
		fix, _ := f.Fix.(string)
		if f.Severity != sevError || fix == "" || strings.Contains(fix, "rm ") || d.code != exitStore {
			t.Errorf("%s: %+v, exit %d", kind, f, d.code)
		}
	}
}

func TestAtMost(t *testing.T) {
	var list []finding
	for range 22 {
		list = append(list, found(sevNote, "", "", "", ""))
	}
	list = append(list, found(sevError, "", "last", "", ""))
	got := atMost(list, maxFindings)
	if len(got) != maxFindings+1 || got[0].Message != "last" || got[maxFindings].Message != "and 3 more" || got[maxFindings].Severity != sevNote {
		t.Errorf("%d findings, first %+v, last %+v", len(got), got[0], got[len(got)-1])
	}
	if got := atMost(list[:maxFindings], maxFindings); len(got) != maxFindings {
		t.Errorf("%d findings of as many as are named", len(got))
	}
}

func TestNearestName(t *testing.T) {
	profiles := []string{"coder", "reviewer", "writer"}
	for name, want := range map[string]string{
		"codr": "coder", "Coder": "coder", "coder2": "coder", "reviever": "reviewer", "wirter": "writer", "rev": "reviewer",
		"nightly-build": "", "qa": "", "": "",
	} {
		if got := nearest(name, profiles); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{
		"t_1a2b": "t_1a2b", "/a/b-c.d": "/a/b-c.d", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "~/x": "'~/x'", "a\nb": "'a\nb'",
	} {
		if got := shellWord(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

// TestStalledGoesByWhatCouldStart: since when a card could have been started, and
// whether somebody has dispatched since.
func TestStalledGoesByWhatCouldStart(t *testing.T) {
	at := func(n int64, actor, task string, data eventlog.Payload) eventlog.Commit {
		return eventlog.Commit{At: eventlog.Time(n), Actor: actor, Events: []eventlog.Event{{Task: task, Data: data}}}
	}
	card := &projection.Task{ID: "c", CreatedAt: 1}
	for _, c := range []struct {
		name       string
		tail       []eventlog.Commit
		since      eventlog.Time
		dispatched bool
	}{
		{"nothing but the card", nil, 1, false},
		{"a dispatch before it", []eventlog.Commit{at(0, "dispatcher:h/1", "x", &eventlog.Claimed{})}, 1, false},
		{"a dispatch since", []eventlog.Commit{at(5, "dispatcher:h/1", "x", &eventlog.Claimed{})}, 1, true},
		{"unblocked", []eventlog.Commit{at(5, "dispatcher:h/1", "x", &eventlog.Claimed{}), at(7, "operator:a", "c", &eventlog.Unblocked{})}, 7, false},
		{"a comment changes nothing", []eventlog.Commit{at(5, "operator:a", "c", &eventlog.Commented{})}, 1, false},
		{"another run ended: room", []eventlog.Commit{at(5, "dispatcher:h/1", "x", &eventlog.Claimed{}), at(9, "supervisor:x/1", "x", &eventlog.Exited{})}, 9, false},
		{"another run beats", []eventlog.Commit{at(9, "worker:x/1", "x", &eventlog.Heartbeat{})}, 1, false},
	} {
		tail := tailOf(c.tail)
		if since := tail.startableSince(card); since != c.since || tail.dispatchedAfter(since) != c.dispatched {
			t.Errorf("%s: since %d, dispatched since %v", c.name, since, tail.dispatchedAfter(since))
		}
	}
}

// kanlogSays runs a verb in this process and returns what it printed.
func kanlogSays(t *testing.T, want int, args ...string) string {
	t.Helper()
	var out, errw bytes.Buffer
	if got := run(args, &out, &errw); got != want {
		t.Fatalf("kanlog %v: exit %d, want %d\n%s%s", args, got, want, &out, &errw)
	}
	return out.String()
}

// TestDoctorLeavesOldTables: another command would make them anew at once; doctor
// says so, and reads on only once that is done.
func TestDoctorLeavesOldTables(t *testing.T) {
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	kanlogSays(t, exitOK, "create", "one", "--triage", "--home", home)
	dir := filepath.Join(home, "boards", "default")
	err := eventlog.Open(dir, eventlog.Options{}).Update(func(tx *eventlog.Tx) error {
		tx.SetTablesFormat(projection.TablesFormat - 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "board.db"))
	if err != nil {
		t.Fatal(err)
	}
	var list []finding
	if err := json.Unmarshal([]byte(kanlogSays(t, exitOK, "doctor", "--deep", "--json", "--home", home)), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Check != "store" || list[0].Fix != "kanlog rebuild --home "+shellWord(home) {
		t.Errorf("found %+v", list)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "board.db")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the store was changed (%v)", err)
	}
	kanlogSays(t, exitOK, "rebuild", "--home", home)
	if out := kanlogSays(t, exitOK, "doctor", "--deep", "--home", home); !strings.HasSuffix(out, "checks, 0 findings\n") {
		t.Errorf("after the rebuild: %s", out)
	}
}

// A broken chain is met by whatever reads the log first; it is the store's fault all the
// same, and one.
func TestDoctorOfABrokenChain(t *testing.T) {
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"one", "two", "three"} {
		kanlogSays(t, exitOK, "create", title, "--triage", "--home", home)
	}
	db, err := bolt.Open(filepath.Join(home, "boards", "default", "board.db"), 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		log := tx.Bucket([]byte("log"))
		key, entry := log.Cursor().First()
		changed := bytes.Replace(entry, []byte("one"), []byte("eno"), 1)
		if bytes.Equal(entry, changed) {
			t.Error("the entry does not hold its title")
		}
		return log.Put(bytes.Clone(key), changed)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	var list []finding
	if err := json.Unmarshal([]byte(kanlogSays(t, exitStore, "doctor", "--json", "--home", home)), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Severity != sevError || list[0].Check != "store" || !strings.Contains(list[0].Message, "(damaged)") {
		t.Errorf("found %+v", list)
	}
}

// TestEveryCheckIsDocumented in docs/doctor.md, and no other is.
func TestEveryCheckIsDocumented(t *testing.T) {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	slices.Sort(names)
	var documented []string
	for word := range docRows(readDoc(t, "docs/doctor.md")) {
		documented = append(documented, word)
	}
	slices.Sort(documented)
	sameWords(t, "docs/doctor.md", documented, names)
}
