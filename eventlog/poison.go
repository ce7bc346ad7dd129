package eventlog

import "sync"

// poisoned holds the stores whose last commit failed where it may already have
// been on the disk. It is for the whole process and never cleared: after a
// failed sync the kernel may drop the dirty pages and call them clean, so what
// this process reads back proves nothing. A fresh process reads the disk.
var poisoned struct {
	sync.Mutex
	paths map[string]bool
}

func poison(path string) {
	poisoned.Lock()
	defer poisoned.Unlock()
	if poisoned.paths == nil {
		poisoned.paths = make(map[string]bool)
	}
	poisoned.paths[path] = true
}

func isPoisoned(path string) bool {
	poisoned.Lock()
	defer poisoned.Unlock()
	return poisoned.paths[path]
}
