// Command kanlog is a durable task board and dispatcher for worker processes.
//
// No rule of the board lives here: a verb parses what it was given, runs one
// decider or one query, and prints. Exit codes and words for errors are made
// here and nowhere else.
package main

import (
	"os"
	"runtime"

	_ "kanlog/cmd/internal/prefault" // before nearly all others, so that they find their memory mapped
)

func init() {
	// A supervisor's child gets a parent-death signal, which the kernel ties to
	// the thread that forked it: the supervisor must fork from the main thread,
	// which lives as long as the process.
	if len(os.Args) > 1 && os.Args[1] == superviseVerb {
		runtime.LockOSThread()
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == superviseVerb {
		// Not through the command tree: a supervisor lives as long as its
		// worker and should hold nothing it does not need.
		os.Exit(supervise(os.Stdin))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
