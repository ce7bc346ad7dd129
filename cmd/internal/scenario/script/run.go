package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"kanlog/cmd/internal/scenario"
)

// Main is the runner: it reads a job, runs its files one after the other, and prints
// a result for each. Which files passed is in the results, not in the exit code.
func Main(args []string, out, errw io.Writer) int {
	var job scenario.Job
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &job) != nil {
		fmt.Fprintf(errw, "%s: kanlog scenario starts it; it is nothing to be called by hand\n", scenario.Runner)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if !signal.Ignored(syscall.SIGHUP) {
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() { <-hup; cancel() }()
	}
	enc := json.NewEncoder(out)
	for _, file := range job.Files {
		if ctx.Err() != nil {
			break
		}
		res, err := runFile(ctx, &job, file)
		if err == nil {
			err = enc.Encode(res)
		}
		if err != nil {
			fmt.Fprintf(errw, "%s: %v\n", scenario.Runner, err)
			return 1
		}
	}
	return 0
}

// notice is how long a command has that gives up by itself.
const notice = 500 * time.Millisecond

// runFile runs a file in a directory of its own and leaves nothing of it behind.
func runFile(ctx context.Context, job *scenario.Job, file string) (res scenario.Result, err error) {
	began := time.Now()
	root, err := os.MkdirTemp("", "kanlog-scenario-")
	if err != nil {
		return res, err
	}
	if !job.Keep {
		defer func() {
			if rerr := os.RemoveAll(root); err == nil {
				err = rerr
			}
		}()
	}
	// The program may have any name; in a scenario it is kanlog.
	bin := filepath.Join(root, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return res, err
	}
	if err := os.Symlink(job.Program, filepath.Join(bin, "kanlog")); err != nil {
		return res, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return res, err
	}
	if !command.Match(txtar.Parse(text).Comment) {
		return scenario.Result{File: file, Name: nameOf(file), Events: []string{}, Message: "it holds no command; kanlog scenario --example prints a file that does"}, nil
	}
	limited, cancel := context.WithTimeout(ctx, job.Timeout)
	defer cancel()
	p := &place{program: job.Program}
	b := &Bench{Program: job.Program, Patience: job.Timeout, Context: limited}
	// The engine waits for commands without end: what runs has to be ended under it,
	// a moment after those commands that look at the limit have said what they saw.
	done, over := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(limited, func() {
		defer close(over)
		select {
		case <-done:
		case <-time.After(notice):
			p.clear()
		}
	})

	t := &recorder{verbose: job.Verbose}
	t.Run("", func(t testscript.T) {
		testscript.RunT(t, testscript.Params{
			Files: []string{file}, WorkdirRoot: root, RequireUniqueNames: true, Cmds: b.Commands(),
			Setup: func(env *testscript.Env) error {
				env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
				home := filepath.Join(env.WorkDir, "home")
				env.Setenv("KANLOG_HOME", home)
				env.Setenv("B", env.WorkDir)
				env.Setenv("BOARD", filepath.Join(home, "boards", "default"))
				env.Setenv("USER", os.Getenv("USER"))
				b.Vars = append(b.Vars, varsOf(env.Vars, text)...)
				p.at(env.WorkDir, home)
				env.Defer(p.clear)
				return bring(job, env.WorkDir, home)
			},
		})
	})
	close(done)
	if !stop() {
		<-over
	}
	res = scenario.Result{
		File: file, Name: nameOf(file), OK: !t.failed, Skipped: t.skipped, Message: t.why,
		Seconds: time.Since(began).Round(time.Millisecond).Seconds(),
	}
	// The engine begins with the directory, which is gone when this is read, and ends
	// with a word that is ours to say.
	res.Log = strings.TrimSuffix(strings.Replace(t.log.String(), "WORK="+p.work+"\n", "", 1), "PASS\n")
	if t.failed {
		res.Events = append(res.Events, p.events...)
		res.Line, res.Message, res.Log = failure(res.Log)
		res.Text = lineOf(text, res.Line)
		switch {
		case ctx.Err() != nil:
			res.Message = "interrupted: " + res.Message
		case limited.Err() != nil:
			res.Message = fmt.Sprintf("the time limit of %s ran out here (--timeout): %s", job.Timeout, res.Message)
		}
	}
	if p.left != "" {
		res.OK = false
		res.Message = strings.TrimPrefix(res.Message+"\n"+p.left, "\n")
	}
	if job.Keep {
		res.Work = p.work
	}
	return res, nil
}

