package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// world is the processes and files around a board, for the dispatcher: package
// proc in the words of package tick.
type world struct {
	a     *app
	store *projection.Store
	uuid  [16]byte
	set   *settings
	actor string // who starts, in what is written down of a start
}

func (a *app) newWorld() (*world, error) {
	set, err := a.settings()
	if err != nil {
		return nil, err
	}
	store, err := a.board()
	if err != nil {
		return nil, err
	}
	if a.uuid == nil {
		uuid, err := store.UUID()
		if err != nil {
			return nil, err
		}
		a.uuid = &uuid
	}
	return &world{a: a, store: store, uuid: *a.uuid, set: set}, nil
}

// self is this process, which stays the same one.
var self = sync.OnceValue(proc.Self)

// startOf is the token of a run without the mark of one start.
func startOf(uuid [16]byte, run uint64) string {
	return hex.EncodeToString(uuid[:]) + "/" + strconv.FormatUint(run, 10)
}

// newToken is what marks every process of one start of a run.
func newToken(uuid [16]byte, run uint64) string {
	var mark [8]byte
	_, _ = rand.Read(mark[:]) // never fails: the program ends if the system cannot
	return proc.NewToken(hex.EncodeToString(uuid[:]), strconv.FormatUint(run, 10), hex.EncodeToString(mark[:]))
}

func processOf(id proc.Identity) eventlog.Process {
	return eventlog.Process{PID: id.PID, Fingerprint: id.Fingerprint, Machine: id.Machine, PIDNS: id.PIDNS}
}

func (w *world) identity(r *projection.Run) proc.Identity {
	return proc.Identity{
		PID: r.PID, Fingerprint: r.Fingerprint, Machine: r.Machine, PIDNS: r.PIDNS,
		OutputInode: r.OutputInode, OutputPath: w.a.files().output(r.Task, r.ID), Token: r.Token,
		Guest: r.Origin == projection.OriginWork,
	}
}

// Claimer is this process.
func (w *world) Claimer() eventlog.Process { return processOf(self()) }

// Record reads a run's exit record. Of a claim that never registered no token is
// on the board: the record of who was refused is told by its run.
func (w *world) Record(r *projection.Run) (*projection.ExitRecord, error) {
	rec, err := proc.ReadRecord(w.a.files().record(r.Task, r.ID), cmp.Or(r.Token, startOf(w.uuid, r.ID)), r.ID)
	switch {
	case errors.Is(err, syscall.EIO):
		return nil, fmt.Errorf("%w: %w", tick.ErrInfrastructure, err)
	case err != nil || rec == nil:
		return nil, hostRefused(err)
	}
	return exitRecord(*rec), nil
}

// Tidy removes half-written files of a run whose writer is gone.
func (w *world) Tidy(task string, run uint64) { w.a.files().tidy(task, run) }

func exitRecord(rec proc.Record) *projection.ExitRecord {
	x := &projection.ExitRecord{
		Cause: rec.Cause, Signal: rec.Signal, CoreDumped: rec.CoreDumped, Error: rec.Error,
		OOMKill: rec.OOMKill, Infrastructure: rec.Infrastructure,
	}
	if rec.ExitCode != nil {
		n := int64(*rec.ExitCode)
		x.ExitCode = &n
	}
	return x
}

// Look is a fresh view of the processes.
func (w *world) Look(runs []*projection.Run) tick.Look {
	p := proc.NewProber()
	var ids []proc.Identity
	for _, r := range runs {
		if r.HasWorker {
			ids = append(ids, w.identity(r))
		}
	}
	p.Ahead(ids)
	return &look{w: w, prober: p}
}

type look struct {
	w      *world
	prober *proc.Prober
}

func evidenceOf(e proc.Evidence) tick.Evidence {
	return tick.Evidence{
		// A foreign run that is proven dead went with its namespace as far as can
		// be told from here: a container that was taken away, not a crash.
		Answer: tick.Answer(e.Answer), Why: e.Why, OtherBoot: e.OtherBoot || e.Foreign && e.Answer == proc.Dead,
		Unprovable: e.Foreign && e.LockUnknown, Members: e.Members,
	}
}

