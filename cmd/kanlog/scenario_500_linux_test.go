package main_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// manyCards go through one board, at most manySlots at a time.
const (
	manyCards = 500
	manySlots = 40
)

// manyWorker says how it will end before it does. The last kinds leave a
// process of another session that has no parent but the supervisor: it ends
// with 9 before the command does ("early") or ignores the SIGTERM that follows
// on the command's end, and ends with 9 after it ("late"). kill -0 finds a
// process until somebody has waited for it, so each really saw the other's end.
const manyWorker = `title=$1
say() { echo "$title $KANLOG_RUN $* -" >>"$B/said"; }
case $title in
ok-*) say command $$ 0; exit 0 ;;
three-*) say command $$ 3; exit 3 ;;
hold-*)
	read -r _ <"$B/gate"
	say command $$ 0
	exit 0 ;;
esac
(exec setsid sh "$B/grandchild" "$title" $$ &)
until [ -s "$B/up/$title" ]; do sleep 0.02; done
read -r pid <"$B/up/$title"
case $title in early-*) while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done ;; esac
case $title in
*-kill-*) say command $$ SIGKILL; kill -KILL $$ ;;
esac
say command $$ 5
exit 5
`

const manyGrandchild = `title=$1 leader=$2
trap '' TERM
echo $$ >"$B/up/$title.new"
mv "$B/up/$title.new" "$B/up/$title"
case $title in
late-*)
	while kill -0 "$leader" 2>/dev/null; do sleep 0.02; done
	sleep 0.2 ;;
esac
echo "$title $KANLOG_RUN grandchild $$ 9 $(date +%s%6N)" >>"$B/said"
exit 9
`

// manyEnds says for each kind of card what the true end of its run is.
var manyEnds = []struct {
	kind, outcome, status string
	code                  int64 // -1: none
	signal                string
	grandchild            bool
}{
	{"ok", projection.OutCompleted, projection.Done, 0, "", false},
	{"three", projection.OutCrashed, projection.Blocked, 3, "", false},
	{"early-kill", projection.OutCrashed, projection.Blocked, -1, "SIGKILL", true},
	{"late-kill", projection.OutCrashed, projection.Blocked, -1, "SIGKILL", true},
	{"early-five", projection.OutCrashed, projection.Blocked, 5, "", true},
	{"late-five", projection.OutCrashed, projection.Blocked, 5, "", true},
}

// manyKind is the kind of the n-th card: a third each of those that complete,
// of those that exit with 3, and of the four that leave somebody behind.
func manyKind(n int) int {
	if n%3 < 2 {
		return n % 3
	}
	return 2 + n/3%4
}

// TestFiveHundredWorkers: whatever ends beside a command, the end on record is
// the command's own, in the log, in the exit record and in what the worker said;
// nothing is left behind, neither process nor zombie nor file nor a taken slot.
func TestFiveHundredWorkers(t *testing.T) {
	m := newMany(t)
	start := time.Now()
	for n := range manyCards {
		m.create(n, manyEnds[manyKind(n)].kind)
	}
	spawned := m.drain()
	t.Logf("%d cards in %d ticks, %s", manyCards, m.ticks, time.Since(start).Round(time.Millisecond))
	if spawned != manyCards {
		t.Errorf("%d workers were started for %d cards", spawned, manyCards)
	}
	said := m.said()
	for n := range manyCards {
		m.checkEnd(n, said)
	}
	if len(said) > 0 {
		t.Errorf("words of runs that are not on the board: %v", said)
	}
	m.checkNothingIsLeft()
	m.checkEverySlotIsFree()
	m.checkNothingIsLeft()
	if out, err := m.command("verify").CombinedOutput(); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
	checkBoards(t, "five hundred workers", m.dir)
}

type many struct {
	*testing.T
	dir, board string
	store      *projection.Store
	cards      map[string]string // title -> id
	titles     []string
	ticks      int
}

func newMany(t *testing.T) *many {
	m := &many{T: t, dir: t.TempDir(), cards: map[string]string{}}
	home := filepath.Join(m.dir, "home")
	m.board = filepath.Join(home, "boards", "default")
	settings := fmt.Sprintf(`max_in_progress = %d
failure_limit = 1
retry_backoff = "0"
[profiles.worker]
command = ["sh", %q, "{title}"]
on_clean_exit = "complete"
`, manySlots, filepath.Join(m.dir, "worker"))
	for name, text := range map[string]string{"home/config.toml": settings, "worker": manyWorker, "grandchild": manyGrandchild, "up/.keep": ""} {
		path := filepath.Join(m.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { killStrays(t, m.dir) })
	if out, err := m.command("init").CombinedOutput(); err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	m.store = projection.Open(m.board, eventlog.Options{LockTimeout: patience})
	return m
}

func (m *many) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(binDir, "kanlog"), args...)
	cmd.Dir = m.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "USER=tester", "B=" + m.dir, "KANLOG_HOME=" + filepath.Join(m.dir, "home")}
	return cmd
}

