package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// screen is what is known of where results go. The zero value is a file or a
// pipe: nothing is cut, nothing is coloured.
type screen struct {
	width  int // columns; 0: unknown or no terminal
	colour bool
}

// onTerminal tells whether somebody may be watching what is written.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// screen asks each time, since a terminal may have become wider.
func (a *app) screen() screen {
	if a.fixed != nil {
		return *a.fixed
	}
	f, ok := a.out.(*os.File)
	if !ok {
		return screen{}
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return screen{} // no terminal
	}
	return screen{
		width:  int(size.Col),
		colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}
}
