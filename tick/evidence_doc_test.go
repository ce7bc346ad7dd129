package tick

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// claimRows are the rows of docs/evidence.md for which no supervisor ever
// registered; manualRow has no row among what is seen, since nobody is asked.
const (
	claimRows = "no worker"
	manualRow = "no worker, a person's claim"
)

// state brings a run of card "a" to where a tick finds it. It returns 0 if the
// board refused to go there.
type state func(b *bench) (run uint64)

// evidenceStates are the sections of docs/evidence.md and their columns.
var evidenceStates = map[string]map[string]state{
	"Nobody asked for its end": {
		"open":               open,
		"lease over":         func(b *bench) uint64 { return later(open, 15*time.Minute)(b) },
		"over its time":      func(b *bench) uint64 { return later(timed, time.Minute)(b) },
		"silent":             silent,
		"closed":             later(answered, 2*time.Minute-time.Second),
		"closed, grace over": later(answered, 2*time.Minute),
		"closed, lease over": answeredLate,
		"closed, both over":  later(answeredLate, 2*time.Minute),
	},
	"Its end was requested just now":                        requested(0, 0),
	"Its end was requested one grace ago":                   requested(0, 5*time.Second),
	"Its end was requested two graces ago":                  requested(0, 10*time.Second),
	"Its end was requested just now, and its lease is over": requested(15*time.Minute, 0),
}

// claimStates are the columns of the section on claims without a worker; how a
// claim is made differs between those of a dispatcher and those of a person.
var claimStates = map[string]func(claim state) state{
	"just claimed":      func(claim state) state { return claim },
	"launch grace over": func(claim state) state { return later(claim, 35*time.Second) }, // and the kill grace
	"lease over":        func(claim state) state { return later(claim, 15*time.Minute) },
	"end requested":     endOfClaim,
	"closed":            closedClaim,
}

const claimSection = "It never had a worker"

func open(b *bench) uint64 { return b.running("a") }

// timed is a run with a cap on its time.
func timed(b *bench) uint64 {
	b.d.Policy.Profiles["coder"] = Profile{MaxRuntime: time.Minute}
	return open(b)
}

// silent is a run that has beaten and stopped, within its lease.
func silent(b *bench) uint64 {
	b.d.Policy.Limits.HeartbeatStale = 10 * time.Minute
	run := open(b)
	b.must(projection.Beat(b.cards["a"], "here", b.d.Policy.Limits, projection.Writer{Card: b.cards["a"], Run: run}))
	b.now = b.now.Add(10 * time.Minute)
	return run
}

func answered(b *bench) uint64 {
	run := open(b)
	b.complete("a", run)
	return run
}

func answeredLate(b *bench) uint64 {
	run := later(open, 15*time.Minute)(b)
	b.complete("a", run)
	return run
}

func later(s state, wait time.Duration) state {
	return func(b *bench) uint64 {
		run := s(b)
		b.now = b.now.Add(wait)
		return run
	}
}

// asks are the reasons for which the end of an open run is requested, as whoever
// has that reason does it.
var asks = map[string]func(card string, run uint64) projection.Decider{
	projection.EndReclaim: func(card string, run uint64) projection.Decider {
		return projection.Reclaim(card, run, "wrong", "", false, projection.Writer{})
	},
	projection.EndCancel: func(card string, run uint64) projection.Decider {
		return projection.Cancel(card, run, "wrong", "", projection.Writer{})
	},
	projection.EndArchive: func(card string, run uint64) projection.Decider {
		return projection.Archive(card, run, "wrong", "", projection.Writer{})
	},
	projection.EndMaxRuntime:     byTick(projection.EndMaxRuntime),
	projection.EndHeartbeatStale: byTick(projection.EndHeartbeatStale),
	projection.EndOrphaned:       byTick(projection.EndOrphaned),
}

func byTick(reason string) func(string, uint64) projection.Decider {
	return func(_ string, run uint64) projection.Decider {
		return projection.RequestEnd(projection.EndRequest{Run: run, Reason: reason})
	}
}

