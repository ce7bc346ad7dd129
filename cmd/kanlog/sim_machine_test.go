package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"

	"kanlog/proc"
)

// simMachine is the machine of a simulation: processes with numbers that are
// given away again, parents, sessions, environments and run locks, in two PID
// namespaces of one kernel.
type simMachine struct {
	s     *sim
	boot  int
	ticks int // since boot; start ticks of processes
	// procs holds every process that was not reaped, by namespace and number.
	procs map[simPID]*simProc
	// first is the start tick of PID 1 of a namespace.
	first map[string]int
	// noise is how often one reading of /proc fails, in a thousand.
	noise int
	// machine is the machine id.
	machine string
}

type simPID struct {
	ns  string
	pid int
}

// simProc is one process.
type simProc struct {
	simPID
	start   int
	parent  *simProc // nil is PID 1
	session int
	token   string
	holds   string // inode of the run lock it holds
	stopped bool
	ended   bool // a zombie until it is reaped
	reaped  bool

	kind string // dispatcher, supervisor, command, descendant, stranger
	run  uint64
	card string

	killed bool // by SIGKILL
	term   bool // a SIGTERM that it has not looked at
	deaf   bool // to SIGTERM

	// sv is what a supervisor has in mind, work what a command has.
	sv   *simSupervisor
	work *simWorker
	life int // steps that a descendant has left, -1 for ever
}

func (m *simMachine) add(ns string, parent *simProc, kind string) *simProc {
	p := &simProc{simPID: simPID{ns, m.freePID(ns)}, start: m.ticks, parent: parent, kind: kind, life: -1}
	if parent != nil {
		p.session, p.token, p.holds, p.run, p.card = parent.session, parent.token, parent.holds, parent.run, parent.card
	} else {
		p.session = p.pid
	}
	m.procs[p.simPID] = p
	return p
}

// freePID gives a number away again as soon as the kernel would: nobody has it,
// neither as a process nor as a session.
func (m *simMachine) freePID(ns string) int {
	used := map[int]bool{1: true}
	for _, p := range m.procs {
		if p.ns == ns {
			used[p.pid], used[p.session] = true, true
		}
	}
	// From a small range, so that numbers come back soon.
	for span := 12; ; span *= 2 {
		pid := 2 + m.s.r.IntN(span)
		if !used[pid] {
			return pid
		}
	}
}

// end ends a process: its locks go, its children get another parent, and it
// stays as a zombie until its parent reaps it.
func (m *simMachine) end(p *simProc) {
	if p.ended {
		return
	}
	p.ended, p.holds = true, ""
	if p.sv != nil {
		close(p.sv.gone)
	}
	for _, c := range m.sorted() {
		if c.parent != p {
			continue
		}
		if p.kind == "supervisor" && c.kind == "command" {
			// The parent-death signal.
			c.killed = true
			m.end(c)
		}
		c.parent = m.reaper(p)
		if c.ended && c.parent == nil {
			m.reap(c)
		}
	}
	if p.parent == nil || p.parent.ended || p.parent.kind == "dispatcher" {
		m.reap(p)
	}
}

// reaper is who inherits the children of a process: the next supervisor above
// it, else PID 1.
func (m *simMachine) reaper(p *simProc) *simProc {
	for q := p.parent; q != nil; q = q.parent {
		if q.kind == "supervisor" && !q.ended {
			return q
		}
	}
	return nil
}

func (m *simMachine) reap(p *simProc) {
	p.reaped = true
	if m.procs[p.simPID] == p {
		delete(m.procs, p.simPID)
	}
}

// sorted is every process, in an order that a seed repeats.
func (m *simMachine) sorted() []*simProc {
	list := make([]*simProc, 0, len(m.procs))
	for _, p := range m.procs {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *simProc) int {
		if a.ns != b.ns {
			if a.ns < b.ns {
				return -1
			}
			return 1
		}
		return a.pid - b.pid
	})
	return list
}

// deliver is a signal that reaches a process.
func (m *simMachine) deliver(p *simProc, sig syscall.Signal) {
	switch {
	case p.ended:
	case sig == syscall.SIGKILL:
		p.killed = true
		m.end(p)
	case sig == syscall.SIGCONT:
		p.stopped = false
	case sig == syscall.SIGSTOP:
		p.stopped = true
	case sig == syscall.SIGTERM:
		switch {
		case p.kind == "supervisor" || p.kind == "command":
			p.term = true
		case !p.deaf && !p.stopped:
			m.end(p)
		}
	}
}

