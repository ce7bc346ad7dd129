//go:build unix

package eventlog

import (
	"os"
	"syscall"
)

// openFile is os.OpenFile without the attempt to make the file one that can be
// polled: five calls of the kernel for each of the three files of a transaction,
// which a regular file refuses anyway.
func openFile(path string, flag int, perm uint32) (*os.File, error) {
	for {
		fd, err := syscall.Open(path, flag|syscall.O_CLOEXEC, perm)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), path), nil
		case syscall.EINTR:
		default:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}
