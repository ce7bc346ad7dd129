package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The crash loop: the real program and real processes, several dispatch loops
// and verbs beside each other, and in each round somebody is ended or stopped at
// a random moment. scripts/crash runs it for as long as you like. A seed decides
// what is done and to what kind of process, but not when the machine gets to it,
// so that a failure is told by what is left: the home is kept.

var (
	crashRounds  = flag.Int("crash.rounds", 6, "how many rounds TestCrash plays")
	crashSeed    = flag.Uint64("crash.seed", 0, "what the rounds are drawn from, 0 for a new one")
	crashProgram = flag.String("crash.program", "", "the program to play with, instead of one that is built for the test")
)

// crashWorker is one run of a card; what it does is drawn from its number. The
// bill holds the run, since a run that was ended between its bill and its answer
// is rightly followed by another that bills too.
const crashWorker = `cd "$CRASH" || exit 1
me="$KANLOG_TASK $KANLOG_RUN $$"
echo "START $me" >>lines
n=$(((KANLOG_RUN * 7919 + CRASH_SEED) % 100))
[ -e calm ] && n=0
alive() {
	i=0
	while [ $i -lt $1 ]; do
		echo "ALIVE $me" >>lines
		sleep 0.03
		i=$((i + 1))
	done
}
case $1 in
deaf) trap '' TERM ;;
forking)
	# They outlive the run, if nobody ends them.
	sh "$CRASH/child" "$KANLOG_TASK" "$KANLOG_RUN" $((n + 50)) &
	setsid sh "$CRASH/child" "$KANLOG_TASK" "$KANLOG_RUN" $((n / 2 + 50)) &
	env -i PATH="$PATH" sh "$CRASH/child" "$KANLOG_TASK" "$KANLOG_RUN" $((n % 30 + 50)) >/dev/null 2>&1 &
	env -i PATH="$PATH" setsid sh "$CRASH/child" "$KANLOG_TASK" "$KANLOG_RUN" $((n % 70 + 50)) &
	;;
esac
alive $((n % 7))
"$KANLOG_BIN" heartbeat || exit 1
[ $n -lt 96 ] || alive 300
case $n in
5[0-7]) exit 1 ;;
5[89] | 6[0-3]) exit 75 ;;
6[4-9]) [ "$1" = quiet ] || exit 0 ;;
7[0-4]) exec "$KANLOG_BIN" fail 'no luck' ;;
7[5-9]) kill -KILL $$ ;;
8[0-2]) exec "$KANLOG_BIN" defer --for 1 ;;
8[3-5])
	"$KANLOG_BIN" block 'which key?'
	alive 300 ;;
esac
alive $((n % 5))
echo "BILL $me" >>lines
if [ "$1" != quiet ]; then "$KANLOG_BIN" complete --summary "by run $KANLOG_RUN" || exit 1; fi
case $n in
8[6-9]) alive 300 ;;
9?) exit 1 ;;
esac
echo "END $me" >>lines
`

const crashChild = `cd "${0%/*}" || exit 1
[ $(($3 % 2)) = 0 ] && trap '' TERM HUP
i=0
while [ $i -lt $3 ]; do
	echo "ALIVE $1 $2 $$" >>lines
	sleep 0.04
	i=$((i + 1))
done
`

const crashSettings = `max_in_progress = 8
failure_limit = 3
retry_backoff = "50ms"
rate_limit_cooldown = "200ms"
kill_grace = "300ms"
terminal_grace = "500ms"
claim_ttl = "1s"
launch_grace = "2s"
heartbeat_stale = "2s"
reclaim_defer = "1s"
lock_timeout = "60s"
`

// crash is one board and everybody who works on it.
type crash struct {
	*testing.T
	r                           *rand.Rand
	seed                        uint64
	dir, home, board, bin, uuid string

	mu       sync.Mutex
	calls    map[int]*crashCall // by pid
	signals  map[string]int
	cards    map[string]*crashCard // by title
	comments map[string]*crashCard // text -> title and whether it was acknowledged
	made     int
	stopped  []crashStop
}

