package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	bolt "go.etcd.io/bbolt"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
)

// The commands of the scenarios fault_*: pulling the plug, forging what another
// boot would have left, damaging a store.

// heldCommand is a command that stopped itself at a failpoint.
type heldCommand struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
}

var heldCommands sync.Map // scenario's directory and name -> *heldCommand

func heldKey(ts *testscript.TestScript, name string) string { return ts.Getenv("WORK") + "|" + name }

// held NAME POINT COMMAND...: starts a command and returns when it has stopped
// itself (SIGSTOP) at a failpoint; $NAME is its PID. Everything can be done in
// the gap, without guessing how long it lasts.
func cmdHeld(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: held NAME POINT COMMAND...")
	}
	h := &heldCommand{cmd: command(ts, args[2:])}
	h.cmd.Env = append(h.cmd.Env, "KANLOG_FAILPOINT="+args[1]+"=stop")
	h.cmd.Stdout, h.cmd.Stderr = &h.out, &h.err
	ts.Check(h.cmd.Start())
	pid := h.cmd.Process.Pid
	ts.Defer(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(pid, &ws, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			ts.Fatalf("held: waiting for %v: %v", args[2:], err)
		case got == pid && ws.Stopped():
			heldCommands.Store(heldKey(ts, args[0]), h)
			ts.Setenv(args[0], strconv.Itoa(pid))
			return
		case got == pid:
			ts.Fatalf("held: %v ended (%d) without passing %s:\n%s%s", args[2:], ws.ExitStatus(), args[1], h.out.String(), h.err.String())
		}
		if time.Now().After(deadline) {
			ts.Fatalf("held: %v did not pass %s within %s", args[2:], args[1], patience)
		}
	}
}

// release NAME CODE: lets a held command go on; it must exit with CODE. Its
// output is in code.out and code.err, as with code.
func cmdRelease(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: release NAME CODE")
	}
	v, ok := heldCommands.LoadAndDelete(heldKey(ts, args[0]))
	if !ok {
		ts.Fatalf("release: nothing is held as %s", args[0])
	}
	h := v.(*heldCommand)
	ts.Check(h.cmd.Process.Signal(syscall.SIGCONT))
	over := time.AfterFunc(patience, func() { _ = h.cmd.Process.Kill() })
	_ = h.cmd.Wait()
	over.Stop()
	writeCode(ts, h.out.Bytes(), h.err.Bytes())
	if got := strconv.Itoa(h.cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("release %s: exit %s, want %s\n%s%s", args[0], got, args[1], h.out.String(), h.err.String())
	}
}

func writeCode(ts *testscript.TestScript, out, errb []byte) {
	ts.Check(os.WriteFile(ts.MkAbs("code.out"), out, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("code.err"), errb, 0o600))
}

