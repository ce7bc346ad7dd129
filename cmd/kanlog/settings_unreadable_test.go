package main

import (
	"io/fs"
	"syscall"
	"testing"
)

// Settings that cannot be read are a wrong file, or a machine that failed: only
// the first is for the caller to mend.
func TestSettingsThatCannotBeRead(t *testing.T) {
	for errno, want := range map[syscall.Errno]int{
		syscall.EISDIR: exitUsage, syscall.EACCES: exitUsage, syscall.ENOTDIR: exitUsage,
		syscall.EIO: exitFailed, syscall.EMFILE: exitFailed, syscall.ENOMEM: exitFailed,
	} {
		err := unreadable("settings", &fs.PathError{Op: "open", Path: "config.toml", Err: errno})
		if got := exitCode(err); got != want {
			t.Errorf("%v: exit %d, want %d", err, got, want)
		}
	}
}