// create adds the n-th card without a process of its own: a program for each
// would take longer than all the workers.
func (m *many) create(n int, kind string) {
	m.Helper()
	d := projection.Draft{Title: fmt.Sprintf("%s-%d", kind, n), Assignee: "worker", WorkspaceKind: projection.Scratch}
	binary.BigEndian.PutUint64(d.ID[:], uint64(n)+1)
	res, err := m.store.Update("operator:tester", eventlog.TimeOf(time.Now()), projection.Create(d, projection.Writer{}))
	if err != nil {
		m.Fatal(err)
	}
	m.cards[d.Title] = res.Task
	m.titles = append(m.titles, d.Title)
}

// tick is one dispatch; it says how many workers that started.
func (m *many) tick() int {
	m.Helper()
	var stderr bytes.Buffer
	cmd := m.command("dispatch", "--json")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var rep struct {
		Spawned     []json.RawMessage `json:"spawned"`
		SpawnFailed []json.RawMessage `json:"spawn_failed"`
		Errors      []json.RawMessage `json:"errors"`
	}
	if err == nil {
		err = json.Unmarshal(out, &rep)
	}
	if err != nil || len(rep.SpawnFailed) > 0 || len(rep.Errors) > 0 {
		m.Fatalf("dispatch: %v\n%s%s", err, out, stderr.Bytes())
	}
	return len(rep.Spawned)
}

// drain ticks back to back until no card is startable and no run active.
func (m *many) drain() (spawned int) {
	m.Helper()
	for end := time.Now().Add(5 * time.Minute); ; {
		spawned += m.tick()
		m.ticks++
		active, ready := m.left()
		if active > manySlots {
			m.Errorf("%d runs are active, the cap is %d", active, manySlots)
		}
		if active == 0 && ready == 0 {
			return spawned
		}
		if time.Now().After(end) {
			m.Fatalf("not drained in time: %d runs active, %d cards ready", active, ready)
		}
	}
}

func (m *many) left() (active, ready int) {
	m.Helper()
	err := m.store.View(func(v projection.View) error {
		runs, err := v.Active()
		active = len(runs)
		if err != nil {
			return err
		}
		return v.Ready("worker", func(*projection.Task) bool { ready++; return true })
	})
	if err != nil {
		m.Fatal(err)
	}
	return active, ready
}

// word is what a process of a run said of its own end; at is when, in
// microseconds, of a grandchild.
type word struct{ run, who, pid, end, at string }

// said is everything that workers and grandchildren said, by the card's title.
func (m *many) said() map[string][]word {
	m.Helper()
	text, err := os.ReadFile(filepath.Join(m.dir, "said"))
	if err != nil {
		m.Fatal(err)
	}
	words := map[string][]word{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 6 {
			m.Fatalf("said: %q", line)
		}
		words[f[0]] = append(words[f[0]], word{f[1], f[2], f[3], f[4], f[5]})
	}
	return words
}

// checkEnd holds the board, the exit record and the worker's own words about the
// n-th card against the truth, and takes the words away.
func (m *many) checkEnd(n int, said map[string][]word) {
	m.Helper()
	want := manyEnds[manyKind(n)]
	title := m.titles[n]
	id := m.cards[title]
	var card *projection.Task
	var runs []*projection.Run
	err := m.store.View(func(v projection.View) (err error) {
		if card, err = v.MustTask(id); err == nil {
			runs, err = v.Runs(id)
		}
		return err
	})
	if err != nil {
		m.Fatal(err)
	}
	if len(runs) != 1 || card.Status != want.status || card.Worker != 0 || card.CurrentRun != 0 {
		m.Errorf("%s: %d runs, card %+v", title, len(runs), card)
		return
	}
	r := runs[0]
	if r.Outcome != want.outcome || code(r.ExitCode) != want.code || r.Signal != want.signal || r.HasWorker || r.EndRequestedAt != 0 {
		m.Errorf("%s: booked as %s, exit %d, signal %q (%s)", title, r.Outcome, code(r.ExitCode), r.Signal, r.Error)
	}
	m.checkRecord(title, r, want.code, want.signal)

	end := want.signal
	if end == "" {
		end = strconv.FormatInt(want.code, 10)
	}
	words := said[title]
	delete(said, title)
	whose := map[string]string{"command": end}
	if want.grandchild {
		whose["grandchild"] = "9"
	}
	for _, w := range words {
		if w.run != strconv.FormatUint(r.ID, 10) || whose[w.who] != w.end {
			m.Errorf("%s, run %d: %s of run %s said %s", title, r.ID, w.who, w.run, w.end)
		}
		if at, err := strconv.ParseInt(w.at, 10, 64); w.who == "grandchild" && (err != nil || eventlog.Time(at) > r.EndedAt) {
			m.Errorf("%s: booked at %s, beside a process that ended at %s", title, r.EndedAt, eventlog.Time(at))
		}
		delete(whose, w.who)
	}
	if len(whose) > 0 {
		m.Errorf("%s: nothing was said of %v: %v", title, whose, words)
	}
	if want.grandchild && len(words) != 2 || !want.grandchild && len(words) != 1 {
		m.Errorf("%s: said more than once: %v", title, words)
	}
}

