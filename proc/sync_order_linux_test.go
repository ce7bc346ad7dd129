package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// writesRecordAt tells a second start of this test to write a record there.
const writesRecordAt = "KANLOG_TEST_WRITES_RECORD_AT"

// TestRecordReachesTheDisk looks at the calls, since nothing but the power going
// out shows that a sync is missing: the text before the name, the name before the
// word that it is there, and never a half record under that name.
func TestRecordReachesTheDisk(t *testing.T) {
	if path := os.Getenv(writesRecordAt); path != "" {
		if err := WriteRecord(path, Record{Run: 1, Token: "b/1", Cause: CauseExited}); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatalf("needs strace: %v", err)
	}
	dir := t.TempDir()
	records, trace := filepath.Join(dir, "records"), filepath.Join(dir, "trace")
	if err := os.Mkdir(records, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(strace, "-f", "-qq", "-y", "-o", trace, "-e", "signal=none",
		"-e", "trace=write,fsync,fdatasync,rename,renameat,renameat2", os.Args[0], "-test.run", "^TestRecordReachesTheDisk$")
	cmd.Env = append(os.Environ(), writesRecordAt+"="+filepath.Join(records, "1.exit"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("needs strace, and to be allowed to use it: %v\n%s", err, out)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	// A rename names its files in quotes, the others in angle brackets.
	call := regexp.MustCompile(`^\d+ +(\w+)\(.*?records([\w./]*)[>"](?:.*records([\w./]*)")?`)
	number := regexp.MustCompile(`\d+\.new`)
	for line := range strings.Lines(string(text)) {
		if m := call.FindStringSubmatch(line); m != nil {
			got = append(got, strings.TrimSpace(strings.TrimSuffix(m[1], "at")+" "+number.ReplaceAllString(m[2], "PID.new")+" "+m[3]))
		}
	}
	want := "write /1.exit.PID.new\nfsync /1.exit.PID.new\nrename /1.exit.PID.new /1.exit\nfsync"
	if list := strings.Join(got, "\n"); list != want {
		t.Errorf("what reaches the disk is\n%s\nwant\n%s\nthe trace:\n%s", list, want, text)
	}
}
