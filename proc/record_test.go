package proc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "12.exit")
	if r, err := ReadRecord(path, "b/12", 12); r != nil || err != nil {
		t.Errorf("none: %v %v", r, err)
	}
	zero, code := 0, 139
	for _, r := range []Record{
		{Task: "t_1", Run: 12, Token: "b/12", Cause: CauseExited, ExitCode: &zero, Started: "2026-01-02T03:04:05.000006Z", Ended: "2026-01-02T03:04:06.000000Z"},
		{Task: "t_1", Run: 12, Token: "b/12", Cause: CauseTerminated, ExitCode: &code},
		{Task: "t_1", Run: 12, Token: "b/12", Cause: CauseSignaled, Signal: "SIGSEGV", CoreDumped: true},
		{Task: "t_1", Run: 12, Token: "b/12", Cause: CauseSignaled, Signal: "SIGKILL", OOMKill: OOMInGroup},
		{Task: "t_1", Run: 12, Token: "b/12", Cause: CauseStartFailed, Error: "not found: \"x\"\n\xff"},
	} {
		if err := WriteRecord(path, r); err != nil {
			t.Fatal(err)
		}
		got, err := ReadRecord(path, "b/12", 12)
		if err != nil {
			t.Fatal(err)
		}
		r.Error = strings.ToValidUTF8(r.Error, "\ufffd")
		if !reflect.DeepEqual(*got, r) {
			t.Errorf("wrote %+v, read %+v", r, *got)
		}
	}
	for _, e := range mustReadDir(t, filepath.Dir(path)) {
		if e.Name() != "12.exit" {
			t.Errorf("%s is left aside", e.Name())
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", st.Mode(), err)
	}
}

func mustReadDir(t *testing.T, path string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// The form is read by every later version.
func TestRecordForm(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "1.exit")
	if err := WriteRecord(path, Record{Task: "t_1", Run: 1, Token: "b/1", Cause: CauseNeverStarted, Error: "e"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"task":"t_1","run":1,"token":"b/1","cause":"never_started","exit_code":null,"signal":"","started":"","ended":"","error":"e"}` + "\n"
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestRecordOfAnother(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "1.exit")
	code := 3
	if err := WriteRecord(path, Record{Run: 1, Token: "b/1", Cause: CauseExited, ExitCode: &code}); err != nil {
		t.Fatal(err)
	}
	if r, err := ReadRecord(path, "b/1", 2); r != nil || err == nil {
		t.Errorf("other run: %v %v", r, err)
	}
	if r, err := ReadRecord(path, "c/1", 1); r != nil || err == nil {
		t.Errorf("other token: %v %v", r, err)
	}
	// Of a start: this one, or any if none is known; never that of another.
	marked := filepath.Join(t.TempDir(), "1.exit")
	if err := WriteRecord(marked, Record{Run: 1, Token: NewToken("b", "1", "ab"), Cause: CauseExited, ExitCode: &code}); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]bool{"b/1/ab": true, "b/1": true, "b/1/a": false, "b/1/": false, "b/1/abc": false, "b": false, "b/": false, "": false} {
		if r, err := ReadRecord(marked, token, 1); (r != nil) != want || (err == nil) != want {
			t.Errorf("the start %q: %v %v", token, r, err)
		}
	}
	// Who was refused does not overwrite the one who ran.
	if err := WriteRecord(path, Record{Run: 1, Token: "b/1", Cause: CauseNeverStarted}); err != nil {
		t.Fatal(err)
	}
	if r, err := ReadRecord(path, "b/1", 1); err != nil || r.Cause != CauseExited {
		t.Errorf("record %v %v", r, err)
	}
}

func TestRecordGarbage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "1.exit")
	good, err := json.Marshal(Record{Run: 1, Token: "b/1", Cause: CauseExited})
	if err != nil {
		t.Fatal(err)
	}
	bad := []string{"", "null", "{}", "[]", "7", "\x00\x00", string(good) + "x", string(good) + string(good),
		`{"run":-1}`, `{"run":1,"token":"b/1","cause":"guess"}`, `{"run":1,"token":"b/1"}`,
		strings.Repeat(" ", maxRecord) + string(good)}
	for n := range len(good) {
		bad = append(bad, string(good[:n]))
	}
	for _, text := range bad {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := ReadRecord(path, "b/1", 1); r != nil || err == nil {
			t.Errorf("%.40q: %+v %v", text, r, err)
		}
	}
	if r, err := ReadRecord(filepath.Dir(path), "b/1", 1); r != nil || err == nil {
		t.Errorf("a directory: %+v %v", r, err)
	}
}

func TestWriteRecordFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteRecord(filepath.Join(dir, "none", "1.exit"), Record{}); err == nil {
		t.Error("no directory: no error")
	}
	// What stands in the way is left alone, and nothing is left aside.
	if err := os.MkdirAll(filepath.Join(dir, "1.exit", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteRecord(filepath.Join(dir, "1.exit"), Record{}); err == nil {
		t.Error("a directory in the way: no error")
	}
	if got := mustReadDir(t, dir); len(got) != 1 {
		t.Errorf("left: %v", got)
	}
}

func FuzzReadRecord(f *testing.F) {
	f.Add([]byte(`{"run":1,"token":"b/1","cause":"exited","exit_code":0}`))
	f.Add([]byte(`{"run":2,"RUN":1,"token":"b/1","cause":"never_started","more":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "1.exit")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ReadRecord(path, "b/1", 1)
		if (r == nil) == (err == nil) || r != nil && (r.Run != 1 || r.Token != "b/1") {
			t.Errorf("%q: %v %v", text, r, err)
		}
		// No other run and no other board may take it for its own.
		for _, of := range []struct {
			token string
			run   uint64
		}{{"b/1", 2}, {"b/2", 1}, {"B/1", 1}, {"", 1}} {
			if r, err := ReadRecord(path, of.token, of.run); err == nil && (r.Run != of.run || r.Token != of.token) {
				t.Errorf("%q is read as that of run %d (%q): %v", text, of.run, of.token, r)
			}
		}
		if r == nil {
			return
		}
		// What was read says the same when it is written again.
		if err := WriteRecord(path, *r); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadRecord(path, "b/1", 1); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%+v became %+v, %v", r, again, err)
		}
	})
}
