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
	"sync"
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
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
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

// runFile runs a file in a directory of its own and leaves nothing of it behind.
func runFile(ctx context.Context, job *scenario.Job, file string) (scenario.Result, error) {
	began := time.Now()
	r := &run{job: job, file: file}
	var err error
	if r.text, err = os.ReadFile(file); err != nil {
		return scenario.Result{}, err
	}
	if !command().Match(txtar.Parse(r.text).Comment) {
		return r.failed("it holds no command; kanlog scenario --example prints a file that does"), nil
	}
	if r.root, err = os.MkdirTemp("", "kanlog-scenario-"); err != nil {
		return scenario.Result{}, err
	}
	limited, cancel := context.WithTimeout(ctx, job.Timeout)
	defer cancel()
	t := r.run(limited)
	res := r.result(t)
	// Also of one that passed: a command that was to fail may have been ended.
	switch {
	case ctx.Err() != nil:
		res.OK, res.Message = false, "interrupted: "+res.Message
	case limited.Err() != nil:
		res.OK, res.Message = false, fmt.Sprintf("the time limit of %s ran out here (--timeout): %s", job.Timeout, res.Message)
	}
	if job.Keep {
		res.Work = r.place.work
	} else if err := os.RemoveAll(r.root); err != nil {
		res.OK = false
		res.Message = strings.TrimPrefix(res.Message+"\n"+err.Error(), "\n")
	}
	res.Seconds = time.Since(began).Round(time.Millisecond).Seconds()
	return res, nil
}

// run is a file that is run.
type run struct {
	job   *scenario.Job
	file  string
	text  []byte
	root  string // directory of all that is the file's
	place place
}

// notice is how long a command has that gives up by itself.
const notice = 500 * time.Millisecond

// run lets the script engine do it. The engine waits for commands without end: what
// runs has to be ended under it when ctx is over, a moment after those commands that
// look at it have said what they saw.
func (r *run) run(ctx context.Context) *recorder {
	done, cleared := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cleared)
		for {
			select {
			case <-done:
				return
			case <-time.After(notice):
				r.place.clear() // again and again: the next line may start something
			}
		}
	})
	b := &Bench{Program: r.job.Program, Patience: r.job.Timeout, Context: ctx}
	t := &recorder{verbose: r.job.Verbose}
	t.Run("", func(t testscript.T) {
		testscript.RunT(t, testscript.Params{
			Files: []string{r.file}, WorkdirRoot: r.root, RequireUniqueNames: true, Cmds: b.Commands(),
			Setup: func(env *testscript.Env) error { return r.settle(env, b) },
		})
	})
	close(done)
	if !stop() {
		<-cleared
	}
	return t
}

// settle makes the place that a scenario finds.
func (r *run) settle(env *testscript.Env, b *Bench) error {
	// The program may have any name; in a scenario it is kanlog.
	bin := filepath.Join(r.root, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	if err := os.Symlink(r.job.Program, filepath.Join(bin, "kanlog")); err != nil {
		return err
	}
	home := filepath.Join(env.WorkDir, "home")
	for _, v := range [][2]string{
		{"PATH", bin + string(filepath.ListSeparator) + env.Getenv("PATH")},
		{"KANLOG_HOME", home},
		{"B", env.WorkDir},
		{"BOARD", filepath.Join(home, "boards", "default")},
		{"USER", os.Getenv("USER")},
	} {
		env.Setenv(v[0], v[1])
	}
	b.Vars = varsOf(env.Vars, r.text)
	r.place.at(r.job.Program, env.WorkDir, home)
	env.Defer(r.place.clear)
	return bring(r.job, env.WorkDir, home)
}

func (r *run) failed(why string) scenario.Result {
	return scenario.Result{File: r.file, Name: nameOf(r.file), Message: why, Events: []string{}}
}

// result is what there is to say of it.
func (r *run) result(t *recorder) scenario.Result {
	// The engine begins with the directory, which is gone when this is read, and ends
	// with a word that is ours to say.
	log := strings.TrimSuffix(strings.Replace(t.log.String(), "WORK="+r.place.work+"\n", "", 1), "PASS\n")
	res := r.failed(t.why)
	res.OK, res.Skipped, res.Log = !t.failed, t.skipped, log
	if t.failed {
		res.Line, res.Message, res.Log = failure(r.file, log)
		res.Text = lineOf(r.text, res.Line)
		res.Events = append(res.Events, r.place.events...)
	}
	if r.place.left != "" {
		res.OK = false
		res.Message = strings.TrimPrefix(res.Message+"\n"+r.place.left, "\n")
	}
	return res
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
var command = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^[ \t]*[^# \t\r\n]`) })

var setsVar = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(?:\[[^]]*\] *)*(?:env|capture)[ \t]+(.*)`) })

// varsOf are the names of all variables that a scenario can have.
func varsOf(given []string, text []byte) (names []string) {
	for _, kv := range given {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	for _, line := range setsVar().FindAllSubmatch(txtar.Parse(text).Comment, -1) {
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

// failure takes a log apart: the line of the file, why it failed, what was done before.
func failure(file, log string) (line int, message, before string) {
	said := regexp.MustCompile(`(?m)^FAIL: ` + regexp.QuoteMeta(file) + `:(\d+): `)
	all := said.FindAllStringSubmatchIndex(log, -1)
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