// requested is a column for each reason: before is how long the run had been
// going, ago how long ago it was asked for.
func requested(before, ago time.Duration) map[string]state {
	ask := func(s state, how func(string, uint64) projection.Decider) state {
		return later(func(b *bench) uint64 {
			run := s(b)
			b.must(how(b.cards["a"], run))
			if b.run(run).EndRequestedAt == 0 {
				b.t.Fatal("nobody asked for its end")
			}
			return run
		}, ago)
	}
	states := map[string]state{
		"closed, " + projection.EndTerminalGrace: ask(later(later(answered, before), 2*time.Minute), byTick(projection.EndTerminalGrace)),
	}
	for reason, how := range asks {
		states[reason] = ask(later(open, before), how)
	}
	return states
}

func dispatched(b *bench) uint64 {
	b.create("a")
	return b.claim("a")
}

func byHand(b *bench) uint64 {
	b.create("a")
	b.must(projection.Claim(projection.ClaimFor{Task: b.cards["a"], Origin: projection.OriginManual, Holder: "ann", TTL: 15 * time.Minute}, projection.Writer{}))
	return b.task("a").CurrentRun
}

// endOfClaim asks for the end of a worker that never was: a tick's wish comes to
// nothing, an operator's verb closes the claim at once.
func endOfClaim(claim state) state {
	return func(b *bench) uint64 {
		run := claim(b)
		asked := func(r *projection.Run) bool { return r.EndRequestedAt != 0 }
		for _, reason := range []string{projection.EndMaxRuntime, projection.EndHeartbeatStale, projection.EndOrphaned, projection.EndTerminalGrace} {
			b.must(byTick(reason)(b.cards["a"], run))
		}
		for _, verb := range []string{projection.EndReclaim, projection.EndCancel, projection.EndArchive} {
			other := newBench(b.t)
			run := claim(other)
			other.must(asks[verb](other.cards["a"], run))
			if other.stillActive(run, asked) != 0 {
				b.t.Errorf("%s: a claim without a worker waits for its end", verb)
			}
		}
		return b.stillActive(run, asked)
	}
}

// closedClaim answers for a claim; a run without a worker is over then.
func closedClaim(claim state) state {
	return func(b *bench) uint64 {
		run := claim(b)
		b.must(projection.Complete(b.cards["a"], projection.Answer{}, projection.Writer{Run: run}))
		return b.stillActive(run, func(r *projection.Run) bool { return !r.Open() })
	}
}

// stillActive is the run if a tick would look at it in that state.
func (b *bench) stillActive(run uint64, in func(*projection.Run) bool) uint64 {
	active, err := projection.NewView(b.store.Mem).Active()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, r := range active {
		if r.ID == run && in(r) {
			return run
		}
	}
	return 0
}

// cell lets a tick meet a run in a state with an evidence, and says in the words
// of docs/evidence.md what was judged. What the tick then appended and whom it
// signalled must be what the word promises.
func cell(t *testing.T, where string, s state, e Evidence) string {
	t.Helper()
	b := newBench(t)
	run := s(b)
	if run == 0 {
		return "cannot be"
	}
	if b.run(run).HasWorker {
		b.evidence[run] = e
	} else if b.run(run).Origin == projection.OriginDispatch {
		b.claimers[run] = e
	}
	head := b.head()
	brief := judge(b.run(run), e, b.now, b.d.Policy).brief()
	// None is started, so that the story is that of this run alone.
	if _, err := b.tick(Options{Max: 0}); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	did := strings.ReplaceAll(b.story(), " a", "")
	word, want := wordOf(brief, did)
	if word == "" || !strings.HasPrefix(did, want) || want == "" && did != "" {
		t.Errorf("%s: judged %q, but the tick did %q", where, brief, did)
	}
	// Only these words take a worker off the record or close a claim.
	over := strings.HasPrefix(word, "book") || strings.HasPrefix(word, "release") || strings.HasPrefix(word, "cut off") || word == "expire"
	r := b.run(run)
	if gone := !r.HasWorker && !r.Open(); gone != over {
		t.Errorf("%s: %q, and the run is over: %v", where, word, gone)
	}
	if unproven := b.saysUnproven(head); unproven != strings.HasPrefix(word, "release") {
		t.Errorf("%s: %q, and an event says unproven: %v", where, word, unproven)
	}
	return word
}

