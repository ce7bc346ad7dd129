//go:build !linux

package proc

import "syscall"

// tree is the worker's process group: without child-subreapers and /proc,
// whoever leaves the group is lost.
type tree struct {
	command int
	self    int
}

func newTree(command, self int) tree { return tree{command, self} }

func (t tree) signal(sig syscall.Signal, reaped bool) {
	if t.command <= 1 || t.command == t.self || t.command == syscall.Getpgrp() {
		return
	}
	_ = syscall.Kill(-t.command, sig)
	if sig == syscall.SIGTERM {
		_ = syscall.Kill(-t.command, syscall.SIGCONT)
	}
}

// lost reports whether the group has members that we cannot wait for.
func (t tree) lost() bool {
	return t.command > 1 && syscall.Kill(-t.command, 0) == nil
}
