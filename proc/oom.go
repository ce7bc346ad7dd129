package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Where the kernel's out-of-memory killer was at work. It is never said whom it
// ended: the kernel counts, and names nobody.
const (
	OOMInGroup = "cgroup" // among the processes of the supervisor's control group
	OOMOnHost  = "host"   // somewhere on this machine
)

// oomCount is how many processes the kernel's out-of-memory killer has ended.
type oomCount struct {
	where string // "" if nothing is known
	file  string // which count it is: those of two groups say nothing together
	n     uint64
}

// grewTo says where the killer was at work between two readings, "" if it was
// not, or if that is not known.
func (before oomCount) grewTo(after oomCount) string {
	if before.where == "" || after.file != before.file || after.n <= before.n {
		return ""
	}
	return before.where
}

// readOOM reads the count of our own control group or, where there is none, that
// of the whole machine. root is the top of the file tree, "" for the real one.
// What cannot be read, or makes no sense, is not known; that is no error.
func readOOM(root string) oomCount {
	if root == "" {
		root = "/"
	}
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(text)) {
		// number:controllers:path, and for version 2 0::path
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(part) != 3 {
			continue
		}
		var files []string
		switch {
		case part[0] == "0" && part[1] == "":
			// Beside groups of version 1, version 2 has a folder of its own.
			files = []string{
				filepath.Join(root, "sys/fs/cgroup", part[2], "memory.events"),
				filepath.Join(root, "sys/fs/cgroup/unified", part[2], "memory.events"),
			}
		case slices.Contains(strings.Split(part[1], ","), "memory"):
			files = []string{filepath.Join(root, "sys/fs/cgroup/memory", part[2], "memory.oom_control")}
		}
		for _, file := range files {
			if n, ok := oomKills(file); ok {
				return oomCount{OOMInGroup, file, n}
			}
		}
	}
	file := filepath.Join(root, "proc/vmstat")
	if n, ok := oomKills(file); ok {
		return oomCount{OOMOnHost, file, n}
	}
	return oomCount{}
}

// oomKills is the value of oom_kill in a file of names and values.
func oomKills(file string) (n uint64, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
			n, err := strconv.ParseUint(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
