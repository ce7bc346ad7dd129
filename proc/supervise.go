package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// ErrFenced is what a Board returns from Register when the run is not ours any
// more (closed, or ended by request before it began).
var ErrFenced = errors.New("fenced: the run is not open to this supervisor")

// ErrGiveUp is what a Board returns from Book when no try can succeed: the
// store refused, or is of a newer format. The exit record speaks then.
var ErrGiveUp = errors.New("the end cannot be booked; the exit record speaks")

// Board is where a supervisor registers and books. Both are called on the
// supervisor's one goroutine, which does nothing else meanwhile: they must
// bound their own waiting, and hold nothing open when they return.
type Board interface {
	// Register appends spawned under the run's fence. nil means that it is
	// durable (also when the same identity had registered before). Anything
	// else, ErrFenced or a failure, and the supervisor runs nothing. until is
	// when the run's time will be over, zero if it is not limited.
	Register(id Identity) (until time.Time, err error)
	// Book books the end. nil is booked, ErrGiveUp is final; after any other
	// error it is called again.
	Book(rec Record) error
}

// Supervision is one worker's run, as its supervisor needs it.
type Supervision struct {
	Task  string
	Run   uint64
	Token string
	// Argv is the command. A name without a slash is looked up in the PATH of
	// Env, a relative one from Workspace.
	Argv []string
	// Env is the worker's whole environment, with the run's token under
	// [TokenVariable].
	Env        []string
	Workspace  string
	OutputPath string
	// StdinPath is the file that the command reads on its stdin, "" for nothing.
	StdinPath  string
	RecordPath string
	// OutputLimit is how many bytes of the output are kept, see outputCap; 0 is all.
	OutputLimit int64
	// KillGrace is the time between SIGTERM and SIGKILL.
	KillGrace time.Duration
	// Interruptible is for a supervisor in somebody's terminal: INT and HUP mean
	// what TERM does (HUP not under nohup), and the command gets a
	// session of its own, without that terminal. Otherwise they do nothing, and
	// the command is in the supervisor's session.
	Interruptible bool
	// Echo gets what the command writes, beside the run's output file; nil is
	// nobody. It may be slow, block or fail: the command does not notice.
	Echo  io.Writer
	Board Board
	// Report is the report pipe, or nil if nobody waits for one.
	Report *os.File
	// Now is the clock for what is recorded; nil is time.Now.
	Now func() time.Time
	// Hook is called at named points, for tests that end the process there:
	// supervise.start, supervise.registered, supervise.ended,
	// supervise.recorded. nil is none.
	Hook func(point string)
	// Prepared is what [AwaitRun] returned, of a spare; nil otherwise.
	Prepared *Prepared
	// Settled is called once, when the command has been there for a second and may
	// stay. nil is none.
	Settled func()
	// root is where the kernel's files about memory are looked for; "" is "/".
	root string
}

// Supervise is the parent of one worker: it registers, runs the command, ends
// what is left of its tree, writes the record and books the end. It returns 0
// when the end was booked, 1 when the run was refused or the store would not
// have the end.
//
// It takes the process over: signals, child-subreaper, every child. Call it
// once, on the main goroutine locked to the main thread since init, because
// the worker is killed when the thread that forked it ends. INT, HUP, PIPE and
// the terminal's stop signals do nothing to it (but see Interruptible); TERM
// ends the worker.
func Supervise(s Supervision) (exitCode int) {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Hook == nil {
		s.Hook = func(string) {}
	}
	if s.Settled == nil {
		s.Settled = func() {}
	}
	p := s.Prepared
	if p == nil {
		p = prepare(s.Interruptible)
	}
	if s.Report != nil {
		syscall.CloseOnExec(int(s.Report.Fd()))
	}
	return (&supervisor{Supervision: s, Prepared: *p}).run()
}

// Prepared is what a supervisor has set up before it knows its run: signals, name and
// identity.
type Prepared struct {
	self     Identity
	children chan os.Signal // SIGCHLD
	term     chan os.Signal
}

func prepare(interruptible bool) *Prepared {
	runtime.LockOSThread()
	nameProcess()
	p := &Prepared{self: Self()}
	p.takeSignals(interruptible)
	closeOnExecFrom(ReportFD)
	return p
}