func (l *look) Worker(r *projection.Run) tick.Evidence {
	return evidenceOf(l.prober.Probe(l.w.identity(r)))
}

func (l *look) Claimer(r *projection.Run) tick.Evidence {
	c := r.Claimer
	return evidenceOf(l.prober.ProbeClaimer(proc.Identity{PID: c.PID, Fingerprint: c.Fingerprint, Machine: c.Machine, PIDNS: c.PIDNS}))
}

func (l *look) Signal(r *projection.Run, e tick.Evidence, s tick.Signal) error {
	id := l.w.identity(r)
	switch s {
	case tick.TermSupervisor:
		return sinceLooked(l.prober.SignalSupervisor(id, syscall.SIGTERM))
	case tick.KillSupervisor:
		return sinceLooked(l.prober.SignalSupervisor(id, syscall.SIGKILL))
	}
	members, _ := e.Members.([]proc.Member)
	sig := syscall.SIGTERM
	if s == tick.KillMembers {
		sig = syscall.SIGKILL
	}
	_, err := l.prober.SignalMembers(id, members, sig)
	return err
}

// sinceLooked passes over that a supervisor, proven a moment ago, is not any more: it has
// ended meanwhile, or cannot be read just now. Nothing was signalled, and the next look
// says which.
func sinceLooked(err error) error {
	if errors.Is(err, proc.ErrUnproven) {
		return nil
	}
	return err
}

// Start prepares everything a worker needs and forks its supervisor.
func (w *world) Start(l tick.Launch, begin func(fork func() error) error) (tick.Started, error) {
	if err := w.makeRunDir(l.Task.ID); err != nil {
		return nil, hostRefused(err)
	}
	p, err := w.prepare(l, begin)
	if err != nil {
		return nil, err
	}
	tok := newToken(w.uuid, l.Run)
	spec, env := w.spec(l, tok, p), w.environment(l, tok, p)
	if child := w.a.spares.use(spec, env); child != nil {
		return &started{child, p.workspace}, nil
	}
	var child *proc.Child
	err = begin(func() (err error) {
		text, err := json.Marshal(spec)
		if err != nil {
			return err
		}
		child, err = proc.Spawn(proc.SpawnSpec{
			Args: []string{"kanlog", superviseVerb}, Env: supervisorEnv(env), Dir: "/", OutputPath: spec.OutputPath, Spec: text,
		})
		return err
	})
	if err != nil {
		return nil, hostRefused(fmt.Errorf("starting the supervisor: %w", err))
	}
	return &started{child, p.workspace}, nil
}

// makeRunDir makes the directory for the files of a card's runs. That of all runs is
// there as long as the board is: a start that comes late (stopped, and gone on with an
// hour later) must not make it anew where the board has been moved away since, or what
// is left there would pass for a damaged board.
func (w *world) makeRunDir(task string) error {
	err := os.Mkdir(filepath.Dir(w.a.files().output(task, 0)), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// prepared is what a worker finds made.
type prepared struct{ workspace, contextFile string }

// prepare makes the workspace and the context file of a claimed card.
func (w *world) prepare(l tick.Launch, begin forker) (p prepared, err error) {
	if p.workspace, err = w.prepareWorkspace(l.Task, begin); err != nil {
		return p, hostRefused(fmt.Errorf("workspace: %w", err))
	}
	if err := w.seeToLeftWork(l, p.workspace, begin); err != nil {
		return p, hostRefused(fmt.Errorf("workspace: %w", err))
	}
	p.contextFile = w.a.files().context(l.Task.ID, l.Run)
	// Under begin for the same reason as a fork: no child of another start may
	// inherit the store that this reads.
	if err := begin(func() error { return w.writeContext(p.contextFile, l.Task.ID) }); err != nil {
		return p, hostRefused(fmt.Errorf("context file: %w", err))
	}
	return p, nil
}

// spec is what the supervisor of a claimed card has to know.
func (w *world) spec(l tick.Launch, tok string, p prepared) superviseSpec {
	files, t := w.a.files(), l.Task
	stdin := ""
	if l.Profile.Stdin == tick.StdinContext {
		stdin = p.contextFile
	}
	return superviseSpec{
		StdinPath: stdin, BoardDir: w.a.boardDir, Task: t.ID, Run: l.Run, Token: tok,
		Argv: expand(l.Profile.Argv(), map[string]string{
			"{task}": t.ID, "{run}": strconv.FormatUint(l.Run, 10), "{title}": t.Title, "{workspace}": p.workspace, "{context}": p.contextFile,
		}),
		Workspace: p.workspace, OutputPath: files.output(t.ID, l.Run), RecordPath: files.record(t.ID, l.Run),
		OutputLimit: w.set.outputLimit, KillGrace: w.set.policy.KillGrace, LockTimeout: w.set.lockTimeout, AllowNetwork: w.set.allowNetwork,
		Limits: w.set.policy.Limits, ClockOffset: w.a.offset(), Failpoint: os.Getenv("KANLOG_FAILPOINT"),
	}
}

// hostRefused marks errors that say nothing about the card.
func hostRefused(err error) error {
	if proc.LacksRoom(err) {
		return fmt.Errorf("%w: %w", tick.ErrInfrastructure, err)
	}
	return err
}

// expand replaces placeholders in whole arguments. An argument never becomes
// two, and none is given to a shell.
func expand(argv []string, values map[string]string) []string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		out[i] = arg
		if v, ok := values[arg]; ok {
			out[i] = v
		}
	}
	return out
}

