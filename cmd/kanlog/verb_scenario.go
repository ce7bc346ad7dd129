package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kanlog/cmd/internal/scenario"
)

func scenarioCmd(a *app) *cobra.Command {
	var job scenario.Job
	limit := duration{2 * time.Minute}
	var settingsFile string
	var example bool
	cmd := &cobra.Command{
		Use:   "scenario FILE...",
		Short: "Test what your settings do, with scripted workers and a clock that can be moved",
		Long: `scenario runs each FILE, a list of commands, on a board of its own in a temporary
home: real ticks, real supervisors, real processes. Your settings are copied there,
with scripted workers in the place of all commands, so nothing is paid for and no
board of yours is touched. The KANLOG_ variables of your environment do not reach it.
Each file ends with nothing of it left behind, however it ends.

` + scenarioWords(),
		Example: `  kanlog scenario --example >retries.txtar
  kanlog scenario retries.txtar
  kanlog scenario --settings new.toml policy/*.txtar
  kanlog scenario --json --timeout 30s retries.txtar`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case example && len(args) > 0:
				return usage("scenario --example takes no file; send what it prints into one (kanlog scenario --example >FILE)")
			case !example && len(args) == 0:
				return usage("scenario takes one or more files; kanlog scenario --example prints one (kanlog help scenario)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := a.scenarioSettings(settingsFile, &job.Settings)
			if err != nil {
				return err
			}
			if example {
				return a.printf("%s", exampleScenario(set))
			}
			if job.Timeout = limit.std(); job.Timeout == 0 {
				return usage("--timeout 0 leaves no time for anything")
			}
			job.Files = args
			return a.scenario(job)
		},
	}
	f := cmd.Flags()
	f.StringVar(&settingsFile, "settings", "", "`FILE` with the settings to test (else your config.toml, with the board's over it)")
	f.Var(&limit, "timeout", "time limit of each file")
	f.BoolVar(&job.Keep, "keep", false, "keep the directory of each file and say where it is")
	f.BoolVar(&job.Verbose, "verbose", false, "show what was done in files that pass too")
	f.BoolVar(&example, "example", false, "print a file to begin with, for the first of your profiles")
	return cmd
}

// scenarioWords are the commands of a scenario file, for the help.
func scenarioWords() string {
	var b strings.Builder
	b.WriteString("The commands of a file, one a line; # begins a comment, '...' keeps blanks in a word:\n\n")
	for _, w := range scenario.Words {
		fmt.Fprintf(&b, "  %s\n      %s\n", w.Usage, w.Help)
	}
	b.WriteString(`
and those of the script language: [!] exec, [!] stdout, [!] stderr, [!] cmp, [!] grep,
[!] exists, env, cd, cp, mv, rm, mkdir, stdin, wait, skip, stop
(https://pkg.go.dev/github.com/rogpeppe/go-internal/testscript).

What a scripted worker can do; "sleep 2s then exit 1" does one after the other:

`)
	for _, d := range scenario.Deeds {
		fmt.Fprintf(&b, "  %-26s %s\n", d.Usage, d.Help)
	}
	b.WriteString("\nMore of it is in docs/scenarios.md.")
	return b.String()
}

