package projection

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"kanlog/eventlog"
)

// Draft is a card to be created.
type Draft struct {
	// ID is 16 random bytes; the card's id is made from them, so that the core
	// draws no random numbers.
	ID            [16]byte
	Title         string
	Body          string
	Assignee      string
	Priority      int64
	Tenant        string
	Tags          []string
	Parents       []string // ids or unique prefixes
	Key           string
	MaxRuntime    time.Duration // 0 for the profile's, NoLimit for none
	MaxRetries    int64         // 0 for the settings'
	WorkspaceKind string
	WorkspacePath string
	Branch        string
	NotBefore     eventlog.Time
	Triage        bool
	Reviewer      string // "" for whom the settings name
	Blocked       bool
	BlockReason   string
}

// check refuses what is wrong whatever the board holds.
func (d *Draft) check() error {
	if strings.TrimSpace(d.Title) == "" {
		return invalid("the title is blank")
	}
	if d.Blocked && strings.TrimSpace(d.BlockReason) == "" {
		return invalid("blocked needs a reason")
	}
	if d.Triage && d.Blocked {
		return invalid("triage and blocked exclude each other")
	}
	if d.Priority > MaxPriority || d.Priority < -MaxPriority {
		return invalid("priority %d is out of range (%d to %d)", d.Priority, -MaxPriority, MaxPriority)
	}
	if d.MaxRetries < 0 || d.MaxRetries > MaxRetries {
		return invalid("max retries %d is out of range (1 to %d)", d.MaxRetries, MaxRetries)
	}
	if d.MaxRuntime < 0 && d.MaxRuntime != NoLimit || d.MaxRuntime > MaxDuration {
		return invalid("max runtime %s is out of range", d.MaxRuntime)
	}
	if d.MaxRuntime > 0 && d.MaxRuntime < time.Second {
		return invalid("max runtime %s is shorter than a second", d.MaxRuntime)
	}
	if len(d.Tags) > MaxTags {
		return invalid("%d tags; a card may have at most %d", len(d.Tags), MaxTags)
	}
	if len(d.Parents) > MaxParents {
		return invalid("%d parents; a card may have at most %d", len(d.Parents), MaxParents)
	}
	for _, tag := range d.Tags {
		if tag == "" {
			return invalid("a tag is empty")
		}
		if err := checkName("a tag", tag); err != nil {
			return err
		}
	}
	switch d.WorkspaceKind {
	case Scratch:
		if d.WorkspacePath != "" {
			return invalid("a scratch workspace takes no path")
		}
	case Dir, Shared:
		if !filepath.IsAbs(d.WorkspacePath) {
			return invalid("workspace %s:%s is not an absolute path", d.WorkspaceKind, d.WorkspacePath)
		}
	case Worktree:
		if !filepath.IsAbs(d.WorkspacePath) {
			return invalid("workspace worktree:%s does not name the repository by an absolute path", d.WorkspacePath)
		}
	default:
		return invalid("workspace %q is none of scratch, dir:/ABS, shared:/ABS, worktree:/ABS", d.WorkspaceKind)
	}
	if d.Branch != "" && d.WorkspaceKind != Worktree {
		return invalid("a branch needs the workspace worktree:/ABS")
	}
	for _, err := range []error{
		checkLine("the title", d.Title, MaxTitle),
		checkText("the body", d.Body, MaxBody),
		checkName("the assignee", d.Assignee),
		checkName("the tenant", d.Tenant),
		checkBranch(d.Branch),
		checkName("the reviewer", d.Reviewer),
		checkLine("the key", d.Key, MaxKey),
		checkLine("the workspace path", d.WorkspacePath, MaxPath),
		checkLine("the block reason", d.BlockReason, MaxReason),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// making is the making of cards in one decision. It knows those that the same
// decision makes, which the tables show only when it is folded.
type making struct {
	v    View
	now  eventlog.Time
	made map[string]*Task
}

func (m *making) task(id string) (*Task, error) {
	if t := m.made[id]; t != nil {
		return t, nil
	}
	return m.v.MustTask(id)
}

// newID is t_ and the first eight hex digits of SHA-256(random, n) for the
// first n that is free.
func (m *making) newID(random [16]byte) string {
	for n := uint64(0); ; n++ {
		h := sha256.Sum256(binary.BigEndian.AppendUint64(random[:], n))
		id := "t_" + hex.EncodeToString(h[:4])
		if m.made[id] == nil && m.v.r.Get(tabTasks, []byte(id)) == nil {
			return id
		}
	}
}

// card is what a draft comes to, its parents being ids: the event of a new card,
// or the card that its key made before and no event.
func (m *making) card(d Draft, parents []string) (Decision, error) {
	open := false
	tenant := d.Tenant
	for i, id := range parents {
		if slices.Contains(parents[:i], id) {
			return Decision{}, invalid("parent %s is named twice", id)
		}
		t, err := m.task(id)
		if err != nil {
			return Decision{}, err
		}
		open = open || t.Status != Done && t.Status != Archived
		if tenant == "" {
			tenant = t.Tenant
		}
	}
	status := Ready
	switch {
	case d.Blocked:
		status = Blocked
	case d.Triage:
		status = Triage
	case open:
		status = Todo
	case m.now < d.NotBefore:
		status = Scheduled
	}
	c := &eventlog.Created{
		Title: d.Title, Body: d.Body, Assignee: d.Assignee, Status: status, Priority: d.Priority,
		Tenant: tenant, Tags: d.Tags, Parents: parents, Key: d.Key,
		MaxRuntimeSeconds: limitSeconds(d.MaxRuntime), MaxRetries: d.MaxRetries,
		WorkspaceKind: d.WorkspaceKind, WorkspacePath: d.WorkspacePath, Branch: d.Branch,
		NotBefore: d.NotBefore, BlockReason: d.BlockReason, Reviewer: d.Reviewer,
	}
	if d.Key != "" {
		made, hash := m.v.byKey(d.Key)
		if was, err := m.v.Task(made); err != nil {
			return Decision{}, err
		} else if was != nil && was.Status != Archived {
			return sameRequest(was, hash, c)
		}
	}
	id := m.newID(d.ID)
	return decided(id, event(id, 0, c)), nil
}

// Create puts a card on the board. With a key that was used before it returns
// the card that was made then, provided the request is the same; a card that
// was archived since has given its key back.
func Create(d Draft, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if err := d.check(); err != nil {
			return Decision{}, err
		}
		if stop, err := fenceAside(v, "create", w); err != nil || stop.Refused != nil {
			return stop, err
		}
		parents := make([]string, len(d.Parents))
		for i, p := range d.Parents {
			id, err := v.Resolve(p)
			if err != nil {
				return Decision{}, err
			}
			parents[i] = id
		}
		m := making{v: v, now: now}
		return m.card(d, parents)
	}
}

// Bounded refuses a worker that would make more cards in one run than the limit: one
// that makes cards which make cards fills a board before anybody looks.
func (l Limits) Bounded(w Writer, make Decider) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		d, err := make(v, now)
		if err != nil || !w.InWorker() || l.CreateLimit <= 0 || d.Refused != nil {
			return d, err
		}
		n := int64(0)
		for _, e := range d.Events {
			if e.Kind() == eventlog.KindCreated {
				n++
			}
		}
		r, err := v.Run(w.Run)
		if err != nil || r == nil || n == 0 || r.Created+n <= l.CreateLimit {
			return d, err
		}
		return Decision{}, refuse(ErrState, w.Card, "its run %d has made %d cards, and would make %d more; one run may make %d (create_limit)", r.ID, r.Created, n, l.CreateLimit)
	}
}