// wordOf is the word for a verdict, with what a tick must do for it.
func wordOf(brief, did string) (word, want string) {
	first, _, _ := strings.Cut(did, ",")
	if reason, ok := strings.CutPrefix(brief, "request "); ok {
		switch reason, signal, _ := strings.Cut(reason, ", "); {
		case signal == string(TermSupervisor):
			return "end: " + reason, "termination_requested, term_supervisor"
		case signal == string(TermMembers) && reason == projection.EndOrphaned:
			return "end tree", "termination_requested, term_members"
		case signal == "" && reason == projection.EndTerminalGrace:
			return "end, no signal", "termination_requested"
		}
		return "", ""
	}
	switch brief {
	case "":
		return "nothing", ""
	case "extend":
		return "extend", "claim_extended"
	case "term_supervisor":
		return "term", "term_supervisor"
	case "kill_supervisor":
		return "kill", "kill_supervisor"
	case "term_members":
		return "term tree", "term_members"
	case "kill_members":
		return "kill tree", "kill_members"
	case "defer":
		return "defer", "reclaim_deferred"
	case "book":
		return "book: " + first, first
	case "book unproven":
		return "release unproven: " + first, first
	case "cut off", "cut off, interrupted":
		return "cut off: " + first, first
	case "expire":
		return "expire", "reclaimed, blocked"
	}
	return "", ""
}

// saysUnproven tells whether an event after a commit says that it rests on no
// proof.
func (b *bench) saysUnproven(commit uint64) (yes bool) {
	b.t.Helper()
	err := b.store.Mem.Read(commit+1, func(c eventlog.Commit) error {
		for _, e := range c.Events {
			if d, ok := e.Data.(*eventlog.Reclaimed); ok && d.Unproven {
				yes = true
				continue
			}
			yes = yes || strings.Contains(fmt.Sprintf("%+v", e.Data), "unproven, its lease ran out")
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return yes
}

// TestEvidenceAndStateAsDocumented is the product of everything that can be seen
// and every state of a run, cell by cell, against docs/evidence.md.
func TestEvidenceAndStateAsDocumented(t *testing.T) {
	doc := readEvidenceDoc(t)
	seen := map[string]Evidence{}
	for _, row := range doc["What is seen"].rows {
		seen[row[0]] = judgedAs(t, row[0], row[3], row[4])
	}
	seen[manualRow] = Evidence{Answer: NoWorker}
	sections := map[string]map[string]state{claimSection: nil}
	for section, states := range evidenceStates {
		sections[section] = states
	}
	used := map[string]bool{}
	for section, states := range sections {
		table, ok := doc[section]
		if !ok {
			t.Errorf("docs/evidence.md has no section %q", section)
			continue
		}
		isClaim := section == claimSection
		got := evidenceTable{header: table.header}
		for _, row := range slices.Sorted(maps.Keys(seen)) {
			if strings.HasPrefix(row, claimRows) != isClaim {
				continue
			}
			cells := []string{row}
			for _, column := range table.header[1:] {
				s := states[column]
				if isClaim {
					s = claimStateOf(column, row)
				}
				if s == nil {
					t.Errorf("%s: nothing brings about the column %q", section, column)
					continue
				}
				where := section + " / " + column + " / " + row
				word := cell(t, where, s, seen[row])
				keepsTheRules(t, where, section, column, word, seen[row])
				used[strings.SplitN(word, ":", 2)[0]] = true
				cells = append(cells, word)
			}
			got.rows = append(got.rows, cells)
		}
		columns := slices.Sorted(maps.Keys(states))
		if isClaim {
			columns = slices.Sorted(maps.Keys(claimStates))
		}
		if have := slices.Sorted(slices.Values(table.header[1:])); !slices.Equal(have, columns) {
			t.Errorf("%s: columns %q, the states are %q", section, have, columns)
		}
		compareTables(t, section, table, got)
	}
	for _, row := range doc["What a tick does"].rows {
		word := strings.SplitN(row[0], ":", 2)[0]
		if !used[word] {
			t.Errorf("docs/evidence.md explains %q, which no cell holds", word)
		}
		delete(used, word)
	}
	for word := range used {
		t.Errorf("docs/evidence.md does not explain %q", word)
	}
	for section := range doc {
		if _, ok := sections[section]; !ok && section != "What is seen" && section != "What a tick does" {
			t.Errorf("docs/evidence.md has a table under %q that is not checked", section)
		}
	}
}

func claimStateOf(column, row string) state {
	build, ok := claimStates[column]
	if !ok {
		return nil
	}
	if row == manualRow {
		return build(byHand)
	}
	return build(dispatched)
}

// keepsTheRules are those of the design that no cell may break, whatever the
// table says.
func keepsTheRules(t *testing.T, where, section, column, word string, e Evidence) {
	t.Helper()
	is := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return word == w || strings.HasPrefix(word, w+":") })
	}
	signals := is("end", "end tree", "term", "kill", "term tree", "kill tree")
	releases := is("book", "release unproven")
	if section == claimSection {
		if signals || releases {
			t.Errorf("%s: %q, and there is no worker", where, word)
		}
		return
	}
	leaseOver := strings.Contains(section+column, "lease") || strings.Contains(column, "both over")
	broken := ""
	switch {
	case e.Answer == Held && signals:
		broken = "a process is signalled that nobody knows"
	case e.Answer == Held && releases && !(e.Unprovable && leaseOver):
		broken = "a claim is released without proof, and its lease is not all there is"
	case (e.Answer == Alive || e.Answer == Orphaned) && releases:
		broken = "a claim is released beside its process"
	case e.Answer == Dead && !is("book"):
		broken = "the dead are not booked"
	case is("kill") && !strings.Contains(section, "two graces"), is("kill tree") && strings.Contains(section, "just now"):
		broken = "killed before its grace was over"
	case e.Answer == Orphaned && is("end", "term", "kill"):
		broken = "a supervisor is signalled that is gone"
	case e.Answer == Alive && is("end tree", "term tree", "kill tree"):
		broken = "past its supervisor"
	}
	if broken != "" {
		t.Errorf("%s: %q: %s", where, word, broken)
	}
}

