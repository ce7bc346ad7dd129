package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
)

func (d *doctor) storePath() string { return filepath.Join(d.a.boardDir, eventlog.StoreName) }

// checkStore opens the store as every command does, without making older tables
// anew: reading never writes.
func (d *doctor) checkStore() ([]finding, error) {
	old := false
	err := d.file.View(func(tx *eventlog.Tx) (err error) {
		d.uuid = tx.UUID()
		d.head, err = tx.Head()
		old = d.head.Commit > 0 && tx.TablesFormat() != projection.TablesFormat
		return err
	})
	if err != nil {
		return nil, err
	}
	d.readable = !old
	if old {
		return []finding{found(sevNote, d.storePath(), "the tables are those of another kanlog",
			"the next command that opens the board makes them anew, during which others wait; until then the cards cannot be looked at here",
			d.run("rebuild"))}, nil
	}
	return nil, nil
}

// storeFinding says what an error of the store means, and sets the exit code that
// every command has for it.
func (d *doctor) storeFinding(err error) finding {
	if code := exitCode(err); fromStore(err) || errors.Is(err, eventlog.ErrNoBoard) {
		d.code = max(d.code, code)
	}
	store, message := d.storePath(), err.Error()
	var refused *eventlog.RefusedError
	var busy *eventlog.BusyError
	switch {
	case errors.Is(err, eventlog.ErrNoBoard):
		return found(sevError, d.a.boardDir, message, "commands that need the board exit with 3", d.run("init"))
	case errors.As(err, &refused):
		severity, why, fix := refusalFix(refused.Kind, store)
		if command, _ := d.a.restoreCommand(); command != "" && refused.Kind != eventlog.Newer && refused.Kind != eventlog.Network {
			fix = command
		}
		return found(severity, store, message, why, fix)
	case errors.Is(err, projection.ErrInconsistent):
		return found(sevError, store, message, "what a table says is not what the log says; the log decides", d.run("rebuild"))
	case errors.As(err, &busy):
		return d.busyFinding(busy.Path)
	case errors.Is(err, fs.ErrPermission):
		return found(sevError, store, "the board cannot be opened: "+message, "every command fails", d.opens(store))
	}
	return found(sevError, store, "the board cannot be read: "+message, "every command fails", "kanlog list"+d.flags)
}

// refusalFix says what follows from a refused store and what brings a board back.
// The file itself is evidence and is never removed.
func refusalFix(kind eventlog.RefusedKind, store string) (severity, why, fix string) {
	const refuse = "every command exits with 6 and leaves the file as it is"
	// The copy first: until it is there nothing is moved.
	at, aside := shellWord(store), shellWord(store+".copy")
	bring := fmt.Sprintf(`cp "${BACKUP:?set BACKUP to a good copy of board.db}" %s && `, aside)
	put := fmt.Sprintf("mv %s %s", aside, at)
	switch kind {
	case eventlog.Newer:
		return sevError, refuse + ": an older program would skip what it does not know", "command -v -a kanlog  # use the newer one that wrote it"
	case eventlog.Network:
		return sevError, refuse + ": neither locks nor mappings mean anything across machines",
			"export KANLOG_HOME=\"$HOME/.local/share/kanlog\"  # or any local disk; or allow_network_store = true, if one machine only uses it"
	case eventlog.Missing:
		return sevError, refuse + "; a board that was there is never made anew", bring + put
	}
	return sevError, refuse, bring + fmt.Sprintf("mv -n %s %s && %s", at, shellWord(store+"."+string(kind)), put)
}

// checkDeep is kanlog verify.
func (d *doctor) checkDeep() ([]finding, error) {
	rep, err := projection.Open(d.a.boardDir, d.options()).Verify()
	if err != nil || rep.Problem == "" {
		return nil, err
	}
	d.code = exitStore
	fix := d.run("rebuild") + " && " + d.run("verify")
	if command, _ := d.a.restoreCommand(); command != "" && rep.FirstBad != 0 {
		fix = command
	}
	return []finding{found(sevError, d.storePath(), "verify: "+rep.Problem,
		fmt.Sprintf("what stands before it can be trusted: commits 1 to %d", rep.Trusted), fix)}, nil
}