// sameRequest accepts a repeated create: what was asked for then and now must
// agree, whatever has become of the card since. An edit must not make the caller's
// second try fail.
func sameRequest(t *Task, hash []byte, c *eventlog.Created) (Decision, error) {
	if !bytes.Equal(hash, asked(c)) {
		return Decision{}, refuse(ErrState, t.ID, "the key %q was used for this card, with another title or body", c.Key)
	}
	return already(t.ID, fmt.Sprintf("the key %q was used before", c.Key)), nil
}

// asked is a hash of what a repeated create has to ask for again. No title holds a
// zero byte.
func asked(c *eventlog.Created) []byte {
	h := sha256.Sum256(cat(under(c.Title), []byte(c.Body)))
	return h[:]
}

// AddComment leaves a note on a card.
func AddComment(id, author, text string, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if strings.TrimSpace(text) == "" {
			return Decision{}, invalid("the comment is blank")
		}
		if err := checkText("the comment", text, MaxComment); err != nil {
			return Decision{}, err
		}
		if _, err := v.MustTask(id); err != nil {
			return Decision{}, err
		}
		own := Writer{Card: w.Card, Run: w.Run}
		if w.InWorker() && w.Card != id {
			if stop, err := fenceAside(v, "comment", w); err != nil || stop.Refused != nil {
				return stop, err
			}
			own = Writer{}
		}
		if _, _, stop, err := fence(v, "comment", id, own); err != nil || stop.Refused != nil {
			return stop, err
		}
		return decided(id, event(id, own.Run, &eventlog.Commented{Author: author, Text: text})), nil
	}
}

// Assign gives a card to another assignee, "" for none. A card parked by a
// plain gave_up is freed by a new assignee, whose budget is fresh.
func Assign(id, assignee string, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if err := checkName("the assignee", assignee); err != nil {
			return Decision{}, err
		}
		t, open, stop, err := fence(v, "assign", id, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		if open != nil {
			return Decision{}, refuse(ErrState, id, "running (run %d); reclaim it before you assign it to somebody else", open.ID)
		}
		if t.Status == Archived {
			return Decision{}, refuse(ErrState, id, "archived")
		}
		if t.Assignee == assignee {
			return already(id, "already assigned so"), nil
		}
		events := []eventlog.Event{event(id, 0, &eventlog.Assigned{Assignee: assignee, From: t.Assignee})}
		if t.Status == Blocked && t.ParkedLimit > 0 && t.ReviewedRun == 0 {
			to, err := statusWithout(v, t, now, "")
			if err != nil {
				return Decision{}, err
			}
			events = append(events, event(id, 0, &eventlog.Promoted{To: to, Reason: "reassigned"}))
		}
		return decided(id, events...), nil
	}
}

// checkMetadata refuses what is not one JSON value.
func checkMetadata(b []byte) error {
	if len(b) > MaxMetadata {
		return invalid("the metadata has %d bytes; it may have at most %d", len(b), MaxMetadata)
	}
	if len(b) > 0 && (!json.Valid(b) || !utf8.Valid(b)) {
		return invalid("the metadata is not JSON in UTF-8")
	}
	return nil
}
