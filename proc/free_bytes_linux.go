package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeBytes is how many bytes more the file system of f can hold, 0 if that is unknown.
func freeBytes(f *os.File) int64 {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil {
		return 0
	}
	return int64(st.Bavail) * st.Frsize
}