// reboot ends everything at once.
func (m *simMachine) reboot() {
	for _, p := range m.sorted() {
		if p.sv != nil && !p.ended {
			close(p.sv.gone)
		}
		p.ended, p.reaped, p.holds = true, true, ""
	}
	clear(m.procs)
	m.boot++
	m.ticks = 10
	m.first = map[string]int{"a": 1, "b": 5}
}

// recreate ends everything in the second namespace, which is made anew.
func (m *simMachine) recreate() {
	for _, p := range m.sorted() {
		if p.ns == "b" {
			if p.sv != nil && !p.ended {
				close(p.sv.gone)
			}
			p.ended, p.holds = true, ""
			m.reap(p)
		}
	}
	m.first["b"] = m.ticks
}

// as is the machine as one process sees it.
type simView struct {
	m  *simMachine
	me *simProc
}

var errNoise = errors.New("input/output error")

func (v simView) noisy() bool { return v.m.s.r.IntN(1000) < v.m.noise }

func (v simView) Self() int { return v.me.pid }

func (v simView) MachineID() (string, error) { return v.m.machine, nil }

func (v simView) BootID() (string, error) {
	if v.noisy() {
		return "", errNoise
	}
	return "boot" + strconv.Itoa(v.m.boot), nil
}

func (v simView) PIDNamespace() (string, error) { return v.me.ns, nil }

func (v simView) PIDs() ([]int, error) {
	if v.noisy() {
		return nil, errNoise
	}
	pids := []int{1}
	for _, p := range v.m.sorted() {
		if p.ns == v.me.ns {
			pids = append(pids, p.pid)
		}
	}
	return pids, nil
}

func (v simView) find(pid int) *simProc { return v.m.procs[simPID{v.me.ns, pid}] }

func (v simView) Stat(pid int) ([]byte, error) {
	if pid != 1 && v.noisy() {
		return nil, errNoise
	}
	state, parent, session, start, env := byte('S'), 0, 1, v.m.first[v.me.ns], 300
	if pid != 1 {
		p := v.find(pid)
		if p == nil {
			return nil, syscall.ENOENT
		}
		session, start, parent = p.session, p.start, 1
		if p.parent != nil && p.parent.ns == p.ns {
			parent = p.parent.pid
		}
		switch {
		case p.ended:
			state = 'Z'
		case p.stopped:
			state = 'T'
		}
		if p.token == "" && p.kind != "stranger" {
			env = 200
		}
	}
	return fmt.Appendf(nil, "%d (a) b) %c %d %d %d 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 %d 1000 20 1844 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 1 1 1 100 200 200 %d 0\n",
		pid, state, parent, pid, session, start, env), nil
}

func (v simView) Environ(pid int) ([]byte, error) {
	p := v.find(pid)
	switch {
	case pid == 1:
		return []byte("PATH=/bin\x00"), nil
	case p == nil:
		return nil, syscall.ENOENT
	case v.noisy():
		return nil, errNoise
	case p.kind == "stranger":
		return []byte("PATH=/bin\x00"), nil
	case p.ended || p.token == "":
		return nil, nil
	}
	return []byte(proc.TokenVariable + "=" + p.token + "\x00"), nil
}

func (v simView) Locks(pid int) ([]string, error) {
	p := v.find(pid)
	switch {
	case p == nil:
		return nil, syscall.ENOENT
	case v.noisy():
		return nil, errNoise
	case p.holds == "":
		return nil, nil
	}
	return []string{p.holds}, nil
}

func (v simView) Open(pid int) (proc.Handle, error) {
	if v.noisy() {
		return nil, errNoise
	}
	p := v.find(pid)
	if p == nil {
		return nil, syscall.ESRCH
	}
	return simHandle{v, p}, nil
}

func (v simView) RunLock(_, inode string) (held, known bool, err error) {
	if v.noisy() {
		return false, false, errNoise
	}
	for _, p := range v.m.procs {
		if p.holds == inode {
			return true, true, nil
		}
	}
	return false, true, nil
}

// simHandle is a pidfd: it means this process, whoever has its number by now.
type simHandle struct {
	v simView
	p *simProc
}

func (h simHandle) Exited() (bool, error) { return h.p.ended, nil }

func (h simHandle) Signal(sig syscall.Signal) error {
	if h.p.reaped {
		return syscall.ESRCH
	}
	h.v.m.s.signalled(h.p, sig)
	h.v.m.deliver(h.p, sig)
	return nil
}

// Tidy has nothing to do: this machine has no files.
func (w simWorld) Tidy(string, uint64) {}
