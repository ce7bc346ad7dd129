package proc

// Answer is what is known about the processes of a run.
type Answer string

const (
	// Alive: the supervisor is proven to be there.
	Alive Answer = "alive"
	// Orphaned: the supervisor is proven gone, something of the run is left.
	Orphaned Answer = "orphaned"
	// Dead: nothing is left. The only answer on which a claim may be released.
	Dead Answer = "dead"
	// Held: neither proven nor refuted. Never signal, never release.
	Held Answer = "held"
)

// Evidence is an answer with its reasons.
type Evidence struct {
	Answer Answer
	// Why says in words what the answer rests on, for events and people.
	Why string
	// OtherBoot: dead because the machine, or the PID namespace, was started
	// anew since; so it was interrupted and did not crash.
	OtherBoot bool
	// Foreign: recorded on another machine or in another PID namespace, whose
	// numbers mean nothing here.
	Foreign bool
	// LockUnknown: foreign, and the run lock can never tell (its file is gone,
	// or another machine's kernel holds it). Only the lease is left to go by.
	LockUnknown bool
	// Members is what was found of an orphaned run, ready for
	// [Prober.SignalMembers]. Never our own process or an ancestor of it.
	Members []Member
}

// Member is one process left of a run whose supervisor is gone.
type Member struct {
	PID   int
	Start string // start tick
	By    string // the witness: "token", "lock" or "session"
}

// The witnesses, strongest first: a token is unique, a lock names its file, a
// session number may have been given away after the session died out.
const (
	byToken   = "token"
	byLock    = "lock"
	bySession = "session"
)

func held(why string) Evidence { return Evidence{Answer: Held, Why: why} }

// surroundings is the prober's own side of a comparison.
type surroundings struct {
	machine, boot, pidNS, first string
}

// whereabouts says whether the numbers of an identity mean anything here.
type whereabouts int

const (
	local whereabouts = iota
	otherBoot
	foreign        // another namespace of this kernel: its locks are ours
	foreignMachine // another kernel: nothing of it can be seen
)

// locate compares an identity with our surroundings, in the one order that is
// safe: a boot id says nothing about another machine, a namespace nothing
// about another boot.
func locate(id Identity, fp fingerprint, here surroundings) (whereabouts, string) {
	// One boot id is one kernel. Containers may differ in the machine id, or
	// have none, and still share it.
	sameKernel := fp.known && fp.boot == here.boot
	if id.Machine != here.machine || id.Machine == "" {
		switch {
		case !sameKernel:
			return foreignMachine, "recorded on another machine"
		case id.Machine != "":
			return foreign, "recorded under another machine id of this kernel"
		}
	}
	if fp.known && !sameKernel {
		return otherBoot, "the machine was started anew since"
	}
	if id.PIDNS != here.pidNS {
		return foreign, "recorded in another PID namespace"
	}
	if fp.known && fp.first != here.first && fp.first != hidden && here.first != hidden {
		return otherBoot, "the PID namespace was made anew since"
	}
	return local, ""
}

// sighting is what was seen of one number at one moment.
type sighting struct {
	openErr error // nil, ESRCH, errNoLeader, or what went wrong
	stat    stat
	statErr error
	exited  bool // by the handle
	exitErr error
	token   finding // the token in its environment
	lock    finding // the run lock on a descriptor of its own
}

// finding is a witness' word.
type finding int

const (
	unasked finding = iota // or could not be read
	yes
	no
)

// presence is the verdict on one number.
type presence int

const (
	proven presence = iota
	gone
	// replaced: gone, and its number is somebody else's by now. A number is not
	// given away while it is that of a session with members, so the session has
	// died out too.
	replaced
	unsure
	// contradictory: two readings cannot both be true, as when the process
	// ended between them. Look again.
	contradictory
)