// environment is what the worker gets: what it may inherit, the profile's own,
// and who it is. The supervisor runs in the same, so that the run's token marks
// it too.
func (w *world) environment(l tick.Launch, tok string, p prepared) []string {
	env := map[string]string{}
	for _, kv := range proc.CleanEnv(os.Environ()) {
		k, v, _ := strings.Cut(kv, "=")
		if inherits(k, l.Profile) {
			env[k] = v
		}
	}
	for k, v := range l.Profile.Env {
		env[k] = v
	}
	exe, err := os.Executable()
	if err != nil {
		exe = "kanlog"
	}
	for k, v := range map[string]string{
		"KANLOG_TASK": l.Task.ID, "KANLOG_RUN": strconv.FormatUint(l.Run, 10), "KANLOG_TOKEN": tok,
		"KANLOG_HOME": w.a.home, "KANLOG_BOARD": w.a.slug, "KANLOG_WORKSPACE": p.workspace,
		"KANLOG_CONTEXT": p.contextFile, "KANLOG_TENANT": l.Task.Tenant, "KANLOG_BIN": exe,
	} {
		env[k] = v
	}
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	sort.Strings(list)
	return list
}

// supervisorEnv is the worker's environment with a Go runtime that keeps to one
// processor: a supervisor mostly waits, and starting threads for nothing is a
// fifth of what it costs. supervise takes it away again for the worker.
func supervisorEnv(env []string) []string {
	return append(slices.Clone(env), oneProcessor)
}

const oneProcessor = "GOMAXPROCS=1"

// secretWords mark variables that look like the dispatcher's own secrets.
var secretWords = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "API_KEY", "APIKEY", "PRIVATE_KEY", "ACCESS_KEY"}

// traceNames carry a trace from whoever dispatches to the worker (W3C Trace Context).
var traceNames = []string{"TRACEPARENT", "TRACESTATE"}

func inherits(name string, p tick.Profile) bool {
	upper := strings.ToUpper(name)
	if strings.HasPrefix(upper, "KANLOG_") || slices.Contains(traceNames, name) {
		return true
	}
	if p.PassEnvSet {
		for _, pass := range p.PassEnv {
			if pass == name {
				return true
			}
		}
		return false
	}
	for _, word := range secretWords {
		if strings.Contains(upper, word) {
			return false
		}
	}
	return true
}

type started struct {
	child     *proc.Child
	workspace string
}

func (s *started) PID() int          { return s.child.PID }
func (s *started) Workspace() string { return s.workspace }

func (s *started) Await(ctx context.Context) tick.FirstWord {
	r := s.child.Await(ctx)
	return tick.FirstWord{State: string(r.State), Detail: r.Detail, Infrastructure: r.Infrastructure}
}
