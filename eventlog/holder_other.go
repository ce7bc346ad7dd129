//go:build !linux

package eventlog

import "os"

// holder: only Linux tells who holds a flock.
func holder(*os.File) string { return "" }

// Holder cannot be told here.
func Holder(string) (pid int, command string) { return 0, "" }

// CommandOf cannot be told here.
func CommandOf(int) string { return "command unknown" }
