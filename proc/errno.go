package proc

import (
	"errors"
	"syscall"
)

// isNoProcess: the number is free.
func isNoProcess(err error) bool { return errors.Is(err, syscall.ESRCH) }

// isGone: /proc shows no such process (ESRCH when it ended while being read).
func isGone(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH)
}

// isHidden: we may not see it, and shall not next time either.
func isHidden(err error) bool {
	return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) || isGone(err)
}