func code(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// checkRecord reads the exit record as any program may.
func (m *many) checkRecord(title string, r *projection.Run, wantCode int64, signal string) {
	m.Helper()
	text, err := os.ReadFile(filepath.Join(m.board, "runs", r.Task, strconv.FormatUint(r.ID, 10)+".exit"))
	var rec struct {
		Task     string `json:"task"`
		Run      uint64 `json:"run"`
		Token    string `json:"token"`
		Cause    string `json:"cause"`
		ExitCode *int64 `json:"exit_code"`
		Signal   string `json:"signal"`
	}
	if err == nil {
		err = json.Unmarshal(text, &rec)
	}
	cause := projection.CauseExited
	if signal != "" {
		cause = projection.CauseSignaled
	}
	if err != nil || rec.Task != r.Task || rec.Run != r.ID || rec.Token != r.Token || rec.Cause != cause || code(rec.ExitCode) != wantCode || rec.Signal != signal {
		m.Errorf("%s: the exit record: %v %s", title, err, text)
	}
}

// checkNothingIsLeft waits until no process of this board is there, nor a zombie
// of one, and looks for files that nobody finished.
func (m *many) checkNothingIsLeft() {
	m.Helper()
	uuid, err := m.store.UUID()
	if err != nil {
		m.Fatal(err)
	}
	token := []byte("KANLOG_TOKEN=" + hex.EncodeToString(uuid[:]) + "/")
	numbers := m.numbers()
	// Supervisors end a moment after they booked; whoever inherited them waits
	// for them.
	var left []string
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left = left[:0]
		procs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range procs {
			pid := filepath.Base(dir)
			stat, err := os.ReadFile(filepath.Join(dir, "stat"))
			if err != nil {
				continue
			}
			rest := string(stat[bytes.LastIndexByte(stat, ')')+1:])
			switch env, _ := os.ReadFile(filepath.Join(dir, "environ")); {
			case bytes.Contains(env, token):
				left = append(left, pid+" has a token of this board")
			case strings.HasPrefix(rest, " Z") && numbers[pid]:
				left = append(left, pid+" is a zombie: "+string(stat))
			}
		}
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			m.Fatalf("left behind:\n%s", strings.Join(left, "\n"))
		}
	}

	for _, title := range m.titles {
		id := m.cards[title]
		files, err := os.ReadDir(filepath.Join(m.board, "runs", id))
		if err != nil {
			m.Errorf("%s: %v", title, err)
			continue
		}
		var names, want []string
		for _, f := range files {
			names = append(names, f.Name())
		}
		run := strings.TrimSuffix(slices.Min(append(names, "~")), ".context.md")
		for _, ending := range []string{".context.md", ".exit", ".log"} {
			want = append(want, run+ending)
		}
		if !slices.Equal(names, want) {
			m.Errorf("%s: the files of its run are %v", title, names)
		}
	}
	entries, err := os.ReadDir(filepath.Join(m.board, "runs"))
	if err != nil {
		m.Fatal(err)
	}
	known := append(slices.Collect(maps.Values(m.cards)), "board-id")
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			m.Errorf("runs/%s is no card's", e.Name())
		}
	}
}

// numbers are the process numbers of all supervisors, commands and
// grandchildren.
func (m *many) numbers() map[string]bool {
	m.Helper()
	numbers := map[string]bool{}
	for _, words := range m.said() {
		for _, w := range words {
			numbers[w.pid] = true
		}
	}
	supervisors := 0
	err := m.store.Commits(0, func(c eventlog.Commit) error {
		for _, e := range c.Events {
			if d, ok := e.Data.(*eventlog.Spawned); ok {
				supervisors++
				numbers[strconv.Itoa(d.PID)] = true
			}
		}
		return nil
	})
	if err != nil || supervisors != len(m.titles) {
		m.Fatalf("%d supervisors registered for %d cards, %v", supervisors, len(m.titles), err)
	}
	return numbers
}

// checkEverySlotIsFree starts as many workers as there are slots, in one tick,
// and one more that has to wait.
func (m *many) checkEverySlotIsFree() {
	m.Helper()
	// Each worker takes one line out of the gate; it stays open for both ends, so
	// that no line is lost and nobody waits for the other end.
	path := filepath.Join(m.dir, "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		m.Fatal(err)
	}
	gate, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		m.Fatal(err)
	}
	defer gate.Close()
	for n := range manySlots + 1 {
		m.create(manyCards+n, "hold")
	}
	if n := m.tick(); n != manySlots {
		m.Errorf("%d workers could be started, there are %d slots", n, manySlots)
	}
	if active, ready := m.left(); active != manySlots || ready != 1 {
		m.Errorf("%d active, %d ready", active, ready)
	}
	if _, err := gate.WriteString(strings.Repeat("\n", manySlots+1)); err != nil {
		m.Fatal(err)
	}
	if n := m.drain(); n != 1 {
		m.Errorf("%d workers were started after those", n)
	}
}
