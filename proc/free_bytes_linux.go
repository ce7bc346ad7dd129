package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeBytes is how many bytes more the disk under f can hold, 0 if that is unknown or
// the file system is in memory.
func freeBytes(f *os.File) int64 {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil {
		return 0
	}
	if kind := uint32(st.Type); kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC {
		return 0
	}
	return int64(st.Bavail) * int64(st.Frsize)
}
