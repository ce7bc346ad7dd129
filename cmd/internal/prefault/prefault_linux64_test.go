//go:build linux && (amd64 || arm64)

package prefault_test

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kanlog/cmd/internal/prefault"
)

// What is initialised before this package touches its memory page by page. The test is
// not in the package: what it imports would be initialised first then.
func TestComesFirst(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var order []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "init" {
			order = append(order, f[1])
		}
	}
	mine := slices.Index(order, "kanlog/cmd/internal/prefault")
	if mine < 0 {
		t.Fatalf("it is not initialised at all: %v", order)
	}
	for _, later := range []string{"time", "os", "reflect", "unicode"} {
		if at := slices.Index(order, later); at >= 0 && at < mine {
			t.Errorf("package %s is initialised first: %v", later, order[:mine])
		}
	}
	if !slices.Contains(order, "os") {
		t.Errorf("no package os in %v: this test looks at nothing", order)
	}
}

// The code that a process ran to start is not counted as its memory while it waits,
// and it can go on.
func TestGiveBack(t *testing.T) {
	before := mappedCodeKiB(t)
	prefault.GiveBack(func() {})
	after := mappedCodeKiB(t)
	if before == 0 || after >= before {
		t.Errorf("of the code %d KiB were mapped before, %d after", before, after)
	}
}

// mappedCodeKiB is how much of this program's code is mapped.
func mappedCodeKiB(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	program, sum := false, 0
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 6 && f[1] == "r-xp":
			program = strings.HasPrefix(f[5], "/")
		case len(f) == 3 && f[0] == "Rss:" && program:
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			sum, program = sum+n, false
		}
	}
	return sum
}
