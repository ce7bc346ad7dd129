package proc

import (
	"fmt"
	"time"
)

// scan is one reading of /proc, shared by all runs of a tick.
type scan struct {
	processes []process
	bySession map[int][]process
	// incomplete is why a process may have been missed, or "".
	incomplete string
	// open maps the inode of a regular file to who has it open; read only when
	// some run lock is held.
	open map[string][]openBy
}

type process struct {
	pid   int
	stat  stat
	token string
}

type openBy struct {
	pid, fd int
}

// search finds what is left of a run whose supervisor is gone, and concludes.
// session says that the supervisor's session may still be there.
func (p *Prober) search(id Identity, gone string, session bool) Evidence {
	excluded, err := p.exclude()
	if err != nil {
		return held(gone + "; " + err.Error())
	}
	if p.scan == nil {
		p.scan = scanProcesses(p.world)
	}
	l := leftovers{incomplete: p.scan.incomplete}
	seen := map[int]bool{}
	add := func(q process, by string) {
		switch {
		case seen[q.pid]:
		case excluded[q.pid]:
			l.ours = l.ours || q.pid != 1
		default:
			seen[q.pid] = true
			l.members = append(l.members, Member{PID: q.pid, Start: q.stat.start, By: by})
		}
	}
	if id.Token != "" {
		for _, q := range p.scan.processes {
			if q.token == id.Token {
				add(q, byToken)
			}
		}
	}
	l.lock, l.lockErr = p.askLock(id)
	if l.lock != lockFree && l.lockErr == nil {
		holders := p.holders(id.OutputInode)
		for _, q := range holders {
			add(q, byLock)
		}
		// Another prober asks for the same lock for an instant, and a holder
		// may have ended meanwhile.
		if l.lock == lockHeld && len(holders) == 0 {
			l.lock, l.lockErr = p.askLock(id)
		}
	}
	// Whoever could not be read may be the one that shows that the session is
	// another's.
	if session && !id.Guest && p.scan.incomplete == "" {
		for _, q := range p.sessionOf(id) {
			add(q, bySession)
		}
	}
	return conclude(l, gone)
}

// seesToken says in words why a foreign run may have a process here, "" if nothing
// that can be seen carries its token.
func (p *Prober) seesToken(id Identity) string {
	if p.scan == nil {
		p.scan = scanProcesses(p.world)
	}
	for _, q := range p.scan.processes {
		if id.Token != "" && q.token == id.Token {
			return fmt.Sprintf("process %d carries its token", q.pid)
		}
	}
	return p.scan.incomplete
}

// sessionOf returns the members of the supervisor's session, or none if the
// number of the session may have been given to somebody else since. As long as
// the session has members its number is not reused; so a process that has the
// number now (the supervisor is gone), a member older than the supervisor, or
// one with the token of another run, say that the session died out and this is
// another one. What remains, and is accepted: a stranger that got the number,
// made a session of it, left others in it and ended.
func (p *Prober) sessionOf(id Identity) []process {
	members := p.scan.bySession[id.PID]
	start := parseFingerprint(id.Fingerprint).start
	for _, q := range members {
		if q.pid == id.PID || olderThan(q.stat.start, start) || q.token != "" && q.token != id.Token {
			return nil
		}
	}
	return members
}

// olderThan compares start ticks, decimal numbers without leading zeros.
func olderThan(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// scanProcesses lists /proc until a listing shows nothing new, so that a
// process forked by one that ended while we read is not missed.
func scanProcesses(w world) *scan {
	s := &scan{bySession: map[int][]process{}}
	known := map[int]bool{}
	for range maxScanRounds {
		pids, err := w.pids()
		if err != nil {
			s.incomplete = fmt.Sprintf("processes cannot be listed: %v", err)
			return s
		}
		fresh := false
		for _, pid := range pids {
			if known[pid] {
				continue
			}
			known[pid], fresh = true, true
			s.read(w, pid)
		}
		if !fresh {
			break
		}
	}
	return s
}

// read looks at one process. While a process is executing a program it has no
// environment for an instant, and would be missed by its token: an empty one
// counts only if the process is twice seen to have been given an empty one.
func (s *scan) read(w world, pid int) {
	q := process{pid: pid}
	empty := 0
	for look := 0; ; look++ {
		env, err := w.environ(pid)
		line, serr := w.stat(pid)
		if isHidden(serr) {
			return
		}
		if serr == nil {
			q.stat, serr = parseStat(line)
		}
		if serr != nil {
			s.incomplete = fmt.Sprintf("process %d cannot be read: %v", pid, serr)
			return
		}
		if q.stat.ended() {
			return
		}
		if err != nil && !isHidden(err) {
			s.incomplete = fmt.Sprintf("the environment of process %d cannot be read: %v", pid, err)
		}
		q.token = tokenOf(env)
		if err != nil || len(env) > 0 || q.stat.kernel || q.stat.state == 'Z' {
			break
		}
		if empty++; !q.stat.noEnv {
			empty = 0
		}
		if empty == 2 {
			break
		}
		if look == maxSettles {
			s.incomplete = fmt.Sprintf("process %d has had no environment for too long", pid)
			break
		}
		if look > 1 {
			time.Sleep(settlePause)
		}
	}
	s.processes = append(s.processes, q)
	s.bySession[q.stat.session] = append(s.bySession[q.stat.session], q)
}

// holders returns the processes that hold the run lock on a file.
func (p *Prober) holders(inode string) []process {
	if inode == "" {
		return nil
	}
	if p.scan.open == nil {
		p.scan.open = map[string][]openBy{}
		for _, q := range p.scan.processes {
			files, err := p.world.files(q.pid)
			if err != nil {
				continue // hidden or gone; the lock itself says whether one is left
			}
			for _, f := range files {
				p.scan.open[f.inode] = append(p.scan.open[f.inode], openBy{q.pid, f.fd})
			}
		}
	}
	byPID := map[int]process{}
	for _, o := range p.scan.open[inode] {
		if held, err := p.world.holdsShared(o.pid, o.fd); err == nil && held {
			byPID[o.pid] = process{}
		}
	}
	var found []process
	for _, q := range p.scan.processes {
		if _, ok := byPID[q.pid]; ok {
			found = append(found, q)
		}
	}
	return found
}
