package proc

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	oldVmstat = "nr_free_pages 51\noom_kill 7\ndrop_pagecache 0\n"
	groupsV1  = "9:name=systemd:/\n4:memory:/a/b c:d\n1:cpu,cpuacct:/\n0::/\n"
)

func memoryTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestReadOOM(t *testing.T) {
	t.Parallel()
	const self, vmstat = "proc/self/cgroup", "proc/vmstat"
	tests := []struct {
		name  string
		files map[string]string
		where string
		n     uint64
	}{
		{"version 2", map[string]string{self: "0::/user.slice/x\n", vmstat: oldVmstat,
			"sys/fs/cgroup/user.slice/x/memory.events": "low 0\nhigh 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 9\n"}, OOMInGroup, 3},
		{"version 2 in a container, whose own group is the top", map[string]string{self: "0::/\n", vmstat: oldVmstat,
			"sys/fs/cgroup/memory.events": "oom_kill 2\n"}, OOMInGroup, 2},
		{"version 2 beside version 1", map[string]string{self: "3:cpu:/\n0::/x\n", vmstat: oldVmstat,
			"sys/fs/cgroup/unified/x/memory.events": "oom_kill 5\n"}, OOMInGroup, 5},
		{"version 1", map[string]string{self: groupsV1, vmstat: oldVmstat,
			"sys/fs/cgroup/memory/a/b c:d/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"}, OOMInGroup, 1},
		{"version 1 with two controllers in one", map[string]string{self: "4:hugetlb,memory:/a\n", vmstat: oldVmstat,
			"sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill 18446744073709551615\n"}, OOMInGroup, 1<<64 - 1},
		{"a group that does not count yet", map[string]string{self: groupsV1, vmstat: oldVmstat,
			"sys/fs/cgroup/memory/a/b c:d/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"}, OOMOnHost, 7},
		{"a group of somebody else", map[string]string{self: "4:memory:/a\n0::/b\n", vmstat: oldVmstat,
			"sys/fs/cgroup/memory/b/memory.oom_control": "oom_kill 1\n", "sys/fs/cgroup/a/memory.events": "oom_kill 1\n"}, OOMOnHost, 7},
		{"the root group of version 2 has no count", map[string]string{self: "0::/\n", vmstat: oldVmstat}, OOMOnHost, 7},
		{"only the host", map[string]string{vmstat: oldVmstat}, OOMOnHost, 7},
		{"nothing at all", nil, "", 0},
		{"a kernel that does not count", map[string]string{self: groupsV1, vmstat: "nr_free_pages 51\n"}, "", 0},
		{"a folder in its place", map[string]string{"proc/vmstat/oom_kill": "oom_kill 1\n"}, "", 0},
	}
	for _, garbage := range []string{"", "\n", "oom_kill", "oom_kill \n", "oom_kill x\n", "oom_kill -1\n", "oom_kill 1 2\n",
		"oom_kill 18446744073709551616\n", "xoom_kill 1\n", "oom_kill_disable 1\n", "\x00\xff oom_kill 1\n"} {
		tests = append(tests, struct {
			name  string
			files map[string]string
			where string
			n     uint64
		}{"garbage " + garbage, map[string]string{self: ":::\n0:\n\x00\n0::/x\n4:memory:/x\n", vmstat: garbage,
			"sys/fs/cgroup/x/memory.events": garbage, "sys/fs/cgroup/memory/x/memory.oom_control": garbage}, "", 0})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := readOOM(memoryTree(t, tt.files)); got.where != tt.where || got.n != tt.n {
				t.Errorf("got %+v, want %d of %q", got, tt.n, tt.where)
			}
		})
	}
}

// Only a count that grew between two readings of the same file says something.
func TestOOMGrew(t *testing.T) {
	t.Parallel()
	group, host := oomCount{OOMInGroup, "a", 3}, oomCount{OOMOnHost, "v", 3}
	more := func(c oomCount, n uint64) oomCount { c.n += n; return c }
	for _, tt := range []struct {
		before, after oomCount
		want          string
	}{
		{group, more(group, 1), OOMInGroup},
		{host, more(host, 5), OOMOnHost},
		{group, group, ""},
		{more(group, 1), group, ""},
		{oomCount{}, more(group, 1), ""},
		{group, oomCount{}, ""},
		{oomCount{}, oomCount{}, ""},
		{group, more(host, 1), ""},
		{host, more(group, 1), ""},
		{group, oomCount{OOMInGroup, "b", 9}, ""}, // moved to another group
	} {
		if got := tt.before.grewTo(tt.after); got != tt.want {
			t.Errorf("%+v to %+v: %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
}
