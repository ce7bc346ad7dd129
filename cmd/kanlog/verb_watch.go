package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"kanlog/eventlog"
	"kanlog/projection"
)

func watchCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "watch",
		Short: "Show the board in this terminal, and keep it up to date",
		Long: `watch shows what is at work, the cards that are not over, each with why it does not
run, and the last events. It looks again when the log moves, and once a second for
the ages; it changes nothing. Ctrl-C ends it. For scripts: kanlog events --follow.`,
		Example: "  kanlog watch\n  kanlog watch --board infra",
		Args:    exactly(0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return a.watchBoard() },
	}
}

const (
	watchEvery  = time.Second            // for the ages
	watchPause  = 100 * time.Millisecond // between two looks at a board that never rests
	watchEvents = 6                      // of the newest
	watchTail   = 200                    // commits that are looked at for them
)

func (a *app) watchBoard() error {
	terminal, ok := a.out.(*os.File)
	if ok {
		_, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
		ok = err == nil
	}
	if !ok || a.asJSON {
		return usage("watch needs a terminal; kanlog events --follow [--json] is for scripts")
	}
	if _, err := a.newestCommit(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	hint := a.watch()
	defer hint.stop()
	// A screen of its own, which is gone when this ends: what was there before is
	// there again.
	// Written past printf, which makes such sequences harmless; what comes from cards
	// was made so before.
	if _, err := terminal.WriteString("\x1b[?1049h\x1b[?25l"); err != nil {
		return err
	}
	defer func() { _, _ = terminal.WriteString("\x1b[?25h\x1b[?1049l") }()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	for {
		a.now, a.set = a.clock(), nil
		size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return err
		}
		if _, err := terminal.WriteString(frame(a.boardLines(int(size.Col)), int(size.Row))); err != nil {
			return err
		}
		if !sleep(ctx, watchPause) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-hint.C:
		case <-resized:
		case <-time.After(watchEvery):
		}
	}
}

// frame overwrites what is on the screen, line by line, so that nothing flickers.
func frame(lines []string, rows int) string {
	lines = lines[:min(len(lines), max(1, rows))]
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[0m\x1b[K")
	}
	return b.String() + "\x1b[J"
}

// boardLines are the lines of the whole board, the most urgent first.
func (a *app) boardLines(width int) []string {
	var buf bytes.Buffer
	b := *a
	b.out, b.errw, b.fixed = &buf, io.Discard, &screen{width: width, colour: a.screen().colour}
	part := func(do func() error) {
		if err := do(); err != nil {
			fmt.Fprintf(&buf, "%s\n", clean(err.Error(), true))
		}
		buf.WriteByte('\n')
	}
	_, daemon := b.daemonNow()
	fmt.Fprintf(&buf, "board %s   %s   daemon: %s\n", b.slug, b.now.Std().Local().Format("15:04:05"), daemon)
	part(func() error {
		return b.view(func(v projection.View) error {
			p, err := v.Paused()
			if p != nil {
				fmt.Fprintln(&buf, clean(p.String(), false))
			}
			return err
		})
	})
	part(b.ps)
	part(func() error {
		l := &listing{status: []string{projection.Ready, projection.Review, projection.Blocked, projection.Triage, projection.Todo, projection.Scheduled},
			sort: "priority", why: true, limit: 50, roots: projection.Stuck{}}
		return b.list(l)
	})
	part(b.lastEvents)
	return strings.Split(strings.TrimRight(buf.String(), "\n"), "\n")
}

// lastEvents prints the newest events that somebody wants to see.
func (a *app) lastEvents() error {
	head, err := a.newestCommit()
	if err != nil {
		return err
	}
	var lines []string
	err = a.store.Commits(max(1, head.Commit-min(head.Commit, watchTail)), func(c eventlog.Commit) error {
		for i, e := range c.Events {
			if !slices.Contains(quietKinds, e.Kind()) {
				lines = append(lines, a.eventLine(c, i))
			}
		}
		return nil
	})
	for _, line := range lines[max(0, len(lines)-watchEvents):] {
		if width := a.screen().width; width > 0 {
			line = cutText(line, width)
		}
		if err := a.printf("%s\n", line); err != nil {
			return err
		}
	}
	return err
}
