package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// supervisor NAME RUN: waits for the supervisor process of a run and puts its
// pid into $NAME. It looks at processes only: before a supervisor registers, the
// board does not know it.
func cmdSupervisor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: supervisor NAME RUN")
	}
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if pid := supervisorOf(ts.Getenv("KANLOG_HOME"), args[1]); pid != 0 {
			ts.Setenv(args[0], strconv.Itoa(pid))
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("run %s has had no supervisor for %s", args[1], patience)
}

func supervisorOf(home, run string) int {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		dir := filepath.Dir(path)
		env, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		argv, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.HasSuffix(argv, []byte("\x00supervise\x00")) {
			continue
		}
		vars := bytes.Split(env, []byte{0})
		has := func(v string) bool {
			return slices.ContainsFunc(vars, func(b []byte) bool { return string(b) == v })
		}
		if has("KANLOG_HOME="+home) && has("KANLOG_RUN="+run) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	return 0
}
