package proc

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
)

// fakeWorld is a machine made of values. The zero process is one that has
// ended; errors stand for what a real machine may answer at any call.
type fakeWorld struct {
	me                                    int
	machineID, boot, ns                   string
	machineErr, bootErr, nsErr, pidsErr   error
	procs                                 map[int]*fakeProc
	openErr                               map[int]error // beside ESRCH for what is missing
	lock                                  lockState
	lockErr                               error
	lockAsked, listed, signals, statReads int
	sent                                  []string
}

type fakeProc struct {
	state                     byte
	parent, session, threads  int
	start                     string
	raw                       *string // instead of a well-formed line
	env                       string
	holds                     string // inode of a run lock it holds
	reads                     string // inode of a file it has open without a lock
	statErr, envErr, filesErr error
	pollErr                   error
	exited                    bool
	executing                 bool // it has no environment yet
	executes                  int  // for that many readings; 0 is for ever
	changeAfterOpen           func(*fakeProc)
}

const (
	herePID     = 500
	thisMachine = "machine-a"
	thisBoot    = "boot-a"
	thisNS      = "4026531836"
	superStart  = "7000"
	runToken    = "board/12"
	runInode    = "8:1234"
)

// newFakeWorld has PID 1, our parent 400 and us, 500.
func newFakeWorld() *fakeWorld {
	return &fakeWorld{
		me: herePID, machineID: thisMachine, boot: thisBoot, ns: thisNS, lock: lockFree,
		procs: map[int]*fakeProc{
			1:       {state: 'S', threads: 1, session: 1, start: "3"},
			400:     {state: 'S', parent: 1, threads: 1, session: 400, start: "5000", env: "PATH=/bin\x00"},
			herePID: {state: 'R', parent: 400, threads: 9, session: 400, start: "9000", env: "PATH=/bin\x00"},
		},
		openErr: map[int]error{},
	}
}

// recorded is the identity of the run's supervisor, 300.
func recorded() Identity {
	return Identity{
		PID: 300, Fingerprint: thisBoot + ":3|" + superStart, Machine: thisMachine, PIDNS: thisNS,
		OutputInode: runInode, OutputPath: "/runs/12.log", Token: runToken,
	}
}

// supervisor adds the process that recorded names.
func (w *fakeWorld) supervisor() *fakeProc {
	p := &fakeProc{state: 'S', parent: 1, threads: 5, session: 300, start: superStart,
		env: "A=b\x00KANLOG_TOKEN=" + runToken + "\x00", holds: runInode}
	w.procs[300] = p
	w.lock = lockHeld
	return p
}

func (w *fakeWorld) self() int                { return w.me }
func (w *fakeWorld) machine() (string, error) { return w.machineID, w.machineErr }
func (w *fakeWorld) bootID() (string, error)  { return w.boot, w.bootErr }
func (w *fakeWorld) pidNS() (string, error)   { return w.ns, w.nsErr }

func (w *fakeWorld) pids() ([]int, error) {
	w.listed++
	return slices.Sorted(maps.Keys(w.procs)), w.pidsErr
}

func (w *fakeWorld) stat(pid int) ([]byte, error) {
	w.statReads++
	p, ok := w.procs[pid]
	switch {
	case !ok:
		return nil, syscall.ENOENT
	case p.statErr != nil:
		return nil, p.statErr
	case p.raw != nil:
		return []byte(*p.raw), nil
	}
	return []byte(statLine(pid, p)), nil
}

func statLine(pid int, p *fakeProc) string {
	return fmt.Sprintf("%d (odd) name) (x) %c %d %d %d 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 %d 0 %s 1000 20 1844 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 1 1 1 %d %d %d %d 0\n",
		pid, p.state, p.parent, pid, p.session, p.threads, p.start, 100, 200, 200, p.envEnd())
}

// envEnd is where the kernel says that the environment ends, 200 being where it
// begins; 0 is what it says of a process that is just executing.
func (p *fakeProc) envEnd() int {
	if p.executing {
		return 0
	}
	return 200 + len(p.env)
}

func (w *fakeWorld) environ(pid int) ([]byte, error) {
	p, ok := w.procs[pid]
	if !ok {
		return nil, syscall.ENOENT
	}
	if p.executing {
		if p.executes--; p.executes == 0 {
			p.executing = false
		}
		return nil, p.envErr
	}
	return []byte(p.env), p.envErr
}

func (w *fakeWorld) files(pid int) ([]openFile, error) {
	p, ok := w.procs[pid]
	if !ok {
		return nil, syscall.ENOENT
	}
	var f []openFile
	if p.holds != "" {
		f = append(f, openFile{fd: 1, inode: p.holds})
	}
	if p.reads != "" {
		f = append(f, openFile{fd: 2, inode: p.reads})
	}
	return f, p.filesErr
}

func (w *fakeWorld) holdsShared(pid, fd int) (bool, error) { return fd == 1, nil }

func (w *fakeWorld) open(pid int) (handle, error) {
	if err := w.openErr[pid]; err != nil {
		return nil, err
	}
	p, ok := w.procs[pid]
	if !ok {
		return nil, syscall.ESRCH
	}
	if p.changeAfterOpen != nil {
		p.changeAfterOpen(p)
	}
	return &fakeHandle{w, p, pid}, nil
}

func (w *fakeWorld) askLock(path, inode string) (lockState, error) {
	w.lockAsked++
	return w.lock, w.lockErr
}

type fakeHandle struct {
	w   *fakeWorld
	p   *fakeProc
	pid int
}

func (h *fakeHandle) exited() (bool, error) { return h.p.exited, h.p.pollErr }

func (h *fakeHandle) signal(sig syscall.Signal) error {
	h.w.signals++
	h.w.sent = append(h.w.sent, fmt.Sprintf("%d:%d", h.pid, sig))
	return nil
}

func (h *fakeHandle) close() {}
