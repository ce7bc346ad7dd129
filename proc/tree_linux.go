package proc

import "syscall"

// tree is everything that a supervisor started, directly or not.
type tree struct {
	command int // first child, and its process group
	self    int
	// told holds who was sent SIGTERM, with the start tick of each.
	told map[int]string
}

func newTree(command, self int) tree { return tree{command, self, map[int]string{}} }

// signal sends sig to the whole tree: first, at once, to the command's process
// group, then to every descendant found through its parent links, whatever
// session it went to. Whom the group's signal reached gets no second one: to
// many programs a second SIGTERM says that they are not to finish what the first
// one made them begin.
//
// SIGKILL looks again until it finds nobody new, so a tree that forks faster than
// it is walked is still caught up with. SIGTERM does not: who is new may be what
// a handler of it started (kanlog fail, a clean-up). Called again, it is sent to
// those who were not told before.
//
// reaped says that the command was waited for. Its number is then only safe as
// that of a group while somebody of ours is in the group.
func (t tree) signal(sig syscall.Signal, reaped bool) {
	w := newWorld()
	sent := map[int]string{}
	if sig == syscall.SIGTERM {
		sent = t.told
	}
	first, grouped := len(sent) == 0, false
	for round := range walkRounds {
		found := t.descendants(w)
		if first && round == 0 && t.mayKillGroup(found, reaped) {
			grouped = syscall.Kill(-t.command, sig) == nil
		}
		fresh := false
		for pid, s := range found {
			if s.ended() || sent[pid] == s.start {
				continue
			}
			sent[pid], fresh = s.start, true
			t.signalOne(w, pid, s, sig, grouped && round == 0 && s.group == t.command)
		}
		if !fresh || sig == syscall.SIGTERM {
			return
		}
	}
}

// mayKillGroup refuses every group that could be more than the worker's: ours,
// that of init, "mine" (0) and "all" (-1).
func (t tree) mayKillGroup(found map[int]stat, reaped bool) bool {
	if t.command <= 1 || t.command == t.self || t.command == syscall.Getpgrp() {
		return false
	}
	if s, ok := found[t.command]; ok && !reaped && s.group != t.command {
		return false // the group of its own did not take effect
	}
	if !reaped {
		return true
	}
	for _, s := range found {
		if s.group == t.command {
			return true
		}
	}
	return false
}

// signalOne opens the process first and then makes sure that it is the one
// that was found: it is not our child, somebody else may just have reaped it. had
// says that it was sent to its group since, which counts if it is in it still.
func (t tree) signalOne(w world, pid int, was stat, sig syscall.Signal, had bool) {
	h, err := w.open(pid)
	if err != nil {
		return
	}
	defer h.close()
	line, err := w.stat(pid)
	if err != nil {
		return
	}
	is, err := parseStat(line)
	if err != nil || is.start != was.start {
		return
	}
	if !had || is.group != was.group {
		_ = h.signal(sig)
	}
	if sig == syscall.SIGTERM {
		_ = h.signal(syscall.SIGCONT) // a stopped process cannot obey
	}
}

// descendants returns every process whose parent links lead to us.
func (t tree) descendants(w world) map[int]stat {
	pids, err := w.pids()
	if err != nil {
		return nil
	}
	all := make(map[int]stat, len(pids))
	for _, pid := range pids {
		line, err := w.stat(pid)
		if err != nil {
			continue
		}
		if s, err := parseStat(line); err == nil {
			all[pid] = s
		}
	}
	found := map[int]stat{}
	ours := map[int]bool{t.self: true, 0: false, 1: t.self == 1}
	var lead func(pid int) bool
	lead = func(pid int) bool {
		if known, ok := ours[pid]; ok {
			return known
		}
		ours[pid] = false // a loop made by numbers that were reused while reading
		s, ok := all[pid]
		ours[pid] = ok && lead(s.parent)
		return ours[pid]
	}
	for pid, s := range all {
		if pid != t.self && lead(pid) {
			found[pid] = s
		}
	}
	return found
}

// lost reports whether something of the tree lives that is nobody's child of
// ours: never, a child-subreaper inherits them all.
func (tree) lost() bool { return false }
