package tick

import (
	"context"

	"kanlog/eventlog"
	"kanlog/projection"
)

// Board is the board that a tick works on. projection.Store is one.
type Board interface {
	// Update runs a decider in one transaction; see projection.Store.Update.
	Update(actor string, now eventlog.Time, d projection.Decider) (projection.Result, error)
	// View reads one consistent state.
	View(fn func(projection.View) error) error
}

// World is the processes and files around a board.
type World interface {
	// Look returns a view of the processes as they are now. It is used for one
	// tick: one scan serves all runs. Of the runs given it will be asked.
	Look(runs []*projection.Run) Look
	// Record returns the exit record of a run, nil if it left none.
	// ErrInfrastructure says that it cannot be read just now, any other error
	// that it is none.
	Record(r *projection.Run) (*projection.ExitRecord, error)
	// Tidy removes the files that a process of a run had begun to write aside. It
	// is called when that process is proven gone, before this is booked: a tick
	// that is killed in between is followed by another that does both.
	Tidy(task string, run uint64)
	// Host says what the machine and the other boards of the home leave room for.
	// Until release is called no other dispatcher of the home gets an answer, unless
	// dry.
	Host(dry bool) (h Host, release func(), err error)
	// Claimer is the identity of this process, for the claims it makes.
	Claimer() eventlog.Process
	// Start prepares the workspace of a claimed card and starts its
	// supervisor. An error means that nothing was started. It may be slow and
	// is called from several goroutines; begin is called around the fork, so
	// that no process is forked while this one holds the store.
	Start(l Launch, begin func(fork func() error) error) (Started, error)
}

// Launch is a claimed card that wants its worker.
type Launch struct {
	Task    *projection.Task
	Run     uint64
	Profile Profile
}

// Started is a supervisor that was forked and has not reported yet.
type Started interface {
	// Await returns when the supervisor reported, died, or ctx is done.
	Await(ctx context.Context) FirstWord
	PID() int
	Workspace() string
}

// FirstWord is a supervisor's first word.
type FirstWord struct {
	// State is registered, refused, died or timed_out.
	State  string
	Detail string
	// Infrastructure: refused by the host or a busy store, not by the board.
	Infrastructure bool
}

// The first words.
const (
	Registered = "registered"
	Refused    = "refused"
	Died       = "died"
	TimedOut   = "timed_out"
)

// Look answers what is left of a run.
type Look interface {
	// Worker looks for the processes of a run with a worker on record.
	Worker(r *projection.Run) Evidence
	// Claimer looks for the process that claimed a run.
	Claimer(r *projection.Run) Evidence
	// Signal signals what e found, each process only if its identity is proven
	// at that moment.
	Signal(r *projection.Run, e Evidence, s Signal) error
}

// Answer is what a look says.
type Answer string

// The five answers.
const (
	Alive    Answer = "alive"     // the supervisor is proven
	Orphaned Answer = "orphaned"  // it is proven dead, something of the run is left
	Dead     Answer = "dead"      // nothing of the run is left
	Held     Answer = "held"      // a process is there, neither proven nor refuted
	NoWorker Answer = "no_worker" // none ever registered
)

// Evidence is an answer with what it rests on.
type Evidence struct {
	Answer Answer
	Why    string
	// OtherBoot: dead because it was another boot or a PID namespace that is
	// gone.
	OtherBoot bool
	// Unprovable: it is elsewhere (machine, namespace) and its run lock cannot
	// tell either; only its lease can release it.
	Unprovable bool
	// Members are what is left of an orphaned run, in the world's own form.
	Members any
}

func (e Evidence) String() string {
	if e.Why == "" {
		return string(e.Answer)
	}
	return string(e.Answer) + ": " + e.Why
}

// Signal is what to send, and to whom.
type Signal string

// The signals of the ending path.
const (
	NoSignal       Signal = ""
	TermSupervisor Signal = "term_supervisor" // it passes TERM on and kills after the grace
	KillSupervisor Signal = "kill_supervisor" // it did not; what is left becomes orphans
	TermMembers    Signal = "term_members"
	KillMembers    Signal = "kill_members"
)
