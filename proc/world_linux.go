package proc

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// linux reads the machine it runs on.
type linux struct{}

func newWorld() world { return linux{} }

func (linux) self() int { return os.Getpid() }

func (linux) machine() (string, error) {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// "uninitialized" is what an image holds before its first boot.
		if id := strings.TrimSpace(string(text)); id != "" && id != "uninitialized" {
			return id, nil
		}
	}
	name, err := os.Hostname()
	return "host:" + name, err
}

func (linux) bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.TrimSpace(string(text))
	if err == nil && id == "" {
		err = io.ErrUnexpectedEOF
	}
	return id, err
}

func (linux) pidNS() (string, error) {
	var st syscall.Stat_t
	if err := syscall.Stat("/proc/self/ns/pid", &st); err != nil {
		return "", err
	}
	return strconv.FormatUint(st.Ino, 10), nil
}

func (linux) pids() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func (linux) stat(pid int) ([]byte, error) { return readProc(pid, "stat") }

// environ asks the other threads when the first has ended: they still have it.
func (linux) environ(pid int) ([]byte, error) {
	text, err := readProc(pid, "environ")
	if err != nil || len(text) > 0 {
		return text, err
	}
	for _, tid := range otherThreads(pid) {
		if more, err := readProc(tid, "environ"); err == nil && len(more) > 0 {
			return more, nil
		}
	}
	return text, nil
}

func otherThreads(pid int) []int {
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	var tids []int
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil && tid != pid {
			tids = append(tids, tid)
		}
	}
	return tids
}

func readProc(pid int, name string) ([]byte, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxProcFile))
	if err != nil {
		return nil, err
	}
	if len(text) == maxProcFile {
		return nil, fmt.Errorf("%s: %w", f.Name(), syscall.EFBIG)
	}
	return text, nil
}

func (linux) files(pid int) ([]openFile, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		// So looks a process whose first thread has just ended, because it ends or
		// because another thread executes a program (Become): no answer, and no
		// proof that it holds no lock.
		return nil, fmt.Errorf("%s: nothing is open: %w", dir, syscall.EAGAIN)
	}
	var files []openFile
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(int(d.Fd()), name, &st, 0) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		fd, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		files = append(files, openFile{fd: fd, inode: inodeName(uint64(st.Dev), st.Ino)})
	}
	return files, nil
}

func (linux) holdsShared(pid, fd int) (bool, error) {
	text, err := readProc(pid, "fdinfo/"+strconv.Itoa(fd))
	return err == nil && listsShared(text), err
}

// listsShared reads the locks of one descriptor: the kernel lists exactly those
// that were taken through it, by whomever, as
// "lock:	1: FLOCK  ADVISORY  READ 359 00:13:11691 0 EOF".
func listsShared(fdinfo []byte) bool {
	for line := range bytes.Lines(fdinfo) {
		if f := bytes.Fields(line); len(f) > 4 && string(f[0]) == "lock:" &&
			string(f[2]) == "FLOCK" && string(f[4]) == "READ" {
			return true
		}
	}
	return false
}

func (linux) open(pid int) (handle, error) {
	if pid <= 0 {
		return nil, syscall.ESRCH
	}
	fd, err := unix.PidfdOpen(pid, 0)
	switch err {
	case nil:
		return pidfd(fd), nil
	case unix.EINVAL, unix.ENOENT:
		// A thread that leads no process: EINVAL, since Linux 6.16 ENOENT.
		return nil, errNoLeader
	}
	return nil, err
}

func (linux) askLock(path, inode string) (lockState, error) { return askRunLock(path, inode) }

type pidfd int

// exited polls: a pidfd is readable once no thread of the process is left.
func (h pidfd) exited() (bool, error) {
	fds := []unix.PollFd{{Fd: int32(h), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return err == nil && n > 0, err
	}
}

func (h pidfd) signal(sig syscall.Signal) error {
	return unix.PidfdSendSignal(int(h), sig, nil, 0)
}

func (h pidfd) close() { unix.Close(int(h)) }
