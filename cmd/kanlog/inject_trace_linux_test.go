package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// What strace wrote down, read back: which process made which call, the how
// many-eth of its thread it was, and whether it is one that we injected into.

// injectable are the calls that are counted and made to fail.
var injectable = []string{
	"openat", "read", "pread64", "write", "pwrite64", "fdatasync", "fsync", "ftruncate", "lseek",
	"renameat", "unlinkat", "mkdirat", "fchmodat", "flock", "mmap", "fstat", "newfstatat", "statfs", "getdents64", "readlinkat",
	"close", "clone", "clone3", "vfork", "execve", "pipe2", "dup3", "memfd_create",
	"kill", "pidfd_open", "pidfd_send_signal", "setsid", "prctl",
}

// failures are the errors that a call can fail with, beside its process's death.
func failures(call string) []string {
	switch call {
	case "fdatasync", "fsync", "write", "pwrite64", "ftruncate", "renameat", "mkdirat":
		return []string{"EIO", "ENOSPC", "EINTR"}
	case "openat":
		return []string{"EIO", "EINTR", "EMFILE", "ENOSPC"}
	case "read", "pread64", "flock":
		return []string{"EIO", "EINTR"}
	case "mmap", "clone", "clone3", "vfork":
		return []string{"ENOMEM", "EAGAIN"}
	case "memfd_create", "pipe2":
		return []string{"EMFILE", "ENOSPC"}
	}
	return []string{"EIO"}
}

// traced is a command under strace; inject is strace's own expression, "" for
// counting only.
func traced(log, inject string, argv []string) []string {
	// -y names files; -e signal=none keeps signals, which have no order, out of
	// the log.
	args := []string{"strace", "-f", "-qq", "-y", "-s", "160", "-e", "signal=none", "-o", log,
		"-e", "trace=" + strings.Join(injectable, ",")}
	// A filter in the kernel makes what is not traced cost nothing, but no signal
	// is sent where it is in the way.
	if !strings.Contains(inject, ":signal=") {
		args = append(args, "--seccomp-bpf")
	}
	if inject != "" {
		args = append(args, "-e", "inject="+inject)
	}
	return append(append(args, "--"), argv...)
}

// straceWorks says why strace cannot be used here.
func straceWorks(dir string) error {
	log := filepath.Join(dir, "trial")
	argv := traced(log, "openat:error=EIO:when=1", []string{"/bin/sh", "-c", "exit 0"})
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	out, _ := exec.Command(path, argv[1:]...).CombinedOutput()
	text, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(text), "(INJECTED)") {
		return fmt.Errorf("it cannot trace here, or knows no injection: %s%s", out, text)
	}
	return nil
}

// call is one call of the kernel.
type call struct {
	tid, process int
	program      string // "kanlog dispatch", "sh", ...
	name, text   string
	nth          int  // of its thread and name
	injected     bool // it failed because we said so
}

func (c call) ours() bool { return strings.HasPrefix(c.program, "kanlog") }

// runtimes tells calls that Go's runtime makes for itself. It answers a failure
// of those with its own words and ends the process, whatever the program is.
func (c call) runtimes() bool {
	switch c.name {
	case "clone", "clone3":
		return strings.Contains(c.text, "CLONE_THREAD")
	case "mmap":
		return !strings.Contains(c.text, "board.db")
	case "prctl":
		return strings.Contains(c.text, "PR_SET_VMA") || strings.Contains(c.text, "PR_SET_NAME")
	}
	for _, s := range []string{"[eventfd]", "[eventpoll]", "/sys/kernel/mm/", "/sys/fs/cgroup/", "/cgroup", "/mountinfo"} {
		if strings.Contains(c.text, s) {
			return true
		}
	}
	return false
}

var (
	traceLine    = regexp.MustCompile(`^(\d+)\s+(.*)$`)
	traceResumed = regexp.MustCompile(`^<\.\.\. (\w+) resumed>(.*)$`)
	traceCall    = regexp.MustCompile(`^(\w+)\(`)
	traceChild   = regexp.MustCompile(`\) = (\d+)`)
	traceExec    = regexp.MustCompile(`^execve\("[^"]*", \["([^"]*)"(?:, "([^"]*)")?(?:, "([^"]*)")?`)
)

