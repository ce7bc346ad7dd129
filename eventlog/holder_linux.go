package eventlog

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// holder names the process that holds the flock on file, "" if it cannot be
// told (gone meanwhile, or in another PID namespace).
func holder(file *os.File) string {
	pid := holderPID(file)
	if pid <= 0 {
		return ""
	}
	return fmt.Sprintf("pid %d (%s)", pid, CommandOf(pid))
}

func holderPID(file *os.File) int {
	fi, err := file.Stat()
	if err != nil {
		return 0
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	where := fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
	return flockHolder(string(locks), where)
}

// Holder looks who holds the lock on path, without asking for it: 0 if nobody
// does or it cannot be told.
func Holder(path string) (pid int, command string) {
	file, err := openFile(path, os.O_RDONLY, 0)
	if err != nil {
		return 0, ""
	}
	defer file.Close()
	if pid = holderPID(file); pid <= 0 {
		return 0, ""
	}
	return pid, CommandOf(pid)
}

// flockHolder finds the flock on a "major:minor:inode" in the text of
// /proc/locks; 0 if there is none. Lines with "->" are processes that wait.
func flockHolder(locks, where string) int {
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != where {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil {
			return pid
		}
	}
	return 0
}

// CommandOf is what a process was started as, for people, in one line.
func CommandOf(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	line = bytes.TrimRight(line, "\x00")
	if err != nil || len(line) == 0 {
		return "command unknown"
	}
	const limit = 200
	if len(line) > limit {
		line = append(line[:limit:limit], "..."...)
	}
	text := strings.ReplaceAll(string(line), "\x00", " ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
}