type supervisor struct {
	Supervision
	Prepared
	lock  *runLock
	tree  tree
	until time.Time // zero: its time is not limited
	oom   oomCount  // before the command was started
	echo  *echo     // nil: nobody looks on
}

// takeSignals catches and never ignores: what is caught is back at its default
// in the worker, what is ignored would be ignored there too. Nobody reads the
// channel of the unwanted; a full one drops.
func (p *Prepared) takeSignals(interruptible bool) {
	ending := EndSignals()
	unwanted := make(chan os.Signal, 1)
	signal.Notify(unwanted, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGQUIT,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	p.children = make(chan os.Signal, 1)
	signal.Notify(p.children, syscall.SIGCHLD)
	p.term = make(chan os.Signal, 1)
	if !interruptible {
		ending = ending[:1]
	}
	signal.Notify(p.term, ending...)
}

func (s *supervisor) run() int {
	if !onMainThread() {
		return s.refuse(errors.New("the supervisor does not run on the main thread"))
	}
	if err := adoptOrphans(); err != nil {
		return s.refuse(fmt.Errorf("child subreaper: %w", err))
	}
	// The lock comes before the registration: from then on a free lock is
	// proof that nothing of the run is left.
	lock, err := takeRunLock(s.OutputPath)
	if err != nil {
		return s.refuse(err)
	}
	s.lock = lock
	s.Hook("supervise.start")
	id := s.self
	id.OutputInode, id.OutputPath, id.Token = lock.inode, s.OutputPath, s.Token
	if s.until, err = s.Board.Register(id); err != nil {
		return s.refuse(err)
	}
	s.report(Registered, "")
	s.Hook("supervise.registered")

	rec := s.runCommand()
	s.Hook("supervise.ended")
	code := s.book(rec)
	if s.echo != nil {
		// Booked first: nobody has to wait for a terminal that stands still.
		select {
		case <-s.echo.done:
		case <-s.term:
		}
	}
	return code
}

// refuse says that nothing is run, to whoever waits and to whoever looks later.
func (s *supervisor) refuse(why error) int {
	text := plainText(why.Error(), maxErrorText)
	rec := s.newRecord(CauseNeverStarted)
	rec.Ended, rec.Error = stamp(s.Now()), text
	// Only the board's own no is about the run. A lock that cannot be taken, a
	// full disk or a busy store are the host's.
	rec.Infrastructure = !errors.Is(why, ErrFenced)
	// The report says that the record is there, if it can be.
	if err := WriteRecord(s.RecordPath, rec); err != nil {
		text += "; " + plainText(err.Error(), maxErrorText)
	}
	word := Refused
	if rec.Infrastructure {
		word = hostRefused
	}
	s.report(word, text)
	return 1
}

func (s *supervisor) report(state ReportState, detail string) {
	if s.Report == nil {
		return
	}
	line := string(state)
	if detail != "" {
		line += " " + detail
	}
	// Who waited may be gone; the board knows all the same.
	_, _ = s.Report.WriteString(line + "\n")
	s.Report.Close()
	s.Report = nil
}

func (s *supervisor) newRecord(cause string) Record {
	return Record{Task: s.Task, Run: s.Run, Token: s.Token, Cause: cause}
}

// book writes the record, then books until that is done or cannot be. A record
// that cannot be written (a full disk) does not keep the end from being booked;
// it is tried again each time.
func (s *supervisor) book(rec Record) int {
	recorded := WriteRecord(s.RecordPath, rec) == nil
	s.Hook("supervise.recorded")
	pause := bookPause
	for {
		err := s.Board.Book(rec)
		recorded = recorded || WriteRecord(s.RecordPath, rec) == nil
		if err == nil {
			return 0
		}
		if errors.Is(err, ErrGiveUp) {
			break
		}
		s.wait(&pause)
	}
	for try := 1; !recorded && try < recordTries; try++ {
		s.wait(&pause)
		recorded = WriteRecord(s.RecordPath, rec) == nil
	}
	return 1
}

// wait pauses and doubles the pause.
func (s *supervisor) wait(pause *time.Duration) {
	time.Sleep(*pause)
	*pause = min(2**pause, bookPauseMax)
}
