package projection

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// planned is a card of a graph whose title is its name.
func planned(name string, parents ...string) Planned {
	return Planned{name, draft(name, func(d *Draft) { d.Parents = parents })}
}

func keyed(p Planned) Planned {
	p.Key = "key of " + p.Name
	return p
}

// TestApplyRefuses: each of these graphs is refused for one card, in words that say
// what would be right, and nothing is on the board afterwards.
func TestApplyRefuses(t *testing.T) {
	many := make([]Planned, MaxApply+1)
	for i := range many {
		many[i] = planned(fmt.Sprint(i))
	}
	big := []Planned{}
	for i := range MaxApplyBytes/MaxBody + 1 {
		p := planned(fmt.Sprint(i))
		p.Body = strings.Repeat("x", MaxBody)
		big = append(big, p)
	}
	other := keyed(planned("kept"))
	other.Body = "another one"
	bad := planned("b")
	bad.MaxRetries = -1
	for _, tc := range []struct {
		name  string
		cards []Planned
		about string
		kind  error
		says  string
	}{
		{"nothing", nil, "", ErrInvalid, "there are no cards"},
		{"too many cards", many, "", ErrInvalid, "at most 1000"},
		{"too long", big, "", ErrInvalid, "at most 8388608"},
		{"no name", []Planned{planned("a"), planned("")}, "", ErrInvalid, "it has no name"},
		{"a name of two lines", []Planned{planned("a\nb")}, "a\nb", ErrInvalid, "one plain line"},
		{"one name twice", []Planned{planned("a"), planned("b"), planned("a")}, "a", ErrInvalid, "card 1 has this name too"},
		{"one key twice", []Planned{keyed(planned("a")), {"b", keyed(planned("a")).Draft}}, "b", ErrInvalid, `card "a" has the key`},
		{"a bad value", []Planned{planned("a"), bad}, "b", ErrInvalid, "max retries -1 is out of range"},
		{"its own parent", []Planned{planned("a"), planned("b", "b")}, "b", ErrInvalid, "its own parent"},
		{"a cycle", []Planned{planned("x", "a"), planned("a", "b"), planned("b", "c"), planned("c", "a")}, "a", ErrInvalid, "a waits for b waits for c waits for a"},
		{"a parent nobody knows", []Planned{planned("a"), planned("b", "a", "nope")}, "b", ErrNotFound, `"nope" is no card's name here`},
		{"a parent that may be two cards", []Planned{planned("b", "t_")}, "b", ErrNotFound, "beginning of several ids"},
		{"a parent twice", []Planned{planned("a"), planned("b", "a", "a")}, "b", ErrInvalid, `its parent "a" is named twice`},
		{"a key of another request", []Planned{planned("a"), other}, "kept", ErrState, "another title or body"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBoard(t)
			b.create("one")
			b.must(Create(keyed(planned("kept")).Draft, Writer{}))
			before := b.head()
			_, err := b.try(operator, Apply(tc.cards, Writer{}))
			if !errors.Is(err, tc.kind) || !strings.Contains(fmt.Sprint(err), tc.says) {
				t.Fatalf("%v, want %v: %s", err, tc.kind, tc.says)
			}
			var about *PlanError
			if errors.As(err, &about) {
				equal(t, "the card it is about", about.Name, tc.about)
			} else {
				equal(t, "the card it is about", "", tc.about)
			}
			equal(t, "the log", b.head(), before)
		})
	}
}

// TestApplyAnyOrder: children may stand before their parents; the cards are made
// parents first and otherwise in the order of the graph, in one commit.
func TestApplyAnyOrder(t *testing.T) {
	b := newBoard(t)
	b.create("old", func(d *Draft) { d.Tenant = "acme" })
	res := b.must(Apply([]Planned{planned("c", "b", "a"), planned("z"), planned("b", "a"), planned("a", b.id("old"))}, Writer{}))
	var order []string
	for _, e := range res.Commit.Events {
		c, err := b.view().MustTask(e.Task)
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, c.Title+" "+c.Status+" "+c.Tenant)
	}
	equal(t, "the cards made", strings.Join(order, ", "), "a todo acme, b todo acme, c todo acme, z ready ")
	for i, name := range []string{"c", "z", "b", "a"} {
		equal(t, "the answer's order", res.Applied[i].Name, name)
		equal(t, "created", res.Applied[i].Created, true)
	}
	equal(t, "what c waits for", sameSet(b.view().Parents(res.Applied[0].ID), []string{res.Applied[2].ID, res.Applied[3].ID}), true)
}

