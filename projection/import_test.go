package projection

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kanlog/eventlog"
)

func imported(id int, status string, parents ...int) Imported {
	c := Imported{ID: fmt.Sprintf("t_%08x", id), Status: status, Draft: Draft{Title: fmt.Sprint("card ", id), WorkspaceKind: Scratch}}
	for _, p := range parents {
		c.Parents = append(c.Parents, fmt.Sprintf("t_%08x", p))
	}
	c.Done = status == Done
	return c
}

// filled is a board made of an import. The audit of a board checks what it wrote.
func importedBoard(t *testing.T, cards []Imported) (*board, *Import) {
	t.Helper()
	b := newBoard(t)
	plan, err := PlanImport(cards, nil, operator, b.now)
	if err != nil {
		t.Fatal(err)
	}
	for _, events := range plan.Commits {
		b.must(func(View, eventlog.Time) (Decision, error) { return Decision{Events: events}, nil })
	}
	return b, plan
}

// Every status comes as it was, or as what it is without its run, and the log that
// makes it so is one that the deciders could have written.
func TestImportOfEveryStatus(t *testing.T) {
	cards := []Imported{
		imported(1, Done), imported(2, Ready, 1), imported(3, Todo, 2), imported(4, Triage), imported(5, Running),
		imported(6, Blocked), imported(7, Review, 1), imported(8, Archived), imported(9, Scheduled), imported(10, Blocked), imported(11, Done, 8),
		imported(12, Archived), imported(13, Running, 2),
	}
	cards[5].BlockReason = "which key?"
	cards[8].NotBefore = 1_800_000_000_000_000
	cards[9].BlockKind, cards[9].BlockReason = Transient, "no network"
	cards[11].Done, cards[11].Answer.Summary = true, "said"
	b, plan := importedBoard(t, cards)
	for i, c := range cards {
		var got *Task
		if err := b.s.View(func(v View) (err error) { got, err = v.MustTask(c.ID); return err }); err != nil {
			t.Fatal(err)
		}
		want := c.Status
		switch {
		case want == Running && len(c.Parents) > 0:
			want = Todo
		case want == Running:
			want = Ready
		}
		if got.Status != want || plan.Cards[i].Status != want || (plan.Cards[i].Note != "") != (want != c.Status) {
			t.Errorf("%s was %s: %s, %+v", c.ID, c.Status, got.Status, plan.Cards[i])
		}
		if c.Status == Blocked && got.BlockReason != c.BlockReason || got.BlockKind == NeedsInput != (i == 5) {
			t.Errorf("%s: %s %q", c.ID, got.BlockKind, got.BlockReason)
		}
	}
}

// However the file orders its cards, they keep their order, which is their age, and
// whoever waits for a younger one is linked to it.
func TestImportKeepsTheAge(t *testing.T) {
	b, _ := importedBoard(t, []Imported{imported(1, Done, 3), imported(2, Todo, 4, 1), imported(3, Done), imported(4, Ready)})
	var order []string
	b.s.View(func(v View) error {
		list, _, err := v.InOrder(nil, 10)
		for _, c := range list {
			order = append(order, c.ID+" "+c.Status)
		}
		equal(t, "parents of 2", strings.Join(v.Parents("t_00000002"), " "), "t_00000001 t_00000004")
		return err
	})
	equal(t, "order", strings.Join(order, ", "), "t_00000001 done, t_00000002 todo, t_00000003 done, t_00000004 ready")
}

// No commit of an import is bigger than others can read without effort, and every
// beginning of its log is a board.
func TestImportIsCutIntoCommits(t *testing.T) {
	var cards []Imported
	for i := range 5000 {
		c := imported(i+1, Done)
		if i > 0 {
			c.Parents = []string{cards[i-1].ID}
		}
		if i%100 == 0 {
			c.Body = strings.Repeat("x", MaxBody)
		}
		cards = append(cards, c)
	}
	b, plan := importedBoard(t, cards)
	if len(plan.Commits) < 20 {
		t.Errorf("%d commits", len(plan.Commits))
	}
	for i, events := range plan.Commits {
		size := 0
		for _, e := range events {
			if d, ok := e.Data.(*eventlog.Created); ok {
				size += len(d.Body)
			}
		}
		if len(events) > importEvents+10 || size > importBytes+MaxBody {
			t.Errorf("commit %d: %d events, %d bytes", i, len(events), size)
		}
	}
	b.s.View(func(v View) error {
		last, err := v.MustTask(cards[len(cards)-1].ID)
		equal(t, "the last card", last.Status, Done)
		return err
	})
}

// A key belongs to the youngest card, if those before were put away.
func TestImportKeepsKeys(t *testing.T) {
	old, young := imported(1, Archived), imported(2, Ready)
	old.Key, young.Key = "k", "k"
	b, _ := importedBoard(t, []Imported{old, young})
	b.s.View(func(v View) error {
		id, _ := v.byKey("k")
		equal(t, "the key's card", id, young.ID)
		return nil
	})
	if _, err := PlanImport([]Imported{young, old}, nil, operator, b.now); !errors.Is(err, ErrInvalid) {
		t.Errorf("a key that a card has, and an older one: %v", err)
	}
}

// What is refused names the card by its place.
func TestImportRefusals(t *testing.T) {
	twice := imported(1, Ready)
	blank := imported(2, Ready)
	blank.Title = " "
	silent := imported(2, Ready)
	silent.Comments = []ImportedComment{{"ann", " "}}
	odd := imported(2, Ready)
	odd.ID = "T_00000002"
	for name, c := range map[string]struct {
		cards []Imported
		at    int
		kind  error
	}{
		"an id twice":                {[]Imported{imported(1, Ready), twice}, 1, ErrInvalid},
		"an id of another form":      {[]Imported{imported(1, Ready), odd}, 1, ErrInvalid},
		"a parent that is not there": {[]Imported{imported(1, Ready), imported(2, Todo, 9)}, 1, ErrNotFound},
		"its own parent":             {[]Imported{imported(1, Todo, 1)}, 0, ErrState},
		"a cycle":                    {[]Imported{imported(1, Todo, 2), imported(2, Todo, 1)}, 0, ErrState},
		"done before its parent":     {[]Imported{imported(1, Ready), imported(2, Ready), imported(3, Done, 2)}, 2, ErrState},
		"its parent is done so":      {[]Imported{imported(1, Done, 2), imported(2, Done, 3), imported(3, Ready)}, 1, ErrState},
		"a blank title":              {[]Imported{imported(1, Ready), blank}, 1, ErrInvalid},
		"a blank comment":            {[]Imported{imported(1, Ready), silent}, 1, ErrInvalid},
	} {
		plan, err := PlanImport(c.cards, nil, operator, 1_700_000_000_000_000)
		var p *PlanError
		if plan != nil || !errors.As(err, &p) || p.Index != c.at || !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
