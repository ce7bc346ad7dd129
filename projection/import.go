package projection

import (
	"errors"
	"fmt"
	"strings"

	"kanlog/eventlog"
)

// Imported is a card of another board, as it is to be made again on an empty one.
type Imported struct {
	// ID is kept: who noted it finds the card again.
	ID string
	// Draft is what the card asks for; its Parents are ids of other imported cards.
	// Triage and Blocked follow from Status.
	Draft
	Status    string
	BlockKind string
	// Done: it was completed, whether or not it was put away since. Answer is what
	// was said then, or when its work was handed in for review.
	Done     bool
	Answer   Answer
	Comments []ImportedComment
}

// ImportedComment is a comment of another board.
type ImportedComment struct{ Author, Text string }

// Import is what an import writes: the events of each commit, and what became of
// each card, in the order of the cards.
type Import struct {
	Commits [][]eventlog.Event
	Cards   []ImportedAs
}

// ImportedAs is a card as it came.
type ImportedAs struct {
	Status string
	// Note says why it did not come as it was, "" if it did.
	Note string
}

// PlanImport decides how cards come onto an empty board, in their order, which is
// their age. It is made of the transitions that make a card what it was: created,
// linked, commented, completed and so on. Runs do not come along, since their
// processes belong elsewhere; a card that was running comes as one that nobody has
// begun. pause is the reason of a pause of the board, nil for none. An error is
// about the input, and is a PlanError where it is about one card.
func PlanImport(cards []Imported, pause *string, actor string, now eventlog.Time) (*Import, error) {
	mem := eventlog.NewMem([16]byte{})
	m := &importing{mem: mem, v: View{mem}, cards: cards, now: now, actor: actor, at: map[string]int{}}
	m.Cards = make([]ImportedAs, len(cards))
	if pause != nil {
		if err := m.do(0, PauseBoard(*pause, Writer{})); err != nil {
			return nil, err
		}
	}
	for _, step := range []func(int) error{m.known, m.create, m.link, m.bringTo} {
		for i := range cards {
			if err := step(i); err != nil {
				return nil, m.about(i, err)
			}
		}
	}
	m.cut()
	for i, c := range cards {
		t, err := m.v.MustTask(c.ID)
		if err != nil {
			return nil, err
		}
		m.Cards[i].Status = t.Status
		if t.Status != c.Status && m.Cards[i].Note == "" {
			m.Cards[i].Note = m.changed(c, t)
		}
	}
	return &m.Import, nil
}

// importing is an import under way: what was decided is folded in memory, so that
// the next decision sees it.
type importing struct {
	Import
	mem   *eventlog.Mem
	v     View
	cards []Imported
	at    map[string]int // id -> its place in cards
	now   eventlog.Time
	actor string

	open []eventlog.Event // of the commit that is being filled
	size int
	seq  uint64
	done []bool // by bringTo
}

// about names the card that an error is about, once.
func (m *importing) about(i int, err error) error {
	var named *PlanError
	if errors.As(err, &named) {
		return err
	}
	return &PlanError{Index: i, Name: m.cards[i].ID, Err: err}
}

// do takes in a decision that has about size bytes of text.
func (m *importing) do(size int, decide Decider) error {
	d, err := decide(m.v, m.now)
	if err == nil {
		err = d.Refused
	}
	if err != nil {
		return err
	}
	number := uint64(len(m.Commits)) + 1
	if err := Fold(m.mem, eventlog.Commit{Number: number, Seq: m.seq + 1, At: m.now, Actor: m.actor, Events: d.Events}); err != nil {
		return err
	}
	m.seq += uint64(len(d.Events))
	m.open = append(m.open, d.Events...)
	if m.size += size; len(m.open) >= importEvents || m.size >= importBytes {
		m.cut()
	}
	return nil
}

// cut ends the commit that is being filled.
func (m *importing) cut() {
	if len(m.open) > 0 {
		m.Commits = append(m.Commits, m.open)
	}
	m.open, m.size = nil, 0
}

// known checks what a card is called, and what it and others name.
func (m *importing) known(i int) error {
	c := &m.cards[i]
	if !goodID(c.ID) {
		return invalid("the id %q is none of a card: t_ and eight of 0-9 and a-f", c.ID)
	}
	if at, twice := m.at[c.ID]; twice {
		return invalid("card %d has this id too", at+1)
	}
	m.at[c.ID] = i
	return nil
}

func goodID(id string) bool {
	rest, ok := strings.CutPrefix(id, "t_")
	return ok && len(rest) == 8 && strings.Trim(rest, "0123456789abcdef") == ""
}