// scenarioSettings reads the settings to test as any verb would: what is wrong with
// them is said of the file they came from. The environment is no part of them.
func (a *app) scenarioSettings(given string, files *scenario.Settings) (*settings, error) {
	s := defaults()
	if given != "" {
		if _, err := os.Stat(given); err != nil {
			return nil, unreadable("--settings", err)
		}
		files.Home = given
		return &s, s.file(given)
	}
	for dir, to := range map[string]*string{a.home: &files.Home, a.boardDir: &files.Board} {
		path := filepath.Join(dir, settingsName)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			*to = path
		}
	}
	for _, path := range []string{files.Home, files.Board} {
		if path == "" {
			continue
		}
		if err := s.file(path); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// scenario lets the runner do the job and prints what it says.
func (a *app) scenario(job scenario.Job) error {
	for i, file := range job.Files {
		f, err := os.Open(file)
		if err == nil {
			var info fs.FileInfo
			if info, err = f.Stat(); err == nil && info.IsDir() {
				err = fmt.Errorf("%s is a directory; give its files (%s)", file, filepath.Join(file, "*.txtar"))
			}
			f.Close()
		}
		if err != nil {
			return unreadable("scenario", err)
		}
		job.Files[i] = filepath.Clean(file)
	}
	runner, err := a.runner(&job)
	if err != nil {
		return err
	}
	failed, ended := 0, 0
	dec := json.NewDecoder(runner.out)
	for {
		var r scenario.Result
		if err = dec.Decode(&r); err != nil {
			break
		}
		ended++
		if !r.OK {
			failed++
		}
		if a.asJSON {
			err = a.jsonLine(&r)
		} else {
			err = a.printf("%s", resultText(&r, job.Verbose))
		}
		if err != nil {
			break
		}
	}
	werr := runner.end(errors.Is(err, io.EOF))
	switch {
	case !errors.Is(err, io.EOF):
		return err
	case werr != nil:
		return fmt.Errorf("%s: %w", scenario.Runner, werr)
	case ended < len(job.Files):
		return fmt.Errorf("interrupted: %d of %s ran", ended, plural(len(job.Files), "file", "files"))
	case failed > 0 && len(job.Files) > 1:
		a.warn("%d of %s failed", failed, plural(len(job.Files), "file", "files"))
		return &codedError{exitFailed}
	case failed > 0:
		return &codedError{exitFailed}
	}
	return nil
}

// runningRunner is the runner at work.
type runningRunner struct {
	cmd  *exec.Cmd
	out  io.Reader
	stop func()
}

func (a *app) runner(job *scenario.Job) (*runningRunner, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	job.Program = exe
	path := filepath.Join(filepath.Dir(exe), scenario.Runner)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("the program %s, which runs scenarios, is not beside this one: %w; make build makes both", scenario.Runner, err)
	}
	text, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	// The runner ends what it started: it is asked to, and waited for.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	cmd := exec.CommandContext(ctx, path, string(text))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = a.errw
	cmd.Env = scenarioEnv(os.Environ())
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &runningRunner{cmd, out, stop}, nil
}

// end waits for the runner; one that nobody listens to any more is told to end.
func (r *runningRunner) end(whole bool) error {
	if !whole {
		r.stop()
	}
	err := r.cmd.Wait()
	r.stop()
	if errors.Is(err, context.Canceled) {
		return nil // it was told to, and ended well
	}
	return err
}

// scenarioEnv is the environment without what would move a scenario.
func scenarioEnv(env []string) (kept []string) {
	for _, kv := range env {
		if !strings.HasPrefix(kv, "KANLOG_") {
			kept = append(kept, kv)
		}
	}
	return kept
}

// resultText is what a person wants to know of a file that was run.
func resultText(r *scenario.Result, verbose bool) string {
	var b bytes.Buffer
	word := "ok  "
	switch {
	case !r.OK:
		word = "FAIL"
	case r.Skipped:
		word = "skip"
	}
	fmt.Fprintf(&b, "%s %s %.1fs\n", word, r.Name, r.Seconds)
	if r.Line > 0 {
		fmt.Fprintf(&b, "     %s:%d: %s\n", r.File, r.Line, r.Text)
	}
	indented(&b, "     ", r.Message)
	if (!r.OK || verbose) && r.Log != "" {
		indented(&b, "     | ", r.Log)
	}
	if len(r.Events) > 0 {
		fmt.Fprintf(&b, "     the last events:\n")
		indented(&b, "     ", strings.Join(r.Events, "\n"))
	}
	if r.Work != "" {
		fmt.Fprintf(&b, "     kept: %s\n", r.Work)
	}
	return b.String()
}

func indented(b *bytes.Buffer, with, text string) {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return
	}
	for line := range strings.Lines(text) {
		b.WriteString(with + strings.TrimRight(line, "\n") + "\n")
	}
}
