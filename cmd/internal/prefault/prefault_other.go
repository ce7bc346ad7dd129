//go:build !linux

package prefault

// GiveBack is for a process that is going to wait for long; there is nothing to give
// back here.
func GiveBack(func()) {}