// killing N COMMAND...: runs a command N times, {i} being the number of the
// copy, and SIGKILLs each at a random moment, up to half as long again as those
// took that lately ran to their end. What all of them printed is in killed.out.
// At least one must have been killed and at least one not, or the loop proves
// nothing.
func cmdKilling(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: killing N COMMAND...")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	seed := rand.Uint64()
	ts.Logf("killing: seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var all bytes.Buffer
	var usual time.Duration
	killed, ended := 0, 0
	for i := range n {
		argv := make([]string, len(args)-1)
		for j, a := range args[1:] {
			argv[j] = strings.ReplaceAll(a, "{i}", strconv.Itoa(i))
		}
		cmd := command(ts, argv)
		var out, errb bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errb
		start := time.Now()
		ts.Check(cmd.Start())
		// The first one runs to its end and tells how long that takes.
		limit := patience
		if i > 0 {
			limit = time.Duration(random.Int64N(int64(3*usual/2) + 1))
		}
		plug := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		plug.Stop()
		all.Write(out.Bytes())
		ws, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		switch {
		case err == nil:
			ended++
			if took := time.Since(start); usual == 0 {
				usual = took
			} else {
				usual = (3*usual + took) / 4
			}
		case ws.Signaled() && ws.Signal() == syscall.SIGKILL:
			killed++
		default:
			ts.Fatalf("killing: %v: %v\n%s%s", argv, err, out.String(), errb.String())
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("killed.out"), all.Bytes(), 0o600))
	ts.Logf("killing: %d killed, %d ended", killed, ended)
	if killed == 0 || ended == 0 {
		ts.Fatalf("killing: %d killed, %d ended: this proves nothing", killed, ended)
	}
}

// forge WHAT CARD [PID]: writes a run of the card whose supervisor registered
// as another boot, another PID namespace, a process whose number was given away
// since, a program that could not capture fingerprints or one that knew none
// would have it on record. With a PID the start tick on record is that process's
// own, except for recycled. The output file is there and nobody holds its run
// lock. $RUN is the run.
func cmdForge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: forge other-boot|other-namespace|recycled|unverified|no-fingerprint CARD [PID]")
	}
	self := proc.Self()
	epoch, start, _ := strings.Cut(self.Fingerprint, "|")
	worker := eventlog.Process{PID: 1 << 21, Machine: self.Machine, PIDNS: self.PIDNS}
	if len(args) > 2 {
		var err error
		worker.PID, err = strconv.Atoi(args[2])
		ts.Check(err)
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", worker.PID))
		ts.Check(err)
		// The name in brackets may hold anything; the 22nd field of the line is the
		// 20th after it.
		start = strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))[19]
	}
	switch args[0] {
	case "other-boot":
		epoch = "00000000-0000-4000-8000-000000000000:7"
	case "other-namespace":
		worker.PIDNS = "17"
	case "recycled":
		start = "1" // nothing but the kernel is as old
	case "unverified", "no-fingerprint":
	default:
		ts.Fatalf("forge: %s is unknown", args[0])
	}
	switch args[0] {
	case "unverified":
		worker.Fingerprint = proc.Unverified
	case "no-fingerprint":
	default:
		worker.Fingerprint = epoch + "|" + start
	}
	id, board := args[1], ts.Getenv("BOARD")
	store := projection.Open(board, eventlog.Options{LockTimeout: patience})
	now := eventlog.TimeOf(time.Now())
	var assignee string
	ts.Check(store.View(func(v projection.View) error {
		t, err := v.MustTask(id)
		if err == nil {
			assignee = t.Assignee
		}
		return err
	}))
	res, err := store.Update("dispatcher:before/1-000000", now, projection.Claim(projection.ClaimFor{
		Task: id, Origin: projection.OriginDispatch, Assignee: assignee, Claimer: worker,
		TTL: time.Hour, LaunchGrace: time.Minute, OnCleanExit: projection.CleanViolation, Limits: projection.DefaultLimits(),
	}, projection.Writer{}))
	ts.Check(err)
	run := res.Commit.Seq
	output := filepath.Join(board, "runs", id, fmt.Sprintf("%d.log", run))
	ts.Check(os.MkdirAll(filepath.Dir(output), 0o700))
	ts.Check(os.WriteFile(output, []byte("kanlog: forged by a scenario\n"), 0o600))
	var st syscall.Stat_t
	ts.Check(syscall.Stat(output, &st))
	uuid, err := store.UUID()
	ts.Check(err)
	_, err = store.Update(fmt.Sprintf("supervisor:%s/%d", id, run), now, projection.Register(projection.Registration{
		Task: id, Run: run, Worker: worker, OutputInode: fmt.Sprintf("%d:%d", st.Dev, st.Ino),
		Token: fmt.Sprintf("%x/%d", uuid, run), Workspace: ts.Getenv("WORK"),
	}))
	ts.Check(err)
	ts.Setenv("RUN", strconv.FormatUint(run, 10))
}

// changerow TABLE KEY OLD NEW: changes OLD into NEW, of the same length, in a
// row of a table, behind the log's back.
func cmdChangeRow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 || len(args[2]) != len(args[3]) {
		ts.Fatalf("usage: changerow TABLE KEY OLD NEW")
	}
	db, err := bolt.Open(filepath.Join(ts.Getenv("BOARD"), "board.db"), 0o600, &bolt.Options{Timeout: patience, FreelistType: bolt.FreelistMapType})
	ts.Check(err)
	defer db.Close()
	ts.Check(db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("t:" + args[0]))
		if b == nil {
			return fmt.Errorf("no table %s", args[0])
		}
		row := b.Get([]byte(args[1]))
		changed := bytes.Replace(row, []byte(args[2]), []byte(args[3]), 1)
		if bytes.Equal(row, changed) {
			return fmt.Errorf("the row of %s in %s does not hold %q: %q", args[1], args[0], args[2], row)
		}
		return b.Put([]byte(args[1]), changed)
	}))
}

