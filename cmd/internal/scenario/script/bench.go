// Package script runs scenario files: the commands beside those of testscript, and
// the runner behind kanlog scenario. The scenarios of kanlog itself take the commands
// from here too. It may be imported by tests and by the runner only, never by kanlog:
// what it is made of makes the start of a program slow.
package script

import (
	"context"
	"os/exec"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Bench is where the commands of a scenario do their work.
type Bench struct {
	Program string // the kanlog under test
	// Patience bounds each wait; Context, if there is one, all of them together.
	Patience time.Duration
	Context  context.Context
	// Vars are the variables that commands get which are not run by exec. The script
	// engine does not tell them.
	Vars []string
}

// Command is a word of scenario files as the script engine calls it.
type Command = func(ts *testscript.TestScript, neg bool, args []string)

// Commands are all of scenario.Words.
func (b *Bench) Commands() map[string]Command {
	return map[string]Command{
		"kanlog": b.kanlog, "worker": b.worker, "clock": b.clock, "settle": b.settle,
		"status": b.status, "outcome": b.outcome,
		"jq": b.jq, "capture": b.capture, "await": b.await, "drain": b.drain,
		"code": b.code, "waitgone": b.waitGone, "parallel": b.parallel,
	}
}

// CommandOf is a process in the scenario's directory and environment.
func (b *Bench) CommandOf(ts *testscript.TestScript, args []string) *exec.Cmd {
	name := args[0]
	if name == "kanlog" {
		name = b.Program
	}
	cmd := exec.Command(name, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{}
	for _, k := range b.Vars {
		if v := ts.Getenv(k); v != "" {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	return cmd
}

// wait begins a wait: what it returns says whether to go on.
func (b *Bench) wait() (waiting func() bool) {
	end := time.Now().Add(b.Patience)
	return func() bool {
		return time.Now().Before(end) && (b.Context == nil || b.Context.Err() == nil)
	}
}