// Below these a board is about to have no room.
const (
	lowBytes   = 100 << 20
	lowPercent = 1
	largeStore = 1 << 30
)

// room is how much of something a file system has left.
type room struct{ free, total uint64 }

func (r room) low(least uint64) bool {
	return r.total > 0 && (r.free < least || r.free < r.total/100*lowPercent)
}

// checkDisk looks at the room for the store and its size.
func (d *doctor) checkDisk() ([]finding, error) {
	dir := existing(d.a.boardDir)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return []finding{found(sevWarning, dir, fmt.Sprintf("the room on the disk cannot be told: %v", err), "", "df "+shellWord(dir))}, nil
	}
	size := int64(0)
	if fi, err := os.Stat(d.storePath()); err == nil {
		size = fi.Size()
	}
	block := uint64(st.Bsize)
	return diskFindings(dir, room{st.Bavail * block, st.Blocks * block}, room{uint64(st.Ffree), uint64(st.Files)}, size, d.storePath()), nil
}

func diskFindings(dir string, bytes, inodes room, size int64, store string) []finding {
	var list []finding
	const why = "what cannot be recorded is not done: no worker is started, no end is booked until there is room"
	if bytes.low(lowBytes) {
		list = append(list, found(sevWarning, dir, fmt.Sprintf("%d MiB of %d MiB are free on the disk of the board", bytes.free>>20, bytes.total>>20),
			why, "du -xh "+shellWord(dir)+" | sort -h | tail"))
	}
	if inodes.low(1) {
		list = append(list, found(sevWarning, dir, fmt.Sprintf("%d of %d files are free on the disk of the board", inodes.free, inodes.total),
			why, "du -x --inodes "+shellWord(dir)+" | sort -n | tail"))
	}
	if size > largeStore {
		list = append(list, found(sevNote, store, fmt.Sprintf("the store has %d MiB", size>>20),
			"the log only grows; a commit costs the same, but a rebuild and a backup take longer", ""))
	}
	return list
}

// existing is the closest directory at or above path that is there.
func existing(path string) string {
	for path != filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

// busyFinding names who has held a lock for as long as doctor waited.
func (d *doctor) busyFinding(path string) finding {
	pid, command := eventlog.Holder(path)
	const why = "every command waits for it, and gives up after lock_timeout with exit 5"
	if pid == 0 {
		return found(sevWarning, path, fmt.Sprintf("%s could not be had in %s, and who holds it cannot be told", path, busyWait), why, "lsof "+shellWord(path))
	}
	return holderFinding(sevWarning, path, pid, command, why)
}

// holderFinding says who holds a lock. One that is stopped never lets go.
func holderFinding(severity, path string, pid int, command, why string) finding {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
		// Whoever inherited the descriptor has the lock as well.
		return found(severity, path, fmt.Sprintf("%s is held by something that process %d started, which has ended itself", path, pid), why, "fuser -v "+shellWord(path))
	}
	message := fmt.Sprintf("%s is held by process %d (%s)", path, pid, command)
	if proc.NewProber().Stopped(pid) {
		return found(sevError, path, message+", which is stopped", why+"; a stopped process holds it for ever", fmt.Sprintf("kill -CONT %d", pid))
	}
	return found(severity, path, message, why, fmt.Sprintf("ps -fp %d  # it is at work: wait, or end it", pid))
}

// checkDispatchLock looks who dispatches, without asking for the lock: a dispatch
// that came at that moment would do nothing.
func (d *doctor) checkDispatchLock() ([]finding, error) {
	path := d.a.files().dispatchLock()
	pid, command := eventlog.Holder(path)
	if pid == 0 {
		return nil, nil
	}
	f := holderFinding(sevNote, path, pid, command, "another dispatch beside it does nothing")
	if f.Severity == sevNote {
		f.Fix = nil // a dispatch at work is as it should be
	}
	return []finding{f}, nil
}
