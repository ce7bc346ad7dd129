package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mountedIn says that something is mounted at or under a directory, "" if nothing
// is: what is removed there is somebody's disk. The device number does not show it:
// a directory of the same file system may be mounted too.
func mountedIn(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err.Error()
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "it cannot be told whether something is mounted in it: " + err.Error()
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if at := unescaped(fields[4]); at == real || strings.HasPrefix(at, real+"/") {
			return fmt.Sprintf("something is mounted at %s", at)
		}
	}
	return ""
}

// unescaped undoes what the kernel does to blanks in paths: \040 is one.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