// judgedAs reads the column that says how an evidence reaches the dispatcher.
func judgedAs(t *testing.T, row, words, why string) Evidence {
	t.Helper()
	answer, flag, _ := strings.Cut(words, ", ")
	e := Evidence{Answer: Answer(answer), Why: why, OtherBoot: flag == "interrupted", Unprovable: flag == "unprovable"}
	known := []Answer{Alive, Orphaned, Dead, Held}
	if !slices.Contains(known, e.Answer) || flag != "" && !e.OtherBoot && !e.Unprovable {
		t.Fatalf("%s: judged as %q, which is nothing", row, words)
	}
	return e
}

// evidenceTable is a table of docs/evidence.md.
type evidenceTable struct {
	header []string
	rows   [][]string
}

func readEvidenceDoc(t *testing.T) map[string]evidenceTable {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "evidence.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := map[string]evidenceTable{}
	section := ""
	for line := range strings.SplitSeq(string(text), "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section = heading
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		table, ok := doc[section]
		switch {
		case !ok:
			table.header = cells
		case len(cells) != len(table.header):
			t.Fatalf("docs/evidence.md, %s: %d cells under %d: %s", section, len(cells), len(table.header), line)
		default:
			table.rows = append(table.rows, cells)
		}
		doc[section] = table
	}
	return doc
}

// compareTables reports each cell that differs, each row that is missing and
// each that nothing brings about.
func compareTables(t *testing.T, section string, doc, got evidenceTable) {
	t.Helper()
	documented := map[string][]string{}
	for _, row := range doc.rows {
		if documented[row[0]] != nil {
			t.Errorf("%s: row %q is there twice", section, row[0])
		}
		documented[row[0]] = row
	}
	for _, row := range got.rows {
		have, ok := documented[row[0]]
		delete(documented, row[0])
		if !ok {
			t.Errorf("%s: a row is missing:\n| %s |", section, strings.Join(row, " | "))
			continue
		}
		for i := range row {
			if row[i] != have[i] {
				t.Errorf("%s: %s, %s: documented %q, the tick does %q", section, row[0], doc.header[i], have[i], row[i])
			}
		}
	}
	for name := range documented {
		t.Errorf("%s: row %q is nothing that can be seen", section, name)
	}
}
