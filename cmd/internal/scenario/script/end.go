package script

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How long kanlog has to end what a scenario left, before it is killed, and how many
// events of a board are told.
const (
	stopGrace  = 15 * time.Second
	lastEvents = 12
)

// place is where a scenario runs, and what has to go when it is over.
type place struct {
	mu sync.Mutex
	// The program, and the scenario's directory and home; "" before there are any.
	program, work, home string

	seen   bool
	events []string
	left   string // what could not be ended
}

func (p *place) at(program, work, home string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.program, p.work, p.home = program, work, home
}

// clear notes what happened last and ends all that is left. It may be called again,
// and from beside.
func (p *place) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.work == "" {
		return
	}
	if !p.seen {
		p.seen = true
		p.events = p.tell()
	}
	p.end()
}

func (p *place) boards() (slugs []string) {
	stores, _ := filepath.Glob(filepath.Join(p.home, "boards", "*", "board.db"))
	for _, path := range stores {
		slugs = append(slugs, filepath.Base(filepath.Dir(path)))
	}
	return slugs
}

// kanlog calls the program from outside of the scenario.
func (p *place) kanlog(grace time.Duration, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.program, args...)
	cmd.Dir = os.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "KANLOG_HOME=" + p.home}
	return cmd.CombinedOutput()
}

func (p *place) tell() (events []string) {
	boards := p.boards()
	for _, slug := range boards {
		out, err := p.kanlog(stopGrace, "events", "--board", slug)
		if err != nil {
			continue // a scenario may have damaged it
		}
		if len(boards) > 1 {
			events = append(events, "board "+slug+":")
		}
		lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
		events = append(events, lines[max(0, len(lines)-lastEvents):]...)
	}
	return events
}

// end lets kanlog end its workers, whose supervisors know all that belongs to them,
// and kills what is left then.
func (p *place) end() {
	if found, known := p.processes(); known && len(found) == 0 {
		return
	}
	for _, slug := range p.boards() {
		// Whether it could is seen below.
		_, _ = p.kanlog(stopGrace, "stop", "--kill", "--board", slug)
	}
	for end := time.Now().Add(stopGrace); ; time.Sleep(20 * time.Millisecond) {
		found, _ := p.processes()
		if len(found) == 0 {
			p.left = ""
			return
		}
		if time.Now().After(end) {
			p.left = fmt.Sprintf("left behind: processes %v", found)
			return
		}
		for _, pid := range found {
			// Found by number, held by a descriptor, and only then known to be ours.
			if process, err := os.FindProcess(pid); err == nil {
				if p.ours(pid) {
					_ = process.Kill()
				}
				_ = process.Release()
			}
		}
	}
}

// processes are all that the scenario started and that live; known is false where
// that cannot be told.
func (p *place) processes() (found []int, known bool) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if pid > 1 && pid != os.Getpid() && p.ours(pid) {
			found = append(found, pid)
		}
	}
	return found, len(dirs) > 0
}

// ours tells whether a process belongs to the scenario: by the directory in its
// environment or, if it wiped that, by where it is. One that ended has neither.
func (p *place) ours(pid int) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	env, _ := os.ReadFile(filepath.Join(dir, "environ"))
	for _, kv := range bytes.Split(env, []byte{0}) {
		if s := string(kv); s == "WORK="+p.work || s == "KANLOG_HOME="+p.home {
			return true
		}
	}
	cwd, err := os.Readlink(filepath.Join(dir, "cwd"))
	return err == nil && strings.HasPrefix(cwd+"/", p.work+"/")
}
