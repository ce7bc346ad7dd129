package proc

import (
	"errors"
	"os"
	"strconv"
)

// Marked is a process that carries the token of a run.
type Marked struct {
	PID   int
	Run   string // as the token names it
	Token string
}

// Marked lists the processes that carry a token of this board (its uuid in hex),
// for who looks for what a closed run has left. Ourselves and our ancestors are
// not listed: nobody may be told to end those. It signals nothing. One that is
// just executing a program may be overlooked, and is seen by the next look.
func (p *Prober) Marked(board string) ([]Marked, error) {
	excluded, err := p.exclude()
	if err != nil {
		return nil, err
	}
	if p.scan == nil {
		p.scan = scanProcesses(p.world)
	}
	if len(p.scan.processes) == 0 && p.scan.incomplete != "" {
		return nil, errors.New(p.scan.incomplete)
	}
	var list []Marked
	for _, q := range p.scan.processes {
		if run, ours := runOf(q.token, board); ours && !excluded[q.pid] {
			list = append(list, Marked{PID: q.pid, Run: run, Token: q.token})
		}
	}
	return list, nil
}

// Stopped tells whether a process is stopped (SIGSTOP, ctrl-Z, a debugger) and
// does nothing until somebody lets it go on.
func (p *Prober) Stopped(pid int) bool {
	s, err := p.readStat(pid)
	return err == nil && (s.state == 'T' || s.state == 't')
}

// OtherProgram tells whether a process runs another file than we do, and names
// it; ok is false if it runs the same one or that cannot be told.
func OtherProgram(pid int) (path string, ok bool) {
	link := "/proc/" + strconv.Itoa(pid) + "/exe"
	theirs, err := os.Stat(link) // the file itself, also when its name is gone
	if err != nil {
		return "", false
	}
	ours, err := os.Stat("/proc/self/exe")
	if err != nil || os.SameFile(theirs, ours) {
		return "", false
	}
	path, err = os.Readlink(link)
	return path, err == nil
}
