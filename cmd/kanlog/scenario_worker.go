package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kanlog/cmd/internal/scenario"
)

const (
	scenarioWorkerVerb = "scenario-worker"
	ignoreTerm         = "ignore-term"
	// leftBehind is what the process is called by that a worker leaves behind.
	leftBehind = "left-behind"
)

// heldTerm keeps a SIGTERM that comes before the script was read, which says whether
// it is ignored. Only after that was it ignored once, and a scenario that ended its
// worker as soon as it saw it had another end from time to time.
var heldTerm = make(chan os.Signal, 1)

func init() {
	if len(os.Args) > 1 && os.Args[1] == scenarioWorkerVerb {
		signal.Notify(heldTerm, syscall.SIGTERM)
	}
}

// heedTerm makes the process one that a SIGTERM ends, also one that was held.
func heedTerm() {
	signal.Stop(heldTerm)
	select {
	case <-heldTerm:
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		hang() // until it has come
	default:
	}
}

// scenarioWorkerCmd is hidden: it stands in for the command of a profile in a
// scenario, so that a scenario needs nothing but this program.
func scenarioWorkerCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "scenario-worker SCRIPT PROFILE",
		Short:  "Do what a scenario says that a worker does",
		Hidden: true,
		Args:   exactly(2, "the file with its script, and a profile"),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] == leftBehind {
				heedTerm()
				hang()
			}
			id := os.Getenv("KANLOG_TASK")
			if id == "" {
				return usage("scenario-worker stands in for a worker in a scenario (kanlog help scenario); it is nothing to be called by hand")
			}
			b, err := scenario.Next(args[0], id)
			if err != nil {
				return err
			}
			if b == nil {
				b = scenario.Behaviour{{"block", fmt.Sprintf("no real worker is started in a scenario; say what stands in for it: worker %s complete", args[1])}}
			}
			if b[0][0] != ignoreTerm {
				heedTerm()
			}
			for _, step := range b {
				if code, over, err := a.scriptedStep(step); err != nil || over {
					if err == nil && code != exitOK {
						err = &codedError{code}
					}
					return err
				}
			}
			return nil
		},
	}
}

// scriptedStep does one step; over tells that the worker ends with it.
func (a *app) scriptedStep(step scenario.Step) (code int, over bool, err error) {
	if err := a.printf("scripted: %s\n", step.Rest(0)); err != nil {
		return 0, true, err
	}
	switch step[0] {
	case "exit":
		code, err = strconv.Atoi(step.Word(1))
		return code, true, err
	case "hang":
		hang()
	case ignoreTerm:
		signal.Ignore(syscall.SIGTERM)
		hang()
	case "sleep":
		d, err := time.ParseDuration(step.Word(1))
		time.Sleep(d)
		return 0, err != nil, err
	case "fork":
		cmd, err := scripted(scenarioWorkerVerb, leftBehind, leftBehind)
		if err == nil {
			err = cmd.Start()
		}
		return 0, err != nil, err
	}
	args := step.Verb()
	if args == nil {
		return 0, true, fmt.Errorf("scripted worker: %q is nothing that it can do", step[0])
	}
	cmd, err := scripted(args...)
	if err != nil {
		return 0, true, err
	}
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), true, nil
	}
	return 0, err != nil, err
}

// scripted is a call of this program as a worker makes it.
func scripted(args ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd, nil
}

func hang() {
	for {
		time.Sleep(time.Hour)
	}
}
