package proc

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// runCommand runs the worker's command to the end of its tree and says how it
// ended. Everything that reaps or signals happens on this goroutine, in turn:
// a process that was not reaped keeps its number, so a signal cannot reach a
// stranger.
func (s *supervisor) runCommand() Record {
	if s.toldToEnd() {
		rec := s.newRecord(CauseTerminated)
		rec.Ended, rec.Error = stamp(s.Now()), "told to end before the command was started"
		return rec
	}
	started := s.Now()
	// A line that cannot be written (a full disk) is no reason not to run.
	_, _ = s.lock.output.WriteString(header(s.Task, s.Run, started, os.Getpid(), s.Argv))
	shown := int64(0)
	if st, err := s.lock.private.Stat(); err == nil {
		shown = st.Size() // the command's part begins behind our line
	}
	s.oom = readOOM(s.root)
	pid, err := s.start()
	if err != nil {
		rec := s.newRecord(CauseStartFailed)
		rec.Ended, rec.Error = stamp(s.Now()), plainText(err.Error(), maxErrorText)
		rec.Infrastructure = LacksRoom(err)
		s.say(trailer(rec))
		return rec
	}
	// The worker and what it starts hold the lock now; ours is the private one.
	s.lock.output.Close()
	s.tree = newTree(pid, os.Getpid())
	if s.Echo != nil {
		s.echo = startEcho(s.lock.private, shown, s.Echo)
	}
	rec := s.attend()
	if s.echo != nil {
		s.echo.finish()
	}
	rec.Started = stamp(started)
	s.say(trailer(rec))
	return rec
}

func (s *supervisor) toldToEnd() bool {
	select {
	case <-s.term:
		return true
	default:
		return false
	}
}

// say appends a line to the run's output, at the beginning of a line.
func (s *supervisor) say(line string) {
	f := s.lock.private
	st, err := f.Stat()
	if err != nil {
		return
	}
	last := []byte{'\n'}
	if st.Size() > 0 {
		if _, err := f.ReadAt(last, st.Size()-1); err != nil {
			return
		}
	}
	if last[0] != '\n' {
		line = "\n" + line
	}
	_, _ = f.Write([]byte(line))
}

// start forks the command. The calling thread is the main one, see Supervise.
func (s *supervisor) start() (pid int, err error) {
	if len(s.Argv) == 0 {
		return 0, fmt.Errorf("there is no command: %w", syscall.EINVAL)
	}
	if st, err := os.Stat(s.Workspace); err != nil {
		return 0, fmt.Errorf("workspace: %w", err)
	} else if !st.IsDir() {
		return 0, fmt.Errorf("workspace %s: %w", s.Workspace, syscall.ENOTDIR)
	}
	file, err := lookUp(s.Argv[0], s.Workspace, s.Env)
	if err != nil {
		return 0, err
	}
	stdin, err := os.Open(cmp.Or(s.StdinPath, os.DevNull))
	if err != nil {
		return 0, fmt.Errorf("stdin: %w", err)
	}
	defer stdin.Close()
	if err := unblockSignals(); err != nil {
		return 0, fmt.Errorf("signal mask: %w", err)
	}
	out := s.lock.output.Fd()
	attr := &syscall.ProcAttr{
		Dir:   s.Workspace,
		Env:   withDeadline(s.Env, s.until, s.Now()),
		Files: []uintptr{stdin.Fd(), out, out},
		Sys:   workerAttr(s.Interruptible),
	}
	pause := busyPause
	for try := 1; ; try++ {
		pid, err = syscall.ForkExec(file, s.Argv, attr)
		if err != syscall.ETXTBSY || try == busyTries {
			break
		}
		// Somebody forked while this file was being written, and has not
		// executed yet. There is nothing to wait on.
		s.wait(&pause)
	}
	if err != nil {
		if !filepath.IsAbs(file) {
			file = filepath.Join(s.Workspace, file)
		}
		return 0, fmt.Errorf("%s: %w", s.Argv[0], explained(err, file))
	}
	return pid, nil
}

// explained says what exec means where its word misleads: a file that is there
// is "no such file" if what should run it is not, and a directory is "permission
// denied".
func explained(err error, file string) error {
	st, serr := os.Stat(file)
	switch {
	case serr != nil:
	case err == syscall.EACCES && st.IsDir():
		return syscall.EISDIR
	case err == syscall.ENOENT:
		return fmt.Errorf("the file is there, but its interpreter%s is not: %w", interpreter(file), err)
	}
	return err
}

