package tick

import (
	"slices"
	"time"

	"kanlog/projection"
)

// Policy is the settings a tick works by. Durations are not negative; a grace of
// zero means at once.
type Policy struct {
	Limits projection.Limits
	// LaunchGrace is how long a supervisor may take from its fork to register.
	LaunchGrace time.Duration
	// PrepareGrace is what the start of a card may take before that whose workspace
	// may be git's.
	PrepareGrace time.Duration
	// KillGrace is how long a process may take from TERM to its end before it
	// is killed.
	KillGrace time.Duration
	// TerminalGrace is how long a worker may live on after its run was closed.
	TerminalGrace time.Duration
	// ReclaimDefer is by how much the lease of a worker that was asked to end
	// and can neither be signalled nor ruled out is moved.
	ReclaimDefer time.Duration
	// Breaker pauses a profile whose runs end alike.
	Breaker projection.Breaker
	// MaxInProgress caps active runs of the board; 0 is never right.
	MaxInProgress int
	// HostCap caps active runs of all boards of the home, 0 for no cap.
	HostCap int
	// Ageing is how long a card waits for one more priority, 0 for no such thing.
	Ageing time.Duration
	// Profiles are the workers that can be started here, by assignee.
	Profiles map[string]Profile
}

// What a worker reads on its stdin.
const (
	StdinNone    = "none"    // nothing
	StdinContext = "context" // what $KANLOG_CONTEXT names
)

// What becomes of a card that starts again where something is not committed.
const (
	DirtyKeep   = "keep"   // it starts, and is told
	DirtyRefuse = "refuse" // it is held
	DirtyStash  = "stash"  // it starts, and what is there is put into a git stash
)

// Argv is the whole command.
func (p Profile) Argv() []string { return append(slices.Clone(p.Wrap), p.Command...) }

// caps are those that a card of this assignee is held to.
func (p Policy) caps(assignee string) projection.Caps {
	return projection.Caps{Host: p.HostCap, Board: p.MaxInProgress, Profile: p.Profiles[assignee].MaxInProgress, Breaker: p.Breaker}
}

// pressEvery is how often at most who is being ended is signalled again.
const pressEvery = time.Second

// Profile is a worker that can be started here.
type Profile struct {
	Name    string
	Command []string // argv with {task} {run} {title} {workspace} {context}
	Wrap    []string // words before the command: a limiter, a container
	Stdin   string   // one of the Stdin words
	// DirtyWorkspace is one of the Dirty words, "" for the board's.
	DirtyWorkspace string
	MaxInProgress  int // 0: only the board's cap
	MaxRuntime     time.Duration
	OnCleanExit    string // violation, complete or review
	Reviewer       string // the profile that reviews its work, "" for a person
	PassEnv        []string
	PassEnvSet     bool // pass_env was given, perhaps empty
	Env            map[string]string
}