// crashCall is a dispatch or a verb that runs now.
type crashCall struct {
	crashProc
	hit bool // by a signal of ours, so that its exit code says nothing
}

// crashCard is something that was asked for.
type crashCard struct {
	id, body, parent string
	sure             bool // it was acknowledged
}

type crashStop struct {
	proc *os.Process
	till time.Time
}

func TestCrash(t *testing.T) {
	c := newCrash(t)
	began := time.Now()
	t.Logf("seed %d, %d rounds, home %s", c.seed, *crashRounds, c.home)
	for range 16 {
		c.create(c.r)
	}
	over := make(chan struct{})
	var all sync.WaitGroup
	for i := range 3 {
		r := rand.New(rand.NewPCG(c.seed, 100+uint64(i)))
		all.Go(func() { c.loop(over, r, func() { c.call(nil, "dispatcher", "dispatch") }) })
	}
	for i := range 2 {
		r := rand.New(rand.NewPCG(c.seed, 200+uint64(i)))
		all.Go(func() { c.loop(over, r, func() { c.verb(r) }) })
	}
	for round := 0; round < *crashRounds && !c.Failed(); round++ {
		time.Sleep(time.Duration(c.r.IntN(120)) * time.Millisecond)
		c.strike()
	}
	close(over)
	c.wake(time.Now().Add(time.Hour))
	all.Wait()
	played := time.Since(began)
	c.drain()
	if !c.Failed() {
		c.check()
	}
	c.report(played, time.Since(began))
}

func newCrash(t *testing.T) *crash {
	dir, err := os.MkdirTemp("", "kanlog-crash-")
	if err != nil {
		t.Fatal(err)
	}
	c := &crash{
		T: t, seed: *crashSeed, dir: dir, home: filepath.Join(dir, "home"), bin: *crashProgram,
		calls: map[int]*crashCall{}, signals: map[string]int{}, cards: map[string]*crashCard{}, comments: map[string]*crashCard{},
	}
	if c.seed == 0 {
		c.seed = 1 + rand.Uint64N(1<<30)
	}
	if c.bin == "" {
		c.bin = filepath.Join(binDir, "kanlog")
	}
	c.r = rand.New(rand.NewPCG(c.seed, 1))
	c.board = filepath.Join(c.home, "boards", "default")
	t.Cleanup(func() {
		killStrays(t, dir)
		if t.Failed() {
			t.Logf("seed %d: what is left is kept in %s", c.seed, dir)
			return
		}
		os.RemoveAll(dir)
	})
	settings := crashSettings
	for _, kind := range []string{"plain", "deaf", "forking", "quiet"} {
		clean := map[string]string{"quiet": "complete"}[kind]
		if clean == "" {
			clean = "violation"
		}
		settings += fmt.Sprintf("[profiles.%s]\ncommand = [\"sh\", %q, %q]\nmax_runtime = \"3s\"\non_clean_exit = %q\n", kind, filepath.Join(dir, "worker"), kind, clean)
	}
	for name, text := range map[string]string{"home/config.toml": settings, "worker": crashWorker, "child": crashChild, "tmp/.keep": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.call(nil, "verb", "init")
	id, err := os.ReadFile(filepath.Join(c.board, "runs", "board-id"))
	if err != nil {
		t.Fatal(err)
	}
	c.uuid = strings.TrimSpace(string(id))
	return c
}

func (c *crash) loop(over chan struct{}, r *rand.Rand, do func()) {
	for !c.Failed() {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(r.IntN(60)) * time.Millisecond):
			do()
		}
	}
}

