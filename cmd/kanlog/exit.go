package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"kanlog/eventlog"
	"kanlog/projection"
)

// The exit codes of the contract.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3
	exitRefused  = 4
	exitBusy     = 5
	exitStore    = 6
)

// usageError is a wrong call: unknown flag, bad value.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// notFoundError is a thing that is not there. Its words begin like those of the
// board's own: no such card, no such run, no such board, what was asked for, and
// which call shows what there is.
type notFoundError struct{ text string }

func (e *notFoundError) Error() string { return e.text }

func notFound(format string, args ...any) error { return &notFoundError{fmt.Sprintf(format, args...)} }

// refusedError is a rule of the program itself that says no.
type refusedError struct{ text string }

func (e *refusedError) Error() string        { return e.text }
func (e *refusedError) Is(target error) bool { return target == projection.ErrState }

// codedError carries an exit code for what was already reported.
type codedError struct{ code int }

func (e *codedError) Error() string { return fmt.Sprintf("exit %d", e.code) }

// exitCode maps an error to the contract's codes.
func exitCode(err error) int {
	var u *usageError
	var c *codedError
	var missing *notFoundError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &c):
		return c.code
	case errors.As(err, &u), errors.Is(err, projection.ErrInvalid):
		return exitUsage
	case errors.Is(err, projection.ErrNotFound), errors.Is(err, eventlog.ErrNoBoard), errors.As(err, &missing):
		return exitNotFound
	case errors.Is(err, projection.ErrState), errors.Is(err, projection.ErrFenced):
		return exitRefused
	case errors.Is(err, eventlog.ErrBusy):
		return exitBusy
	case errors.Is(err, eventlog.ErrRefused), errors.Is(err, projection.ErrInconsistent), errors.Is(err, projection.ErrDamaged):
		return exitStore
	}
	return exitFailed
}

// complain says what is wrong, unless that was said, and returns its exit code.
func (a *app) complain(err error) int {
	var coded *codedError
	if err != nil && !errors.As(err, &coded) {
		a.warn("%v", err)
		if h := a.hint(err); h != "" {
			a.warn("%s", h)
		}
	}
	return exitCode(err)
}

// hint adds what to do about an error, where that is not plain from its words.
func (a *app) hint(err error) string {
	var r *eventlog.RefusedError
	switch {
	case errors.Is(err, eventlog.ErrNoBoard):
		return "kanlog init makes it (with the same --home and --board); kanlog boards list shows those that are there"
	case errors.As(err, &r):
		switch r.Kind {
		case eventlog.Newer:
			return "use the newer kanlog that wrote it"
		case eventlog.Network:
			return "put the board on a local disk, or set allow_network_store = true if you know that one machine only uses it"
		}
		if r.Path != filepath.Join(a.boardDir, eventlog.StoreName) {
			return "" // a backup
		}
		if command, newest := a.restoreCommand(); newest != nil {
			return fmt.Sprintf("the file was not touched; the newest backup ends with commit %d, and this puts it in its place and keeps the file: %s", newest.head.Commit, command)
		}
		return "the file was not touched: keep it, and put a backup in its place"
	}
	return ""
}
