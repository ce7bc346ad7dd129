package main_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"kanlog/cmd/internal/scenario/script"
	"kanlog/eventlog"
	"kanlog/projection"
	"kanlog/tick"
)

// The scenarios under testdata run against the real program with real worker
// processes. testdata/README.md says how to write one.

var update = flag.Bool("update", false, "write golden files in scenarios anew; read the diff before you commit it")

// binDir holds the program under test.
var binDir string

func TestMain(m *testing.M) {
	flag.Parse()
	if signal.Ignored(syscall.SIGHUP) {
		// Under nohup: what is ignored here would be ignored in what is tested; what
		// is caught is not.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "kanlog-bin-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := buildPrograms(dir); err != nil {
			fmt.Fprintf(os.Stderr, "building the program: %v\n", err)
			return 1
		}
		binDir = dir
		return m.Run()
	}())
}

// buildPrograms makes the programs as `make build` does, which says why: here too each
// start is a fifth shorter.
func buildPrograms(dir string) error {
	args := []string{"build", "-o", dir}
	if runtime.GOOS == "linux" {
		args = append(args, "-ldflags=-R 0x200000")
	}
	cmd := exec.Command("go", append(args, "kanlog/cmd/...")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	programs, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	for _, linked := range programs {
		whole, err := os.ReadFile(linked)
		if err != nil {
			return err
		}
		if err := os.Remove(linked); err != nil {
			return err
		}
		if err := os.WriteFile(linked, whole, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// patience bounds every wait of a scenario. It is long, since a slow machine
// must not fail a test; a condition that comes true ends the wait at once.
const patience = 90 * time.Second

func TestScenarios(t *testing.T) {
	t.Cleanup(func() { t.Logf("every prefix: %s", &prefixes) })
	cmds := bench().Commands()
	maps.Copy(cmds, map[string]script.Command{
		"bills": cmdBills, "apart": cmdApart, "supervisor": cmdSupervisor, "held": cmdHeld, "release": cmdRelease,
		"killing": cmdKilling, "forge": cmdForge, "changerow": cmdChangeRow, "damage": cmdDamage, "refusedby": cmdRefusedBy,
	})
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", binDir+string(filepath.ListSeparator)+env.Getenv("PATH"))
			env.Setenv("KANLOG_HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("B", env.WorkDir)
			env.Setenv("BOARD", filepath.Join(env.WorkDir, "home", "boards", "default"))
			env.Setenv("USER", "tester")
			env.Setenv("TZ", "UTC")
			work := env.WorkDir
			env.Defer(func() {
				killStrays(t, work)
				checkBoards(t, filepath.Base(work), work)
			})
			return nil
		},
		Cmds: cmds,
	})
}

// checkBoards proves for every board that a scenario leaves behind that its
// tables follow from its log, byte for byte, and that verify finds nothing.
// A scenario that damages a store on purpose says so with a file named
// damaged-on-purpose.
func checkBoards(t *testing.T, name, work string) {
	if _, err := os.Stat(filepath.Join(work, "damaged-on-purpose")); err == nil {
		return
	}
	stores, _ := filepath.Glob(filepath.Join(work, "*", "boards", "*", "board.db"))
	for _, db := range stores {
		dir := filepath.Dir(db)
		store := projection.Open(dir, eventlog.Options{LockTimeout: patience})
		rep, err := store.Verify()
		if err != nil || rep.Problem != "" {
			t.Errorf("%s: verify of %s: %v %s", name, dir, err, rep.Problem)
			continue
		}
		before := dumpTables(t, dir)
		if err := store.Rebuild(); err != nil {
			t.Errorf("%s: rebuild of %s: %v", name, dir, err)
			continue
		}
		if after := dumpTables(t, dir); before != after {
			t.Errorf("%s: the tables of %s differ after a rebuild:\n%s", name, dir, firstDifference(before, after))
		}
		checkPrefixes(t, name, store)
		checkDecisions(t, name, store)
	}
}

// checkDecisions takes every decision of the board once more, by the settings on its
// record and on the board as it was: each comes out as it did.
func checkDecisions(t *testing.T, name string, store *projection.Store) {
	past := store.Before()
	err := store.Commits(1, func(c eventlog.Commit) error {
		err := past.View(func(v projection.View) error {
			r, err := tick.Retake(v, c, tick.WhatIf{})
			if r.Differs() {
				t.Errorf("%s: event %d by %s: %s is on record, and today's decision is: %s", name, r.Seq, r.Actor, r.Was, r.Now)
			}
			return err
		})
		if err != nil {
			return err
		}
		return past.Apply(c)
	})
	if err != nil {
		t.Errorf("%s: decisions: %v", name, err)
	}
}

func dumpTables(t *testing.T, dir string) string {
	var b strings.Builder
	err := eventlog.Open(dir, eventlog.Options{LockTimeout: patience}).View(func(tx *eventlog.Tx) error {
		names := tx.Tables()
		sort.Strings(names)
		for _, name := range names {
			tx.Scan(name, nil, func(k, v []byte) bool {
				fmt.Fprintf(&b, "%s %q %q\n", name, k, v)
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Errorf("dump of %s: %v", dir, err)
	}
	return b.String()
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(x), len(y)) {
		var l, r string
		if i < len(x) {
			l = x[i]
		}
		if i < len(y) {
			r = y[i]
		}
		if l != r {
			return "stored:  " + l + "\nrebuilt: " + r
		}
	}
	return "no difference"
}

// killStrays ends every process that a scenario left: found by the home in its
// environment, or, if it wiped that, by the scenario's directory as its own or
// in its command line. A scenario that must not leave any checks that itself.
func killStrays(t *testing.T, work string) {
	if runtime.GOOS != "linux" {
		return
	}
	ours := func(proc string) bool {
		for _, file := range []string{"environ", "cmdline"} {
			if b, err := os.ReadFile(filepath.Join(proc, file)); err == nil && bytes.Contains(b, []byte(work+"/")) {
				return true
			}
		}
		cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
		return err == nil && strings.HasPrefix(cwd+"/", work+"/")
	}
	for range 50 {
		found := false
		procs, _ := filepath.Glob("/proc/[0-9]*")
		for _, proc := range procs {
			pid, _ := strconv.Atoi(filepath.Base(proc))
			if pid > 1 && pid != os.Getpid() && ours(proc) {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("strays of %s do not go away", work)
}