// bring gives a scenario that brings no settings those of the job. In them scripted
// workers stand in for all commands: a test that forgot one must not cost what its
// worker does.
func bring(job *scenario.Job, work, home string) error {
	if _, err := os.Stat(filepath.Join(home, "config.toml")); err == nil {
		return nil
	}
	for to, from := range map[string]string{
		filepath.Join(home, "config.toml"):                      job.Settings.Home,
		filepath.Join(home, "boards", "default", "config.toml"): job.Settings.Board,
	} {
		if from == "" {
			continue
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
	}
	_, err := standIn(job.Program, work, home, "")
	return err
}

// command is a line that is neither empty nor a comment.
var command = regexp.MustCompile(`(?m)^[ \t]*[^# \t\r\n]`)

var setsVar = regexp.MustCompile(`(?m)^(?:\[[^]]*\] *)*(?:env|capture)[ \t]+(.*)`)

// varsOf are the names of all variables that a scenario can have.
func varsOf(given []string, text []byte) (names []string) {
	for _, kv := range given {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	for _, line := range setsVar.FindAllSubmatch(txtar.Parse(text).Comment, -1) {
		for _, word := range strings.Fields(string(line[1])) {
			name, _, _ := strings.Cut(strings.Trim(word, "'"), "=")
			names = append(names, name)
		}
	}
	return append(names, "KANLOG_CLOCK_OFFSET")
}

func nameOf(file string) string {
	name := filepath.Base(file)
	return strings.TrimSuffix(strings.TrimSuffix(name, ".txtar"), ".txt")
}

func lineOf(text []byte, n int) string {
	lines := bytes.Split(text, []byte("\n"))
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimSpace(string(lines[n-1]))
}

var failed = regexp.MustCompile(`(?m)^FAIL: .*?:(\d+): `)

// failure takes a log apart: the line of the file, why it failed, what was done before.
func failure(log string) (line int, message, before string) {
	all := failed.FindAllStringSubmatchIndex(log, -1)
	if all == nil {
		return 0, strings.TrimSpace(log), ""
	}
	at := all[len(all)-1]
	line, _ = strconv.Atoi(log[at[2]:at[3]])
	return line, strings.TrimSpace(log[at[1]:]), strings.TrimSpace(log[:at[0]])
}

// recorder is what a test is to the script engine.
type recorder struct {
	log             strings.Builder
	failed, skipped bool
	why             string // it was skipped
	verbose         bool
}

var (
	errFailed  = errors.New("failed")
	errSkipped = errors.New("skipped")
)

func (r *recorder) Skip(words ...any)  { r.why = fmt.Sprint(words...); panic(errSkipped) }
func (r *recorder) Fatal(words ...any) { r.Log(words...); panic(errFailed) }
func (r *recorder) FailNow()           { panic(errFailed) }
func (r *recorder) Parallel()          {}
func (r *recorder) Verbose() bool      { return r.verbose }
func (r *recorder) Log(words ...any) {
	r.log.WriteString(strings.TrimSpace(fmt.Sprint(words...)) + "\n")
}

// Run is told of the end by a panic, as the engine wants its tests to stop at once.
func (r *recorder) Run(_ string, f func(testscript.T)) {
	defer func() {
		switch why := recover(); why {
		case nil:
		case errFailed:
			r.failed = true
		case errSkipped:
			r.skipped = true
		default:
			panic(why)
		}
	}()
	f(r)
}