// damage KIND [FILE]: puts a damaged copy of the whole store, which is in the
// file whole.db, in the board's place.
func cmdDamage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: damage KIND [FILE]")
	}
	whole, err := os.ReadFile(ts.MkAbs("whole.db"))
	ts.Check(err)
	page := os.Getpagesize()
	zero := func(n uint64) { clear(whole[int(n)*page : int(n+1)*page]) }
	switch args[0] {
	case "half":
		whole = whole[:len(whole)/2]
	case "zero-page":
		zero(rootPage(whole, page))
	case "meta-0":
		zero(0)
	case "meta-1":
		zero(1)
	case "text":
		whole = []byte("a shopping list, put here by mistake\n")
	case "empty":
		whole = nil
	case "other":
		whole, err = os.ReadFile(ts.MkAbs(args[1]))
		ts.Check(err)
	case "none":
	case "deleted":
		ts.Check(os.Remove(storeOf(ts)))
		return
	default:
		ts.Fatalf("damage: %s is unknown", args[0])
	}
	ts.Check(os.WriteFile(storeOf(ts), whole, 0o600))
}

func storeOf(ts *testscript.TestScript) string { return filepath.Join(ts.Getenv("BOARD"), "board.db") }

// rootPage is the page that everything in a bbolt file hangs on, by the newer of
// its meta pages.
func rootPage(db []byte, page int) uint64 {
	root, newest := uint64(0), uint64(0)
	for i := range 2 {
		meta := db[i*page+16:]
		if txid := binary.NativeEndian.Uint64(meta[48:]); txid >= newest {
			newest, root = txid, binary.NativeEndian.Uint64(meta[16:])
		}
	}
	return root
}

// everyVerb is one call of each verb; ID and RUN are replaced.
var everyVerb = []string{
	"list", "list --json", "show ID", "runs ID", "events", "events ID --json", "logs ID", "why ID", "list --stuck", "ps", "stats", "verify", "rebuild", "head", "backup", "compact",
	"create another", "claim ID", "heartbeat ID --run 2", "complete ID", "block ID because", "fail ID because", "defer ID --for 1m",
	"comment ID hello", "unblock ID", "assign ID w", "reclaim ID --reason because", "dispatch --dry-run", "dispatch", "dispatch --json",
}

// refusedby CODE TEXT CARD: every verb exits with CODE and says what TEXT (a
// regular expression) says, without a trace of Go, and the store is as it was.
// init is among them where the code is 6: it must not make a board in place of
// a broken one.
func cmdRefusedBy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: refusedby CODE TEXT CARD")
	}
	want, text := args[0], regexp.MustCompile(args[1])
	before := fingerprintOf(ts, storeOf(ts))
	verbs := everyVerb
	if want == "6" {
		verbs = append([]string{"init"}, verbs...)
	}
	for _, verb := range verbs {
		cmd := command(ts, append([]string{"kanlog"}, strings.Fields(strings.ReplaceAll(verb, "ID", args[2]))...))
		var out, errb bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errb
		_ = cmd.Run()
		said := errb.String()
		switch {
		case strconv.Itoa(cmd.ProcessState.ExitCode()) != want:
			ts.Fatalf("%s: exit %d, want %s\n%s%s", verb, cmd.ProcessState.ExitCode(), want, out.String(), said)
		case !text.MatchString(said):
			ts.Fatalf("%s: stderr does not say %q: %s", verb, args[1], said)
		case strings.Contains(said, "goroutine ") || strings.Contains(said, "panic"):
			ts.Fatalf("%s: a trace of Go: %s", verb, said)
		}
		if after := fingerprintOf(ts, storeOf(ts)); after != before {
			ts.Fatalf("%s changed the store: %s, was %s", verb, after, before)
		}
	}
}

// fingerprintOf is a file's hash, or that there is none.
func fingerprintOf(ts *testscript.TestScript, path string) string {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	ts.Check(err)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
