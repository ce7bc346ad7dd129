package main_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A SIGTERM that comes before a scripted worker knows what it is to do is ignored by
// one that ignores it, and ends any other.
func TestScriptedWorkerTakesAnEarlyTerm(t *testing.T) {
	for script, want := range map[string]syscall.Signal{
		`[[["ignore-term"]]]`:                 unix.SIGKILL,
		`[[["hang"]]]`:                        unix.SIGTERM,
		`[[["sleep", "1h"],["ignore-term"]]]`: unix.SIGTERM,
	} {
		dir := t.TempDir()
		// It waits for the script, which comes through a pipe.
		pipe := filepath.Join(dir, "script")
		if err := unix.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(binDir, "kanlog"), "scenario-worker", pipe, "coder")
		cmd.Env = append(os.Environ(), "KANLOG_TASK=t_12345678", "KANLOG_HOME="+dir)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = cmd.Process.Signal(unix.SIGTERM)
		if _, err := io.WriteString(w, script); err != nil {
			t.Errorf("%s: it is gone before it has read that: %v", script, err)
		}
		w.Close()
		if want == unix.SIGKILL {
			// It says what it does, and goes on.
			if n, err := out.Read(make([]byte, 10)); n == 0 {
				t.Errorf("%s: it has said nothing: %v", script, err)
			}
			_ = cmd.Process.Signal(unix.SIGTERM)
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait()
		if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != want {
			t.Errorf("%s: it ended by %v, want %v", script, got, want)
		}
	}
}
