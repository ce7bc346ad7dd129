package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The worker itself makes the kernel's count grow, in a file tree of its own.
func TestSuperviseOutOfMemory(t *testing.T) {
	t.Parallel()
	const group, vmstat = "sys/fs/cgroup/memory/g/memory.oom_control", "proc/vmstat"
	grow := func(file string) string { return `echo "oom_kill 8" > $D/root/` + file + `; ` }
	for _, tt := range []struct {
		name, script, want, trailer string
		grouped                     bool
	}{
		{"killed in its group", grow(group) + "kill -KILL $$", OOMInGroup, "signal SIGKILL, meanwhile out of memory in its control group\n", true},
		{"a child was, the command says 137", grow(group) + "exit 137", OOMInGroup, "exit 137, meanwhile out of memory in its control group\n", true},
		{"no group", grow(vmstat) + "kill -KILL $$", OOMOnHost, "signal SIGKILL, meanwhile out of memory on this host\n", false},
		{"the host's count is no matter where the group has one", grow(vmstat) + "exit 3", "", "exit 3\n", true},
		{"ended well all the same", grow(group) + "exit 0", "", "exit 0\n", true},
		{"nothing grew", "kill -KILL $$", "", "signal SIGKILL\n", true},
		{"the count went away", "rm -r $D/root; exit 3", "", "exit 3\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRun(t, tt.script)
			files := map[string]string{vmstat: "oom_kill 7\n"}
			if tt.grouped {
				files["proc/self/cgroup"], files[group] = "4:memory:/g\n", "oom_kill 7\n"
			}
			// Below $D, where the worker finds it.
			r.spec.Root = filepath.Join(r.dir, "root")
			if err := os.Rename(memoryTree(t, files), r.spec.Root); err != nil {
				t.Fatal(err)
			}
			r.mustRegister()
			if rec := r.ended(); rec.OOMKill != tt.want {
				t.Errorf("record %+v, want %q", rec, tt.want)
			}
			if !strings.HasSuffix(r.output(), ": "+tt.trailer) {
				t.Errorf("output %q", r.output())
			}
		})
	}
}

// The real killer, where a control group with a limit can be made below our own.
// Elsewhere the same worker ends itself as the killer would, and counts it.
func TestSuperviseRealOutOfMemory(t *testing.T) {
	t.Parallel()
	// The killer must not take the supervisor, which would leave no record.
	r := newRun(t, `echo 1000 >/proc/self/oom_score_adj; [ -e $D/root ] && { echo "oom_kill 8" > $D/root/proc/vmstat; kill -KILL $$; }; x=$(head -c 256M /dev/zero | tr "\\0" x)`)
	want := OOMInGroup
	dir, why := limitedGroup(t, 24<<20)
	if dir == "" {
		t.Logf("no control group of memory here: %s", why)
		want, r.spec.Root = OOMOnHost, filepath.Join(r.dir, "root")
		if err := os.Rename(memoryTree(t, map[string]string{"proc/vmstat": "oom_kill 7\n"}), r.spec.Root); err != nil {
			t.Fatal(err)
		}
	}
	r.spec.HookAt = "supervise.registered"
	r.mustRegister()
	release := r.atHook()
	if dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(r.child.PID)), 0); err != nil {
			t.Fatal(err)
		}
	}
	release()
	if rec := r.ended(); rec.Signal != "SIGKILL" || rec.ExitCode != nil || rec.OOMKill != want {
		t.Errorf("record %+v, want %q; output:\n%s", rec, want, r.output())
	}
}

// limitedGroup makes a control group below our own that may use so much memory
// and no swap; "" and the reason if that cannot be done.
func limitedGroup(t *testing.T, bytes int) (dir, why string) {
	t.Helper()
	// Where the count is, there a group can have a limit.
	own := readOOM("")
	if own.where != OOMInGroup {
		return "", "it has no count of its own"
	}
	dir = filepath.Join(filepath.Dir(own.file), "kanlog-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err.Error()
	}
	t.Cleanup(func() {
		await(t, "the group is empty", func() bool { return syscall.Rmdir(dir) != syscall.EBUSY })
	})
	limits := []string{"memory.max", "memory.swap.max"}
	values := []string{strconv.Itoa(bytes), "0"}
	if filepath.Base(own.file) == "memory.oom_control" {
		limits, values[1] = []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"}, values[0]
	}
	for i, name := range limits {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(values[i]), 0); err != nil {
			return "", err.Error()
		}
	}
	return dir, ""
}
