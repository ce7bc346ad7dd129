package proc

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ofOneRun are the variables that tell a worker which run it is. Inherited by
// a supervisor or a worker of another run they would make it act for the wrong
// one.
var ofOneRun = []string{
	"KANLOG_TASK", "KANLOG_RUN", TokenVariable, "KANLOG_WORKSPACE", "KANLOG_CONTEXT", "KANLOG_FAILPOINT",
	DeadlineVariable, SecondsLeftVariable, spareVariable,
}

// When a worker with a limited time will be ended, so that what it starts can
// keep to a limit a little shorter: the moment (RFC 3339, UTC), and whole seconds
// from its start.
const (
	DeadlineVariable    = "KANLOG_DEADLINE"
	SecondsLeftVariable = "KANLOG_SECONDS_LEFT"
)

// withDeadline hands a deadline down; a zero one says that there is none. The
// seconds are rounded down: who keeps to them is not late.
func withDeadline(env []string, until, now time.Time) []string {
	if until.IsZero() {
		return env
	}
	left := max(0, int64(until.Sub(now)/time.Second))
	return append(slices.Clone(env), DeadlineVariable+"="+stamp(until), SecondsLeftVariable+"="+strconv.FormatInt(left, 10))
}

// CleanEnv returns env without what belongs to an outer run. Whoever starts a
// supervisor starts from this.
func CleanEnv(env []string) []string {
	clean := make([]string, 0, len(env))
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains(ofOneRun, name) {
			clean = append(clean, v)
		}
	}
	return clean
}

const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// lookUp returns the file to execute for a command's name, as execvp does it,
// but with the worker's PATH and directory and not with ours.
func lookUp(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("the command has no name: %w", fs.ErrNotExist)
	}
	if strings.Contains(name, "/") {
		return name, nil // exec says itself what is wrong with it, from dir
	}
	path := defaultPath
	for _, v := range env {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			path = p
		}
	}
	refused := false
	for _, entry := range filepath.SplitList(path) {
		if !filepath.IsAbs(entry) {
			entry = filepath.Join(dir, entry)
		}
		file := filepath.Join(entry, name)
		st, err := os.Stat(file)
		if err != nil || st.IsDir() {
			continue
		}
		if mayExecute(file) {
			return file, nil
		}
		refused = true
	}
	if refused {
		return "", fmt.Errorf("%s: found in PATH, but not executable: %w", name, syscall.EACCES)
	}
	return "", fmt.Errorf("%s: not found in PATH: %w", name, syscall.ENOENT)
}

// FindCommand returns the file that a worker would execute, or why it could not,
// before anybody has tried.
func FindCommand(name, dir string, env []string) (string, error) {
	file, err := lookUp(name, dir, env)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(file)
	switch {
	case err != nil:
		return file, err
	case st.IsDir():
		return file, &fs.PathError{Op: "execute", Path: file, Err: syscall.EISDIR}
	case !mayExecute(file):
		return file, &fs.PathError{Op: "execute", Path: file, Err: syscall.EACCES}
	}
	return file, nil
}