// call runs the program. Unless a signal of ours reached it, it must end with 0
// or one of the codes given. sure tells whether it did end with 0.
func (c *crash) call(codes []int, kind string, args ...string) (out []byte, sure bool) {
	cmd := exec.Command(c.bin, args...)
	cmd.Dir = c.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "USER=tester", "KANLOG_HOME=" + c.home, "TMPDIR=" + filepath.Join(c.dir, "tmp"),
		"CRASH=" + c.dir, "CRASH_SEED=" + strconv.FormatUint(c.seed, 10),
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	me := &crashCall{}
	// Under the lock, so that whoever looks for a victim knows what it is.
	c.mu.Lock()
	err := cmd.Start()
	if err == nil {
		// Nobody has waited for it, so that the number is its own.
		me.crashProc, _ = readProc(cmd.Process.Pid)
		me.kind = kind
		c.calls[cmd.Process.Pid] = me
	}
	c.mu.Unlock()
	if err != nil {
		c.Errorf("%v: %v", args, err)
		return nil, false
	}
	late := time.AfterFunc(patience, func() {
		c.Errorf("%v does not end within %s", args, patience)
		_ = cmd.Process.Kill()
	})
	_ = cmd.Wait()
	late.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, cmd.Process.Pid)
	code := cmd.ProcessState.ExitCode()
	if code != 0 && !me.hit && !slices.Contains(codes, code) {
		c.Errorf("kanlog %s: %s\n%s%s", strings.Join(args, " "), cmd.ProcessState, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), code == 0
}

// create asks for a new card until somebody says that it is there: with a key it
// may be asked for again, without one it is asked for once.
func (c *crash) create(r *rand.Rand) {
	c.mu.Lock()
	c.made++
	title := fmt.Sprintf("card %d", c.made)
	card := &crashCard{body: fmt.Sprintf("the body of %s\nand its second line %d", title, r.Uint32())}
	profile := []string{"plain", "deaf", "forking", "quiet"}[r.IntN(4)]
	args := []string{"create", title, "--body", card.body, "--assignee", profile, "--priority", strconv.Itoa(r.IntN(3)), "--json"}
	if r.IntN(3) == 0 {
		for _, t := range slices.Sorted(maps.Keys(c.cards)) {
			if p := c.cards[t]; p.id != "" && r.IntN(4) == 0 {
				card.parent = p.id
				args = append(args, "--parent", p.id)
				break
			}
		}
	}
	if r.IntN(3) == 0 {
		args = append(args, "--max-retries", strconv.Itoa(1+r.IntN(4)))
	}
	tries := 1
	if r.IntN(2) == 0 {
		args, tries = append(args, "--key", title), 50
	}
	c.cards[title] = card
	c.mu.Unlock()
	for range tries {
		out, sure := c.call(nil, "verb", args...)
		if !sure {
			continue
		}
		var got struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(out, &got); err != nil || got.ID == "" {
			c.Errorf("create %s: %v in %s", title, err, out)
		}
		c.mu.Lock()
		card.id, card.sure = got.ID, true
		c.mu.Unlock()
		return
	}
}

// crashTask is a card as list prints it.
type crashTask struct {
	ID          string  `json:"id"`
	Title       string  `json:"title"`
	Status      string  `json:"status"`
	CurrentRun  *uint64 `json:"current_run"`
	RetainedRun *uint64 `json:"retained_run"`
	BlockReason *string `json:"block_reason"`
}

func (c *crash) list() (tasks []crashTask) {
	out, sure := c.call(nil, "verb", "list", "--json")
	if sure {
		if err := json.Unmarshal(out, &tasks); err != nil {
			c.Errorf("list: %v in %s", err, out)
		}
	}
	return tasks
}