// create makes the card with those of its parents that are older. A younger one
// was linked later, and is linked later here.
func (m *importing) create(i int) error {
	c := &m.cards[i]
	var older []string
	for _, p := range c.Parents {
		at, ok := m.at[p]
		if !ok {
			return &refusal{ErrNotFound, fmt.Sprintf("its parent %q is not among the cards; export the whole board", p)}
		}
		if at < i {
			older = append(older, p)
		}
	}
	d := c.Draft
	d.Triage, d.Blocked, d.BlockReason = c.Status == Triage, m.bornBlocked(c), ""
	if d.Blocked {
		d.BlockReason = or(c.BlockReason, unknownReason)
	}
	return m.do(len(d.Title)+len(d.Body), m.kept(c, d, older))
}

const unknownReason = "blocked before the import, for no reason on record"

// bornBlocked tells whether a card can be created as blocked as it was.
func (m *importing) bornBlocked(c *Imported) bool {
	return c.Status == Blocked && (c.BlockKind == "" || c.BlockKind == NeedsInput)
}

// kept is Create for a card that has an id, a tenant and a key from before. A key
// may have been given back by a card that was put away since: then it is that of
// the younger one, as it was.
func (m *importing) kept(c *Imported, draft Draft, parents []string) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if err := draft.check(); err != nil {
			return Decision{}, err
		}
		if c.Key != "" {
			if id, _ := v.byKey(c.Key); id != "" && m.cards[m.at[id]].Status != Archived {
				return Decision{}, invalid("card %s has the key %q too; a key makes one card", id, c.Key)
			}
		}
		draft.Key = ""
		d, err := (&making{v: v, now: now}).card(draft, parents)
		if err != nil {
			return Decision{}, err
		}
		made := d.Events[0].Data.(*eventlog.Created)
		made.Tenant, made.Key = c.Tenant, c.Key
		return decided(c.ID, event(c.ID, 0, made)), nil
	}
}

func (m *importing) link(i int) error {
	for _, p := range m.cards[i].Parents {
		if m.at[p] >= i {
			if err := m.do(0, Link(p, m.cards[i].ID, Writer{})); err != nil {
				return err
			}
		}
	}
	return nil
}

// bringTo brings a card, and before it those that it was built on, to the status it
// had. There are no cycles: link has refused them.
func (m *importing) bringTo(i int) error {
	if m.done == nil {
		m.done = make([]bool, len(m.cards))
	}
	if m.done[i] {
		return nil
	}
	m.done[i] = true
	c := &m.cards[i]
	for _, p := range c.Parents {
		if err := m.bringTo(m.at[p]); err != nil {
			return m.about(m.at[p], err)
		}
	}
	for _, n := range c.Comments {
		if err := checkLine("the author of a comment", n.Author, MaxName+MaxReason); err != nil {
			return err
		}
		if err := m.do(len(n.Text), AddComment(c.ID, n.Author, n.Text, Writer{})); err != nil {
			return err
		}
	}
	size := len(c.Answer.Summary) + len(c.Answer.Result) + len(c.Answer.Metadata)
	switch c.Status {
	case Done:
		return m.do(size, Complete(c.ID, c.Answer, Writer{}))
	case Review:
		err := m.do(size, RequestReview(c.ID, c.Answer, c.Reviewer, nil, Writer{}))
		if errors.Is(err, ErrState) {
			m.Cards[i].Note = "it waits, and cannot be in review before"
			return nil
		}
		return err
	case Blocked:
		if !m.bornBlocked(c) {
			return m.do(0, Block(c.ID, or(c.BlockReason, unknownReason), c.BlockKind, Limits{}, Writer{}))
		}
	case Archived:
		if c.Done {
			// What it was built on may have been reopened since.
			err := m.do(size, Complete(c.ID, c.Answer, Writer{}))
			if errors.Is(err, ErrState) {
				m.Cards[i].Note = "its result: a card that it was built on is open again"
			} else if err != nil {
				return err
			}
		}
		return m.do(0, Archive(c.ID, 0, "", "", Writer{}))
	}
	return nil
}

// changed says why a card is not in the status it was in.
func (m *importing) changed(c Imported, t *Task) string {
	switch {
	case c.Status == Running:
		return "its run was not taken along"
	case t.Status == Todo:
		return "it waits for a card that is open"
	case t.Status == Scheduled:
		return "its time has not come"
	}
	return "nothing holds it any more"
}

// Fill puts an import on the board, all of it or nothing. The board's log must be
// empty.
func (s *Store) Fill(actor string, now eventlog.Time, commits [][]eventlog.Event) (head eventlog.Head, err error) {
	err = s.file.Fill(func(tx *eventlog.Tx, n int) (bool, error) {
		if n >= len(commits) {
			return false, nil
		}
		tx.SetTablesFormat(TablesFormat)
		c, err := commit(tx, actor, now, commits[n])
		head = eventlog.Head{Commit: c.Number, Seq: c.Seq + uint64(len(c.Events)) - 1, Hash: c.Hash}
		return n+1 < len(commits), err
	})
	if errors.Is(err, eventlog.ErrConflict) {
		err = &refusal{ErrState, "the board has a history; an import needs a new one"}
	}
	return head, err
}