// TestApplyAgain: cards with keys are made once; new ones build on those that are
// there, and what those wait for stays.
func TestApplyAgain(t *testing.T) {
	b := newBoard(t)
	graph := []Planned{keyed(planned("a")), keyed(planned("b", "a"))}
	first := b.must(Apply(graph, Writer{}))
	b.must(Complete(first.Applied[0].ID, Answer{}, Writer{}))
	before := b.head()
	again := b.must(Apply(graph, Writer{}))
	equal(t, "the log", b.head(), before)
	equal(t, "what it says", again.Note, "every card was there before")
	equal(t, "the first card", again.Applied[0].ID+again.Applied[0].Status, first.Applied[0].ID+Done)

	more := b.must(Apply([]Planned{keyed(planned("b")), planned("c", "b", "a"), keyed(planned("a"))}, Writer{}))
	equal(t, "events", len(more.Commit.Events), 1)
	equal(t, "c waits for what is there", sameSet(b.view().Parents(more.Applied[1].ID), []string{first.Applied[0].ID, first.Applied[1].ID}), true)
	equal(t, "the link that is not in the graph stays", strings.Join(b.view().Parents(first.Applied[1].ID), " "), first.Applied[0].ID)
	equal(t, "and that is said", strings.Contains(strings.Join(more.Applied[0].Notes, ""), "waits for other cards"), true)
}

// TestApplyNameWins: a word that is a name here and an id on the board is the name,
// and that is said.
func TestApplyNameWins(t *testing.T) {
	b := newBoard(t)
	id := b.create("old")
	res := b.must(Apply([]Planned{planned(id), planned("b", id)}, Writer{}))
	equal(t, "the parent", strings.Join(b.view().Parents(res.Applied[1].ID), " "), res.Applied[0].ID)
	equal(t, "what is said", strings.Contains(strings.Join(res.Applied[1].Notes, ""), "is the card of that name here, not "+id), true)
}

// TestApplyIDsDiffer: two cards of one graph get two ids even from the same draw.
func TestApplyIDsDiffer(t *testing.T) {
	b := newBoard(t)
	twins := []Planned{planned("a"), planned("b")}
	twins[1].ID = twins[0].ID
	res := b.must(Apply(twins, Writer{}))
	if res.Applied[0].ID == res.Applied[1].ID {
		t.Errorf("both are %s", res.Applied[0].ID)
	}
}

// TestWaitWarning: what holds a parent is found however far up it stands.
func TestWaitWarning(t *testing.T) {
	b := newBoard(t)
	b.create("held", func(d *Draft) { d.Blocked, d.BlockReason = true, "which key?" })
	b.create("vague", func(d *Draft) { d.Triage = true })
	b.create("free")
	b.create("gone")
	b.must(Archive(b.id("gone"), 0, "", "", Writer{}))
	under := func(title string, parents ...string) {
		b.create(title, func(d *Draft) {
			for _, p := range parents {
				d.Parents = append(d.Parents, b.id(p))
			}
		})
	}
	under("mid", "free", "held")
	under("low", "mid")
	under("fine", "free")
	for title, want := range map[string]string{
		"held":  b.id("held") + " is blocked (needs_input: which key?); kanlog unblock",
		"vague": b.id("vague") + " is in triage; kanlog promote",
		"gone":  "archived, which counts as done",
		"mid":   "waits for " + b.id("held") + ", which is blocked",
		"low":   "waits for " + b.id("held") + ", which is blocked",
		"free":  "", "fine": "",
	} {
		got, err := b.view().WaitWarning(b.id(title))
		if err != nil || !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, %v; want %q", title, got, err, want)
		}
	}
}