// verb does what people do.
func (c *crash) verb(r *rand.Rand) {
	tasks := c.list()
	over := 0
	for _, t := range tasks {
		if t.Status == "done" {
			over++
		}
	}
	if len(tasks) == 0 {
		return
	}
	if len(tasks)-over < 12 {
		c.create(r)
		return
	}
	refusable := []int{4}
	t := tasks[r.IntN(len(tasks))]
	// Mostly the cards at which something happens.
	for range 4 {
		if t.Status == "running" || t.Status == "blocked" || t.RetainedRun != nil {
			break
		}
		t = tasks[r.IntN(len(tasks))]
	}
	switch n := r.IntN(20); {
	case t.Status == "blocked" && n < 12:
		c.call(refusable, "verb", "unblock", t.ID)
	case n < 6:
		c.mu.Lock()
		text := fmt.Sprintf("comment %d", len(c.comments)+1)
		said := &crashCard{id: t.ID}
		c.comments[text] = said
		c.mu.Unlock()
		_, sure := c.call(nil, "verb", "comment", t.ID, text)
		c.mu.Lock()
		said.sure = sure
		c.mu.Unlock()
	case n < 8:
		c.call(refusable, "verb", "reclaim", t.ID, "--reason", "why not")
	case n < 9:
		c.call(refusable, "verb", "cancel", t.ID)
		c.call(refusable, "verb", "unblock", t.ID)
	case n < 12:
		c.call(refusable, "verb", "assign", t.ID, []string{"plain", "deaf", "forking", "quiet"}[r.IntN(4)])
	case n < 15:
		c.call(nil, "verb", "show", t.ID, "--json")
	case n < 17:
		c.call(nil, "verb", "why", t.ID)
	default:
		c.call(nil, "verb", "events", t.ID, "--json")
	}
}

// strike is one round: whose time is over goes on, somebody is ended or stopped,
// and the machine is held against I3.
func (c *crash) strike() {
	c.wake(time.Now())
	found := c.scan()
	c.beside(found)
	kinds := map[string][]crashProc{}
	for _, p := range found {
		kinds[p.kind] = append(kinds[p.kind], p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pid := range slices.Sorted(maps.Keys(c.calls)) {
		if call := c.calls[pid]; call.start != "" {
			kinds[call.kind] = append(kinds[call.kind], call.crashProc)
		}
	}
	if len(kinds) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(kinds))
	among := kinds[names[c.r.IntN(len(names))]]
	victim := among[c.r.IntN(len(among))]
	// What a supervisor leaves behind matters most: nothing may start beside it.
	for range 3 {
		if victim.kind != "supervisor" || slices.ContainsFunc(kinds["descendant"], func(p crashProc) bool { return p.run == victim.run }) {
			break
		}
		victim = among[c.r.IntN(len(among))]
	}
	sig, name := syscall.SIGKILL, "KILL"
	if c.r.IntN(3) == 0 {
		sig, name = syscall.SIGSTOP, "STOP"
	}
	// The handle is opened first and the process looked at through its number
	// afterwards: it is still the one that was found, and no stranger.
	proc, err := os.FindProcess(victim.pid)
	if err != nil {
		return
	}
	now, ok := c.look(victim.pid)
	if c.calls[victim.pid] != nil {
		now, ok = readProc(victim.pid)
	}
	if !ok || now.start != victim.start {
		return
	}
	if call := c.calls[victim.pid]; call != nil {
		call.hit = true
	}
	if err := proc.Signal(sig); err != nil {
		if !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
			c.Errorf("%s to %s %d: %v", name, victim.kind, victim.pid, err)
		}
		return
	}
	c.signals[name+" "+victim.kind]++
	if sig == syscall.SIGSTOP {
		longest := 1000 // of who may hold the store's lock
		if victim.kind == "supervisor" || victim.kind == "worker" || victim.kind == "descendant" {
			longest = 3000
		}
		c.stopped = append(c.stopped, crashStop{proc, time.Now().Add(time.Duration(c.r.IntN(longest)) * time.Millisecond)})
	}
}

// wake lets those go on whose time is over.
func (c *crash) wake(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = slices.DeleteFunc(c.stopped, func(s crashStop) bool {
		if s.till.After(now) {
			return false
		}
		_ = s.proc.Signal(syscall.SIGCONT)
		return true
	})
}
