//go:build !linux

package eventlog

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// remoteFS returns the name of the file system of dir if it is not a local one.
var remoteFS = func(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", fmt.Errorf("statfs %s: %w", dir, err)
	}
	if st.Flags&unix.MNT_LOCAL != 0 {
		return "", nil
	}
	return unix.ByteSliceToString(st.Fstypename[:]), nil
}
