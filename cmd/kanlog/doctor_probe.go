package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// probeLimit bounds one start of a wrapper.
const probeLimit = 10 * time.Second

// probeID stands for the card: a wrapper may name a container by it.
const probeID = "t_probe"

// checkWrappers runs a command behind each profile's wrapper that writes a file into its
// workspace, and looks for it from outside. It is the only check that starts anything of
// the user's, so it has a flag of its own.
func (d *doctor) checkWrappers() ([]finding, error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var list []finding
	for _, name := range slices.Sorted(maps.Keys(d.set.policy.Profiles)) {
		p := d.set.policy.Profiles[name]
		if len(p.Wrap) == 0 {
			continue
		}
		table := "profiles." + name
		message, why := d.probe(ctx, p)
		if ctx.Err() != nil {
			d.code = interrupted // what was begun has been taken away
			return list, nil
		}
		if message != "" {
			list = append(list, found(sevError, table, table+".wrap: "+message, why, d.changeSetting(table, "wrap")))
		}
	}
	return list, nil
}

// The words of what is wrong with a wrapper, and why that matters.
const (
	probeLost  = "what a worker writes there is gone when it ends, and its card is done all the same. " + probeMount
	probeWrite = "a worker of this profile is not started, or cannot leave anything in its workspace. " + probeMount
	probeMount = "Have the wrapper mount the workspace at its own path: " +
		"its words get {workspace} as a whole argument, and the environment has KANLOG_WORKSPACE"
	probeElsewhere = "a worker that works where it is started works somewhere else, and what it writes there may be gone when it ends. Have the wrapper start the command in {workspace}"
	probeFails     = "no worker of this profile can be started as long as that is so, or what becomes of it is not seen"
)

// probeWrites is what is run behind the wrapper. It writes by the workspace's path, and
// where it is started says whether that is the same place: a mount over a directory
// does not move who stands in it. probeCleans takes away what it wrote elsewhere.
const (
	probeWrites = `echo "$1" >"$KANLOG_WORKSPACE/$1" && echo "$1" >"./$1.here"`
	probeCleans = `rm -f "$KANLOG_WORKSPACE/$1" "./$1.here"`
)

// probe says what is wrong with a profile's wrapper, "" for nothing.
func (d *doctor) probe(ctx context.Context, p tick.Profile) (message, why string) {
	w := &world{a: d.a, set: &d.set}
	ws, clear, err := d.probeWorkspace()
	if err != nil {
		return "it could not be tried: " + err.Error(), ""
	}
	defer clear()
	l := tick.Launch{Task: &projection.Task{ID: probeID, Title: "probe"}, Profile: p}
	made := prepared{workspace: ws, contextFile: ws + contextEnding}
	if err := os.WriteFile(made.contextFile, nil, 0o600); err != nil {
		return "it could not be tried: " + err.Error(), ""
	}
	random := randomID()
	file := fmt.Sprintf("kanlog-probe-%x", random[:6])
	run := func(script string) (string, error) {
		l.Profile.Command = []string{"sh", "-c", script, "probe", file}
		return runProbe(ctx, w.spec(l, "", made).Argv, w.environment(l, "", made), ws)
	}
	if commandFault(p, w.environment(l, "", made)) != nil {
		return "", "" // see checkProfiles
	}
	out, err := run(probeWrites)
	written := func(name string) bool {
		text, err := os.ReadFile(filepath.Join(ws, name))
		return err == nil && strings.TrimSpace(string(text)) == file
	}
	byPath, here := written(file), written(file+".here")
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("a command behind it that ends at once has not ended within %s%s", probeLimit, colonLast(out)), probeFails
	}
	if !byPath || !here {
		_, _ = run(probeCleans)
	}
	switch {
	case err != nil && byPath && here:
		return fmt.Sprintf("it failed (%v%s), although the command behind it ended well", err, colonLast(out)), probeFails
	case err != nil:
		return fmt.Sprintf("a command behind it that writes a file into its workspace failed (%v%s)", err, colonLast(out)), probeWrite
	case !byPath:
		return "a file that was written into the workspace behind it is not there outside", probeLost
	case !here:
		return "a command behind it is not started in the workspace", probeElsewhere
	}
	return "", ""
}

// probeWorkspace makes a directory where those of cards are, since that may be all that
// a container has mounted. clear takes away all that was made.
func (d *doctor) probeWorkspace() (dir string, clear func(), err error) {
	parent := filepath.Dir(d.a.files().scratch(probeID))
	made := os.Mkdir(parent, 0o700) == nil
	if dir, err = os.MkdirTemp(parent, probeID+"."); err != nil {
		return "", nil, err
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		_ = os.Remove(dir + contextEnding)
		if made {
			_ = os.Remove(parent) // unless somebody uses it by now
		}
	}, nil
}

// runProbe runs a command until it ends or its time is over, and everything of its
// process group is gone. It returns the end of what was printed.
func runProbe(ctx context.Context, argv, env []string, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	file, err := proc.FindCommand(argv[0], dir, env)
	if err != nil {
		return "", err
	}
	out := new(lastBytes)
	cmd := exec.CommandContext(ctx, file)
	cmd.Args = argv
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = group, time.Second
	err = cmd.Run()
	if cmd.Process != nil {
		_ = group()
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.String(), err
}

// lastBytes keeps the end of what is written.
type lastBytes struct{ bytes.Buffer }

func (b *lastBytes) Write(p []byte) (int, error) {
	const keep = 4 << 10
	b.Buffer.Write(p)
	if over := b.Len() - keep; over > 0 {
		b.Next(over)
	}
	return len(p), nil
}

// colonLast is the last line of some output, behind a colon.
func colonLast(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if last == "" {
		return ""
	}
	return ": " + cutLine(last)
}
