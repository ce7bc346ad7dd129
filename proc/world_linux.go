package proc

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// linux reads the machine it runs on.
type linux struct{ line, env []byte } // the last stat line and environment, to be used again

func newWorld() world { return new(linux) }

func (*linux) self() int { return os.Getpid() }

func (*linux) machine() (string, error) {
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

func (*linux) bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.TrimSpace(string(text))
	if err == nil && id == "" {
		err = io.ErrUnexpectedEOF
	}
	return id, err
}

func (*linux) pidNS() (string, error) {
	var st syscall.Stat_t
	if err := syscall.Stat("/proc/self/ns/pid", &st); err != nil {
		return "", err
	}
	return strconv.FormatUint(st.Ino, 10), nil
}

func (*linux) pids() ([]int, error) {
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

// stat is complete with its newline: no second reading is needed to see its end.
func (w *linux) stat(pid int) (line []byte, err error) {
	line, err = readProc(pid, "stat", w.line[:0], func(text []byte) bool { return bytes.HasSuffix(text, []byte("\n")) })
	w.line = line
	return line, err
}

// environ asks the other threads when the first has ended: they still have it.
func (w *linux) environ(pid int) (text []byte, err error) {
	defer func() { w.env = text }()
	text, err = readProc(pid, "environ", w.env[:0], nil)
	if err != nil || len(text) > 0 {
		return text, err
	}
	for _, tid := range otherThreads(pid) {
		if more, err := readProc(tid, "environ", text, nil); err == nil && len(more) > 0 {
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

// readProc reads one file of a process into text, until its end or until it is whole.
// Without package os, which asks the kernel twice more for each file and reads in small
// pieces: a tick does this for every active run. After an error what is returned is
// empty.
func readProc(pid int, name string, text []byte, whole func([]byte) bool) ([]byte, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/" + name
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for {
		text = slices.Grow(text, procFile)
		n, err := retry(func() (int, error) { return unix.Read(fd, text[len(text):cap(text)]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		text = text[:len(text)+n]
		if n == 0 || whole != nil && whole(text) {
			return text, nil
		}
		if len(text) >= maxProcFile {
			return nil, fmt.Errorf("%s: %w", path, syscall.EFBIG)
		}
	}
}

// procFile is room for most files of a process.
const procFile = 4 << 10

// retry makes a call again that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

func (*linux) files(pid int) ([]openFile, error) {
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

func (*linux) holdsShared(pid, fd int) (bool, error) {
	text, err := readProc(pid, "fdinfo/"+strconv.Itoa(fd), nil, nil)
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

func (*linux) open(pid int) (handle, error) {
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

func (*linux) askLock(path, inode string) (lockState, error) { return askRunLock(path, inode) }

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
