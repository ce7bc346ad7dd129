//go:build !linux

package proc

import (
	"errors"
	"os"
	"syscall"
)

// plain is a machine without /proc and pidfds. Nothing can be proven on it but
// the absence of a number, so every fingerprint is "unverified" and whoever is
// there is held.
type plain struct{}

func newWorld() world { return plain{} }

var errNotHere = errors.New("not known on this system")

func (plain) self() int { return os.Getpid() }

func (plain) machine() (string, error) {
	name, err := os.Hostname()
	return "host:" + name, err
}

func (plain) bootID() (string, error) { return "", nil }
func (plain) pidNS() (string, error)  { return "", nil }

// pids is empty: processes cannot be searched, the run lock decides alone.
func (plain) pids() ([]int, error) { return nil, nil }

func (plain) stat(pid int) ([]byte, error) {
	if err := syscall.Kill(pid, 0); err == syscall.ESRCH {
		return nil, err
	}
	if pid == 1 {
		return nil, syscall.EACCES
	}
	return nil, errNotHere
}

func (plain) environ(int) ([]byte, error)        { return nil, errNotHere }
func (plain) files(int) ([]openFile, error)      { return nil, errNotHere }
func (plain) holdsShared(int, int) (bool, error) { return false, errNotHere }

func (plain) open(pid int) (handle, error) {
	if err := syscall.Kill(pid, 0); err == syscall.ESRCH {
		return nil, err
	}
	return nil, errNotHere
}

func (plain) askLock(path, inode string) (lockState, error) { return askRunLock(path, inode) }
