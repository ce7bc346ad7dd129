//go:build !linux || (!amd64 && !arm64)

package prefault

// NoMoreHugePages: none were taken.
func NoMoreHugePages() {}

// GiveBack is for a process that is going to wait for long; there is nothing to give
// back here.
func GiveBack(func()) {}