// readTrace returns the calls in the order in which they were begun.
func readTrace(path string) ([]call, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var calls []call
	open := map[int]int{} // thread -> its unfinished call
	for line := range strings.Lines(string(b)) {
		m := traceLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		tid, _ := strconv.Atoi(m[1])
		text := m[2]
		if r := traceResumed.FindStringSubmatch(text); r != nil {
			if i, ok := open[tid]; ok {
				calls[i].text += r[2]
				delete(open, tid)
			}
			continue
		}
		name := traceCall.FindStringSubmatch(text)
		if name == nil {
			continue
		}
		if head, cut := strings.CutSuffix(text, "<unfinished ...>"); cut {
			text, open[tid] = head, len(calls)
		}
		calls = append(calls, call{tid: tid, name: name[1], text: text})
	}
	return attribute(calls), nil
}

// attribute finds out whose calls they are.
func attribute(calls []call) []call {
	process, parent := map[int]int{}, map[int]int{}
	for i := range calls {
		c := &calls[i]
		c.injected = strings.Contains(c.text, "(INJECTED)")
		if c.name != "clone" && c.name != "clone3" && c.name != "vfork" || c.injected {
			continue
		}
		if m := traceChild.FindStringSubmatch(c.text); m != nil {
			child, _ := strconv.Atoi(m[1])
			parent[child] = c.tid
			if !strings.Contains(c.text, "CLONE_THREAD") {
				process[child] = child
			}
		}
	}
	processOf := func(tid int) int {
		for range 100 {
			if p, ok := process[tid]; ok {
				return p
			}
			up, ok := parent[tid]
			if !ok {
				break
			}
			tid = up
		}
		return tid
	}
	program := map[int]string{}
	count := map[string]int{}
	for i := range calls {
		c := &calls[i]
		c.process = processOf(c.tid)
		key := fmt.Sprint(c.tid, c.name)
		count[key]++
		c.nth = count[key]
		if program[c.process] == "" {
			program[c.process] = program[processOf(parent[c.process])]
		}
		c.program = program[c.process]
		if m := traceExec.FindStringSubmatch(c.text); m != nil && strings.HasSuffix(c.text, " = 0") {
			program[c.process] = filepath.Base(m[1])
			if program[c.process] == "kanlog" {
				program[c.process] += " " + m[2]
			}
		}
	}
	return calls
}

// points are the places where a step's own processes can be hit: per call the
// numbers n for which the n-th call of a thread is the program's.
func points(calls []call) map[string][]int {
	seen := map[string]map[int]bool{}
	most := map[string]int{}
	for _, c := range calls {
		if !c.ours() || c.runtimes() {
			continue
		}
		if seen[c.name] == nil {
			seen[c.name] = map[int]bool{}
		}
		seen[c.name][c.nth] = true
		most[c.name] = max(most[c.name], c.nth)
	}
	all := map[string][]int{}
	for name, of := range seen {
		for n := 1; n <= most[name]; n++ {
			if of[n] {
				all[name] = append(all[name], n)
			}
		}
	}
	return all
}

// afterFailedSync looks for a write to a store by a process of which a sync of a
// store has failed: what the kernel then has in memory and calls clean need not
// be what is on the disk, so nothing may be built on it.
func afterFailedSync(calls []call) string {
	failed := map[int]call{}
	for _, c := range calls {
		if !strings.Contains(c.text, "/board.db>") {
			continue
		}
		if was, bad := failed[c.process]; bad {
			switch c.name {
			case "pwrite64", "write", "fdatasync", "fsync", "ftruncate":
				return fmt.Sprintf("%s (pid %d): after %q it goes on with %q", c.program, c.process, short(was.text), short(c.text))
			}
		}
		interrupted := c.name == "fsync" && strings.Contains(c.text, "EINTR") // it is asked for again
		if c.injected && (c.name == "fdatasync" || c.name == "fsync") && !interrupted {
			failed[c.process] = c
		}
	}
	return ""
}

func short(s string) string { return s[:min(len(s), 160)] }
