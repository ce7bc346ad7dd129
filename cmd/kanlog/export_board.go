package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"kanlog/eventlog"
	"kanlog/projection"
)

// exportFormat is raised when a key of the exported lines changes its meaning.
const exportFormat = 1

// exported is what an export shows: the board, or one card of it, at one commit.
// One card is read in one transaction. The whole board is folded from the log in
// memory: its tables could only be read in batches, each of another moment.
type exported struct {
	a      *app
	store  *projection.Store
	board  boardLine
	paused *projection.Pause
	head   eventlog.Head
	task   string           // the one card, "" for the board
	snap   *projection.Past // of the board
	one    []*exportedCard  // the card, or the cards around it
}

// boardLine is the first line of an export: what it is an export of.
type boardLine struct {
	Type       string        `json:"type"`
	Format     int           `json:"format"`
	Board      string        `json:"board"`
	UUID       string        `json:"uuid"`
	Commit     uint64        `json:"commit"`
	Seq        uint64        `json:"seq"`
	Hash       string        `json:"hash"`
	ExportedAt eventlog.Time `json:"exported_at"`
	Kanlog     string        `json:"kanlog"`
	Task       any           `json:"task"`
	Paused     any           `json:"paused"`
}

// exportedCard is a card with what hangs on it.
type exportedCard struct {
	task     *exportedTask
	runs     []*runJSON
	comments []*commentJSON
}

// exportedTask is a task as every verb prints it, and what that cannot tell apart.
type exportedTask struct {
	Type string `json:"type"`
	*taskJSON
	// NoRuntimeLimit: max_runtime_seconds is null since the card has no limit,
	// whatever its profile says.
	NoRuntimeLimit bool `json:"no_runtime_limit"`
}

// exportedOf reads what is exported. around takes in the cards that hang together
// with the one that was asked for.
func (a *app) exportedOf(task string, around bool) (*exported, error) {
	store, err := a.board()
	if err != nil {
		return nil, err
	}
	x := &exported{a: a, store: store, task: task}
	if task != "" {
		err = x.readOne(around)
	}
	if task == "" || errors.Is(err, errEnough) {
		if x.snap, err = store.Now(); err == nil {
			x.head = x.snap.Head
			err = x.snap.View(x.describe)
		}
		if err == nil && task != "" {
			err = x.snap.View(func(v projection.View) (err error) {
				x.one, err = x.neighbours(v, len(x.snap.Cards()))
				return err
			})
		}
	}
	if err != nil {
		return nil, err
	}
	uuid, err := store.UUID()
	x.board.UUID = hex.EncodeToString(uuid[:])
	a.fail.hit("export.read")
	return x, err
}

// readOne reads one card, or with around up to listBatch that hang together: of
// more it says errEnough, since others wait for the transaction.
func (x *exported) readOne(around bool) error {
	return x.store.View(func(v projection.View) (err error) {
		if x.head, err = v.Head(); err != nil {
			return err
		}
		if err := x.describe(v); err != nil {
			return err
		}
		if around {
			x.one, err = x.neighbours(v, listBatch)
			return err
		}
		c, err := x.card(v, x.task)
		x.one = []*exportedCard{c}
		return err
	})
}

func (x *exported) describe(v projection.View) error {
	p, err := v.Paused()
	x.paused = p
	x.board = boardLine{
		Type: "board", Format: exportFormat, Board: x.a.slug, Commit: x.head.Commit, Seq: x.head.Seq,
		Hash: hex.EncodeToString(x.head.Hash[:]), ExportedAt: x.a.now, Kanlog: version(), Task: text(x.task),
	}
	if p != nil {
		x.board.Paused = map[string]any{"since": p.Since, "by": p.By, "reason": p.Reason}
	}
	return err
}

// neighbours are the card and all that it hangs together with, the oldest first.
func (x *exported) neighbours(v projection.View, max int) ([]*exportedCard, error) {
	var cards []*exportedCard
	var ages []uint64
	seen := map[string]bool{x.task: true}
	for queue := []string{x.task}; len(queue) > 0; queue = queue[1:] {
		if len(cards) == max {
			return nil, errEnough
		}
		t, err := v.MustTask(queue[0])
		if err != nil {
			return nil, err
		}
		j, err := x.taskOf(v, t)
		if err != nil {
			return nil, err
		}
		at, _ := slices.BinarySearch(ages, t.CreatedSeq)
		ages, cards = slices.Insert(ages, at, t.CreatedSeq), slices.Insert(cards, at, &exportedCard{task: j})
		for _, id := range slices.Concat(j.Parents, j.Children) {
			if !seen[id] {
				seen[id] = true
				queue = append(queue, id)
			}
		}
	}
	return cards, nil
}

func (x *exported) taskOf(v projection.View, t *projection.Task) (*exportedTask, error) {
	j, err := newTaskJSON(v, t)
	if err != nil {
		return nil, err
	}
	return &exportedTask{"task", x.a.placed(j), t.MaxRuntimeSeconds < 0}, nil
}

func (x *exported) card(v projection.View, id string) (*exportedCard, error) {
	t, err := v.MustTask(id)
	if err != nil {
		return nil, err
	}
	c := new(exportedCard)
	if c.task, err = x.taskOf(v, t); err != nil {
		return nil, err
	}
	runs, err := v.Runs(id)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		c.runs = append(c.runs, x.a.newRunJSON(r))
	}
	comments, err := v.Comments(id)
	for _, m := range comments {
		c.comments = append(c.comments, newCommentJSON(m))
	}
	return c, err
}

// cards calls fn for each card, the oldest first.
func (x *exported) cards(fn func(*exportedCard) error) error {
	if x.task != "" {
		for _, c := range x.one {
			if err := fn(c); err != nil {
				return err
			}
		}
		return nil
	}
	return x.snap.View(func(v projection.View) error {
		for _, id := range x.snap.Cards() {
			c, err := x.card(v, id)
			if err == nil {
				err = fn(c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// events calls fn for each event up to the commit of the export, oldest first. They
// are read anew after the cards: the log only grows, unless somebody restores a backup.
func (x *exported) events(fn func(c eventlog.Commit, i int) error) error {
	each := func(c eventlog.Commit) error {
		for i, e := range c.Events {
			if x.task != "" && e.Task != x.task {
				continue
			}
			if err := fn(c, i); err != nil {
				return err
			}
		}
		return nil
	}
	if x.task == "" {
		return x.snap.Commits(each)
	}
	return x.store.TaskCommitsUpTo(x.head, x.task, 1, each)
}

// where names the state that was exported.
func (b *boardLine) where() string {
	return fmt.Sprintf("board %s, commit %d, %s, %s", b.Board, b.Commit, short(b.Hash), b.ExportedAt)
}