// recognise decides whether a number is still the process with that start
// tick. An empty start means that none is on record (unverified): it can be
// refuted, never proven. Absence rests on two different probes, the number
// itself and /proc; either alone proves nothing.
func recognise(s sighting, start string, wantToken bool) (presence, string) {
	seen := s.statErr == nil
	missing := isGone(s.statErr)
	switch {
	case s.openErr == errNoLeader:
		return replaced, "its number is that of a thread"
	case isNoProcess(s.openErr):
		switch {
		case missing:
			return gone, "there is no such process"
		case !seen:
			return unsure, "its number is free, but /proc cannot be read: " + s.statErr.Error()
		case s.stat.ended():
			return gone, "it has ended"
		case start != "" && s.stat.start != start:
			return replaced, "start tick differs: its number was reused"
		}
		return contradictory, "its number is free, but /proc still shows it"
	case s.openErr != nil:
		return unsure, "it cannot be looked at: " + s.openErr.Error()
	case s.exitErr != nil:
		return unsure, "it cannot be looked at: " + s.exitErr.Error()
	case missing && s.exited:
		return gone, "it has ended"
	case missing:
		return unsure, "a process with its number is hidden from us"
	case !seen:
		return unsure, "it cannot be read: " + s.statErr.Error()
	case start != "" && s.stat.start != start:
		return replaced, "start tick differs: its number was reused"
	case s.stat.ended() && s.exited:
		return gone, "it has ended and waits to be reaped"
	case s.stat.ended() || s.exited:
		return contradictory, "it is just ending"
	case s.stat.state == 'Z':
		return unsure, "its first thread has ended, others go on"
	}
	if !wantToken {
		if start == "" {
			return unsure, "a process has its number, and no start tick is on record"
		}
		return proven, "start tick agrees"
	}
	if s.token == no && s.lock == no {
		return replaced, "it does not carry the run's token: its number was reused"
	}
	switch {
	case start == "":
		return unsure, "a process has its number, and no start tick is on record"
	case s.token == yes:
		return proven, "start tick and token agree"
	case s.lock == yes:
		return proven, "start tick and run lock agree"
	}
	return unsure, "start tick agrees, its token cannot be read"
}

// leftovers is what was found of a run whose supervisor is gone.
type leftovers struct {
	members []Member
	// ours: our own process or an ancestor carries a witness of the run.
	ours bool
	// incomplete is why the search may have missed a process, or "".
	incomplete string
	lock       lockState
	lockErr    error
}

// conclude decides what a run is whose supervisor is gone.
func conclude(l leftovers, gone string) Evidence {
	switch {
	case len(l.members) > 0:
		return Evidence{Answer: Orphaned, Why: gone + "; processes of the run are left", Members: l.members}
	case l.ours:
		// They are never signalled and never listed, but the card must not get
		// a second run beside them either.
		return held(gone + "; all that is left of the run is this very process or an ancestor of it")
	case l.incomplete != "":
		return held(gone + "; what is left of the run cannot be told: " + l.incomplete)
	case l.lockErr != nil:
		return held(gone + "; its run lock cannot be asked: " + l.lockErr.Error())
	case l.lock == lockHeld:
		return held(gone + "; its run lock is held by a process that cannot be seen")
	}
	return Evidence{Answer: Dead, Why: gone + "; nothing of the run is left"}
}

// concludeForeign decides by the run lock alone.
func concludeForeign(at whereabouts, where string, lock lockState, err error) Evidence {
	e := Evidence{Answer: Held, Foreign: true}
	switch {
	case at == foreignMachine:
		e.LockUnknown = true
		e.Why = where
	case err != nil:
		e.Why = where + "; its run lock cannot be asked: " + err.Error()
	case lock == lockHeld:
		e.Why = where + "; its run lock is held"
	case lock == lockFree:
		e.Answer = Dead
		e.Why = where + "; its run lock is free"
	default:
		e.LockUnknown = true
		e.Why = where + "; its run lock cannot tell"
	}
	return e
}
