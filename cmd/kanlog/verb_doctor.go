package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

// New check: its function in a doctor_*.go, its line in checks, a row in
// docs/doctor.md, and a scenario in which the finding appears and is gone once
// its command was run. A check never appends, signals or takes a lock for longer
// than one reading, and starts nothing but for --probe.

func doctorCmd(a *app) *cobra.Command {
	d := &doctor{a: a}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong here, and the command that mends it",
		Long: `doctor looks at the settings, the store, the locks, the files, the processes and
the cards, and says of all that is wrong why it matters and which command mends it. It changes
nothing and needs no healthy board: what it cannot read is one more finding.
docs/doctor.md lists what it can find. With --probe it also starts the wrapper of each profile,
with a command behind it that writes a file, in a workspace that is removed again. Exit 0: nothing worse than a note; 1: a warning or an
error; 3: there is no such board; 6: the store is not good.`,
		Example: "  kanlog doctor\n  kanlog doctor --deep\n  kanlog doctor --probe\n  kanlog doctor --json | jq -r '.[].fix // empty'",
		Args:    exactly(0, "no arguments"),
		// A file current that is wrong is a finding, and the board of no name is
		// looked at.
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if err := a.ambient(); err != nil {
				return err
			}
			if a.slug != "" || os.Getenv("KANLOG_BOARD") != "" {
				return a.chooseBoard()
			}
			if d.current = a.chooseBoard(); d.current != nil {
				return a.use(defaultBoard)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			// What was said by flags the commands to paste must say too.
			if cmd.Flags().Changed("home") {
				d.flags += " --home " + shellWord(a.home)
			}
			if cmd.Flags().Changed("board") {
				d.flags += " --board " + shellWord(a.slug)
			}
			return d.report(d.examine())
		},
	}
	cmd.Flags().BoolVar(&d.probes, "probe", false, "also start each profile's wrapper and look whether what is written behind it is lost")
	cmd.Flags().BoolVar(&d.deep, "deep", false, "also verify the store and look at every run's files")
	return cmd
}

// The severities, the worst first.
const (
	sevError   = "error"   // something does not work
	sevWarning = "warning" // it will not, or cards wait for nothing
	sevNote    = "note"    // good to know
)

var severities = []string{sevError, sevWarning, sevNote}

// finding is one thing that is wrong.
type finding struct {
	Severity string `json:"severity"`
	Check    string `json:"check"`
	Subject  any    `json:"subject"` // the card, run, process, file or key; null for all of the board
	Message  string `json:"message"`
	Why      any    `json:"why"`
	Fix      any    `json:"fix"` // a command for a shell; null where there is nothing to do
}

func found(severity, subject, message, why, fix string) finding {
	return finding{Severity: severity, Subject: text(subject), Message: message, Why: text(why), Fix: text(fix)}
}

// doctor is one examination.
type doctor struct {
	a       *app
	deep    bool
	probes  bool
	flags   string
	current error // why it cannot be told which board is the current one

	set      settings
	settled  bool // the settings could be read
	file     *eventlog.File
	uuid     [16]byte
	head     eventlog.Head
	tail     []eventlog.Commit // the newest commits, once somebody asked
	readable bool              // the store could be opened and its tables are of this program
	code     int               // an exit code that goes before 1
	ran      int
}

// check is one question. An error of it is a finding about the store.
type check struct {
	name  string
	needs func(*doctor) bool
	look  func(*doctor) ([]finding, error)
}

func nothing(*doctor) bool   { return true }
func settled(d *doctor) bool { return d.settled }
func board(d *doctor) bool   { return d.readable }
func both(d *doctor) bool    { return d.settled && d.readable }
func deep(d *doctor) bool    { return d.deep && d.readable }
func probes(d *doctor) bool  { return d.probes && both(d) }

// checks in the order in which they are made: later ones go by what the first
// have found out.
var checks = []check{
	{"settings", nothing, (*doctor).checkSettings},
	{"limits", settled, (*doctor).checkLimits},
	{"profiles", settled, (*doctor).checkProfiles},
	{"current", nothing, (*doctor).checkCurrent},
	{"owners", nothing, (*doctor).checkOwners},
	{"modes", nothing, (*doctor).checkModes},
	{"disk", nothing, (*doctor).checkDisk},
	{"store", nothing, (*doctor).checkStore},
	{"locks", nothing, (*doctor).checkDispatchLock},
	{"leftovers", nothing, (*doctor).checkLeftovers},
	{"verify", deep, (*doctor).checkDeep},
	{"clock", board, (*doctor).checkClock},
	{"runs", board, (*doctor).checkRuns},
	{"strays", board, (*doctor).checkStrays},
	{"program", board, (*doctor).checkProgram},
	{"assignees", both, (*doctor).checkAssignees},
	{"stalled", both, (*doctor).checkStalled},
	{"daemon", nothing, (*doctor).checkDaemon},
	{"cards", board, (*doctor).checkCards},
	{"workspaces", board, (*doctor).checkWorkspaces},
	{"wrappers", probes, (*doctor).checkWrappers},
}

