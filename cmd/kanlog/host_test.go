package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMemoryShort(t *testing.T) {
	const mem = "MemTotal:  8000000 kB\nMemFree: 1 kB\nMemAvailable:   409600 kB\n" // 400 MiB
	group := "sys/fs/cgroup/a/b/"
	for _, c := range []struct {
		name  string
		files map[string]string
		least int64
		want  string
	}{
		{"enough", map[string]string{"proc/meminfo": mem}, 400 << 20, ""},
		{"too little", map[string]string{"proc/meminfo": mem}, 500 << 20, "400MiB free on this machine, of at least 500MiB"},
		{"not asked", map[string]string{"proc/meminfo": mem}, 0, ""},
		{"nothing can be told", nil, 1 << 40, ""},
		{"an old kernel", map[string]string{"proc/meminfo": "MemFree: 1 kB\n"}, 1 << 40, ""},
		{"nonsense", map[string]string{"proc/meminfo": "MemAvailable: x kB\n", "proc/self/cgroup": "0:/\nx"}, 1 << 40, ""},
		{"our control group", map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n",
			group + "memory.max": "104857600\n", group + "memory.current": "83886080\n"}, 128 << 20, "20MiB free in the control group /a/b, of at least 128MiB"},
		{"files that the kernel would give back count as free", map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n",
			group + "memory.max": "209715200\n", group + "memory.current": "209715200\n", group + "memory.stat": "anon 1\ninactive_file 157286400\n"}, 128 << 20, ""},
		{"one above ours", map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n", group + "memory.max": "max\n", group + "memory.current": "1\n",
			"sys/fs/cgroup/a/memory.max": "1048576\n", "sys/fs/cgroup/a/memory.current": "2097152\n"}, 128 << 20, "0B free in the control group /a, of"},
		{"no limit", map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n", group + "memory.max": "max\n", group + "memory.current": "1\n"}, 128 << 20, ""},
		{"the root has none", map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/\n"}, 128 << 20, ""},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := memoryShort(root, c.least); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