// interpreter is what the first line of a script names, quoted, "" if none.
func interpreter(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, maxInterpreter)
	n, _ := io.ReadFull(f, buf)
	line, script := strings.CutPrefix(string(buf[:n]), "#!")
	if !script {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	name, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
	return " " + strconv.Quote(name)
}

// attend waits for the end of the whole tree, and brings it about once the
// command has ended or we are told to end: SIGTERM, the grace, SIGKILL until
// nothing is left to wait for.
func (s *supervisor) attend() Record {
	var (
		rec        Record
		ended      bool             // the command
		listening  time.Time        // since then nothing kept us from hearing a SIGTERM that came with that end
		told       bool             // SIGTERM came, not looked at yet
		terminated bool             // it came before the command had ended, or was what ended it
		ending     bool             // the tree was sent SIGTERM
		grace      <-chan time.Time // since then
		again      <-chan time.Time // next SIGKILL
		pause      = killPause
		output     = outputCap{f: s.lock.private, limit: s.OutputLimit, at: time.Now()}
		look       <-chan time.Time // at how much was written
		// Not sooner: it would be in the way of the many that end at once.
		settled = time.After(settledAfter)
	)
	if output.limit > 0 {
		look = time.After(output.look(time.Now()))
	}
	for {
		// Reaped first: a command that ended before the signal came ended by
		// itself. But a service stop reaches the whole group at once, and the
		// command may end of it before our own SIGTERM is here.
		status, done, left := s.reap()
		if done {
			ended, listening = true, time.Now()
			rec = s.recordOf(status)
			if ending && grace != nil {
				// What was forked just when the others were told has not been.
				s.tree.signal(syscall.SIGTERM, true)
			}
		}
		told = told || s.toldToEnd() // select takes any of what is ready
		terminated = terminated || told && (!ended || mayBeStop(rec) && time.Since(listening) < stopPause)
		told = false
		if ended && !left {
			if !terminated && mayBeStop(rec) {
				select {
				case <-s.term:
					terminated = true
				case <-time.After(stopPause - time.Since(listening)):
				}
			}
			break
		}
		if (ended || terminated) && !ending {
			ending, grace = true, time.After(s.KillGrace)
			s.tree.signal(syscall.SIGTERM, ended)
			listening = time.Now() // that looked at every process there is
		}
		select {
		case <-s.children:
		case <-s.term:
			told = true
		case <-grace:
			grace, again = nil, time.After(0)
		case <-look:
			look = time.After(output.look(time.Now()))
		case <-settled:
			s.Settled()
		case <-again:
			s.tree.signal(syscall.SIGKILL, ended)
			again = time.After(pause)
			pause = min(2*pause, killPauseMax)
		}
	}
	if output.limit > 0 {
		output.look(time.Now()) // nothing is added but our own last line
	}
	if terminated {
		rec.Cause = CauseTerminated
	}
	return rec
}

// mayBeStop tells whether a command ended as one does that was told to stop.
func mayBeStop(rec Record) bool {
	switch rec.Signal {
	case "SIGTERM", "SIGINT", "SIGHUP", "SIGKILL":
		return true
	}
	if rec.ExitCode == nil {
		return false
	}
	switch *rec.ExitCode {
	case 128 + int(syscall.SIGTERM), 128 + int(syscall.SIGINT), 128 + int(syscall.SIGHUP), 128 + int(syscall.SIGKILL):
		return true // a shell says so of its child
	}
	return false
}

// LacksRoom tells whether something failed because the host had no room, memory
// or process left for it.
func LacksRoom(err error) bool {
	for _, e := range []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// reap collects what has ended. done says that the command is among it, left
// that there is something of the tree still to wait for.
func (s *supervisor) reap() (status syscall.WaitStatus, done, left bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD
			return status, done, s.tree.lost()
		case pid == 0:
			return status, done, true
		case pid == s.tree.command:
			status, done = ws, true
		}
	}
}

// recordOf says how the command ended; its time is when that was seen.
func (s *supervisor) recordOf(ws syscall.WaitStatus) Record {
	rec := s.newRecord(CauseExited)
	rec.Ended = stamp(s.Now())
	if !ws.Exited() || ws.ExitStatus() != 0 {
		rec.OOMKill = s.oom.grewTo(readOOM(s.root))
	}
	if ws.Signaled() {
		rec.Cause, rec.Signal, rec.CoreDumped = CauseSignaled, signalName(ws.Signal()), ws.CoreDump()
		return rec
	}
	code := ws.ExitStatus()
	rec.ExitCode = &code
	return rec
}