// maxFindings bounds how much of one check is named.
const maxFindings = 20

func (d *doctor) examine() []finding {
	all := []finding{}
	for _, c := range checks {
		if !c.needs(d) {
			continue
		}
		list, err := c.look(d)
		d.ran++
		for i := range list {
			list[i].Check = c.name
		}
		all = append(all, atMost(list, maxFindings)...)
		// Whichever check met it: it is the store's, and it is one.
		if err != nil {
			f := d.storeFinding(err)
			if f.Check = "store"; !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	slices.SortStableFunc(all, bySeverity)
	return all
}

func bySeverity(x, y finding) int {
	return slices.Index(severities, x.Severity) - slices.Index(severities, y.Severity)
}

// atMost cuts the findings of a check, the least severe first, and says how many
// more there are.
func atMost(list []finding, most int) []finding {
	slices.SortStableFunc(list, bySeverity)
	if len(list) <= most {
		return list
	}
	rest := list[most]
	more := found(rest.Severity, "", fmt.Sprintf("and %d more", len(list)-most), "", "")
	more.Check = rest.Check
	return append(slices.Clip(list[:most]), more)
}

// report prints what was found and says how bad it is by the exit code.
func (d *doctor) report(all []finding) error {
	if err := d.print(all); err != nil {
		return err
	}
	worse := slices.ContainsFunc(all, func(f finding) bool { return f.Severity != sevNote })
	switch {
	case d.code != 0:
		return &codedError{d.code}
	case worse:
		return &codedError{exitFailed}
	}
	return nil
}

func (d *doctor) print(all []finding) error {
	if d.a.asJSON {
		return d.a.json(all)
	}
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s (%s): %s\n", f.Severity, f.Check, clean(f.Message, false))
		if f.Why != nil {
			fmt.Fprintf(&b, "  why:  %s\n", clean(fmt.Sprint(f.Why), false))
		}
		if f.Fix != nil {
			fmt.Fprintf(&b, "  mend: %s\n", clean(fmt.Sprint(f.Fix), false))
		}
		b.WriteString("\n")
	}
	if !d.readable || !d.settled {
		b.WriteString("Not everything could be looked at; mend the above and run doctor again.\n")
	}
	fmt.Fprintf(&b, "%s, %s\n", plural(d.ran, "check", "checks"), plural(len(all), "finding", "findings"))
	return d.a.printf("%s", b.String())
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// view reads the tables as they stand. Unlike app.view it never makes older ones
// anew.
func (d *doctor) view(fn func(projection.View) error) error {
	return d.file.View(func(tx *eventlog.Tx) error { return fn(projection.NewView(tx)) })
}

// active returns the runs that are open or have a worker on record.
func (d *doctor) active() (runs []*projection.Run, err error) {
	err = d.view(func(v projection.View) (err error) {
		runs, err = v.Active()
		return err
	})
	return runs, err
}

// run is a kanlog command to paste.
func (d *doctor) run(verb string, args ...string) string {
	line := "kanlog " + verb
	for _, arg := range args {
		line += " " + shellWord(arg)
	}
	return line + d.flags
}

// edit opens a file at a line.
func edit(path string, line int) string {
	return fmt.Sprintf("${EDITOR:-vi} +%d %s", line, shellWord(path))
}

// asOwner is a command that only the owner of a file, or root, may give.
func asOwner(euid int, command string) string {
	if euid == 0 {
		return command
	}
	return "sudo " + command
}

func shellWord(s string) string { return projection.ShellWord(s) }

// some names the first of many.
func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// busyWait is how long doctor waits for the board's lock: long enough for a board
// at which many work, short for somebody who looks.
const busyWait = 3 * time.Second

// options are those of the settings, as far as they could be read.
func (d *doctor) options() eventlog.Options {
	return eventlog.Options{LockTimeout: min(d.set.lockTimeout, busyWait), AllowNetwork: d.set.allowNetwork}
}

// fromStore are errors that say something of the store and not of one check.
func fromStore(err error) bool {
	return errors.Is(err, eventlog.ErrRefused) || errors.Is(err, projection.ErrInconsistent)
}
