package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"kanlog/eventlog"
	"kanlog/projection"
)

// importLine bounds a line of an import: a card with the largest body there may
// be, every byte of it as an escape, fits.
const importLine = 4 << 20

// importFile is an export as it was read: what an import takes of it, and how much
// it leaves.
type importFile struct {
	path   string
	pause  *string // the reason, nil if the board was not paused
	cards  []projection.Imported
	lines  []int          // where each card stands
	at     map[string]int // id -> its place in cards
	claims []string       // ids of the cards that were running

	reviewed map[string]uint64 // id -> the run whose work was in review
	results  map[string]string
	comments int
	runs     int
	events   int
	whole    *uint64 // how many events there are in all, nil if the file does not say
	line     int
}

// taskLine is what an import takes of a task. Absent values are null there and
// empty here.
type taskLine struct {
	ID                string        `json:"id"`
	Title             string        `json:"title"`
	Body              string        `json:"body"`
	Assignee          string        `json:"assignee"`
	Status            string        `json:"status"`
	Priority          int64         `json:"priority"`
	Tenant            string        `json:"tenant"`
	Tags              []string      `json:"tags"`
	CompletedAt       eventlog.Time `json:"completed_at"`
	MaxRuntimeSeconds int64         `json:"max_runtime_seconds"`
	NoRuntimeLimit    bool          `json:"no_runtime_limit"`
	MaxRetries        int64         `json:"max_retries"`
	WorkspaceKind     string        `json:"workspace_kind"`
	WorkspacePath     string        `json:"workspace_path"`
	Branch            string        `json:"branch"`
	Result            string        `json:"result"`
	Key               string        `json:"key"`
	Parents           []string      `json:"parents"`
	NotBefore         eventlog.Time `json:"not_before"`
	BlockKind         string        `json:"block_kind"`
	BlockReason       string        `json:"block_reason"`
	Reviewer          string        `json:"reviewer"`
	ReviewedRun       uint64        `json:"reviewed_run"`
}

// runLine is what an import takes of a run: what was said of the work.
type runLine struct {
	ID       uint64          `json:"id"`
	Task     string          `json:"task"`
	Outcome  string          `json:"outcome"`
	Summary  string          `json:"summary"`
	Result   string          `json:"result"`
	Metadata json.RawMessage `json:"metadata"`
}

// refused says where in the file the card stands that a decision refused.
func (f *importFile) refused(err error) error {
	var p *projection.PlanError
	if !errors.As(err, &p) {
		return err
	}
	return fmt.Errorf("%s:%d: %w", f.path, f.lines[p.Index], err)
}

// wrong names the line and what is wrong with it.
func (f *importFile) wrong(format string, args ...any) error {
	return usage("%s:%d: %s", f.path, f.line, fmt.Sprintf(format, args...))
}

// readImport reads JSON Lines as export writes them.
func readImport(path string) (*importFile, error) {
	f := &importFile{path: path, at: map[string]int{}, reviewed: map[string]uint64{}, results: map[string]string{}}
	in := io.Reader(os.Stdin)
	if path == "-" {
		f.path = "stdin"
	} else {
		file, err := os.Open(path)
		if err != nil {
			return nil, usage("%v", err)
		}
		defer file.Close()
		in = file
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), importLine)
	for lines.Scan() {
		f.line++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := f.read(lines.Bytes()); err != nil {
			return nil, err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		f.line++
		return nil, f.wrong("it has more than %d bytes, which no line of an export has", importLine)
	case err != nil:
		return nil, usage("reading %s: %v", f.path, err)
	case f.line == 0:
		return nil, usage("%s: it is empty; kanlog export writes what is read here", f.path)
	}
	return f, f.complete()
}

// complete refuses an export that was cut off between two lines: the events come
// last, and cards, runs or comments may be missing with them.
func (f *importFile) complete() error {
	if f.whole == nil || uint64(f.events) == *f.whole {
		return nil
	}
	return usage("%s: it has %d of the %s that its first line speaks of; it was cut off: export the board again (kept without its events on purpose: take seq and events out of the first line)",
		f.path, f.events, plural(int(*f.whole), "event", "events"))
}

// read reads one line.
func (f *importFile) read(line []byte) error {
	var what struct {
		Type *string `json:"type"`
	}
	if !utf8.Valid(line) {
		return f.wrong("it is not UTF-8")
	}
	if err := f.decode(line, &what, false); err != nil {
		return err
	}
	if what.Type == nil {
		return f.wrong("it has no type; each line has one: board, task, run, comment or event")
	}
	if f.line == 1 != (*what.Type == "board") {
		return f.wrong("its type is %q; the first line is of the type board and no other one is", *what.Type)
	}
	switch *what.Type {
	case "board":
		return f.board(line)
	case "task":
		return f.task(line)
	case "comment":
		return f.comment(line)
	case "run":
		return f.run(line)
	case "event":
		f.events++
		return nil
	}
	return f.wrong("its type %q is none of board, task, run, comment, event", *what.Type)
}

// decode reads a line into a struct and says what is wrong in words. strict
// refuses keys that the struct does not have: what is spelled wrong would be lost
// without a word.
func (f *importFile) decode(line []byte, to any, strict bool) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	if strict {
		dec.DisallowUnknownFields()
	}
	err := dec.Decode(to)
	if err == nil && dec.More() {
		return f.wrong("something stands behind its object; it would be one JSON object a line")
	}
	var kind *json.UnmarshalTypeError
	var when *time.ParseError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind) && kind.Field == "":
		return f.wrong("it is a JSON %s and no object", kind.Value)
	case errors.As(err, &kind):
		return f.wrong("%s is a %s, and should be %s", kind.Field[strings.LastIndexByte(kind.Field, '.')+1:], kind.Value, jsonWords(kind.Type.Kind().String()))
	case errors.As(err, &when):
		return f.wrong("%q is no time; it would be like 2026-12-01T09:00:00Z", strings.Trim(when.Value, `"`))
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return f.wrong("unknown key %s (docs/export.md has all)", strings.TrimPrefix(err.Error(), "json: unknown field "))
	}
	return f.wrong("it is no JSON object: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// jsonWords says what a kind of Go's is in JSON.
func jsonWords(kind string) string {
	switch kind {
	case "string":
		return "text"
	case "slice":
		return "a list"
	case "bool":
		return "true or false"
	}
	return "a whole number"
}

func (f *importFile) board(line []byte) error {
	var b struct {
		Format int     `json:"format"`
		Task   any     `json:"task"`
		Seq    *uint64 `json:"seq"`
		Events *uint64 `json:"events"`
		Paused *struct {
			Reason string `json:"reason"`
		} `json:"paused"`
	}
	if err := f.decode(line, &b, false); err != nil {
		return err
	}
	if b.Format != exportFormat {
		return f.wrong("it has format %d; this kanlog reads %d", b.Format, exportFormat)
	}
	if b.Paused != nil {
		f.pause = &b.Paused.Reason
	}
	if f.whole = b.Events; f.whole == nil && b.Task == nil {
		f.whole = b.Seq // older exports; of one card they do not say how much there is
	}
	return nil
}

func (f *importFile) task(line []byte) error {
	if err := f.decode(line, &exportedTask{taskJSON: new(taskJSON)}, true); err != nil {
		return err
	}
	var t taskLine
	if err := f.decode(line, &t, false); err != nil {
		return err
	}
	if err := f.checkStatus(&t); err != nil {
		return err
	}
	if at, twice := f.at[t.ID]; twice {
		return f.wrong("card %s stands in line %d already", t.ID, f.lines[at])
	}
	c := projection.Imported{
		ID: t.ID, Status: t.Status, BlockKind: t.BlockKind, Done: t.Status == projection.Done || t.CompletedAt != 0,
		Draft: projection.Draft{
			Title: t.Title, Body: t.Body, Assignee: t.Assignee, Priority: t.Priority, Tenant: t.Tenant, Tags: t.Tags, Parents: t.Parents,
			Key: t.Key, MaxRetries: t.MaxRetries, WorkspaceKind: t.WorkspaceKind, WorkspacePath: t.WorkspacePath, Branch: t.Branch,
			NotBefore: t.NotBefore, BlockReason: t.BlockReason, Reviewer: t.Reviewer,
		},
	}
	if t.MaxRuntimeSeconds < 0 || t.MaxRuntimeSeconds > int64(projection.MaxDuration/time.Second) {
		return f.wrong("max_runtime_seconds %d is out of range", t.MaxRuntimeSeconds)
	}
	c.MaxRuntime = time.Duration(t.MaxRuntimeSeconds) * time.Second
	if t.NoRuntimeLimit {
		c.MaxRuntime = projection.NoLimit
	}
	switch c.WorkspaceKind {
	case "", projection.Scratch:
		// Where it was is a directory of the other board.
		c.WorkspaceKind, c.WorkspacePath = projection.Scratch, ""
	}
	if t.Status == projection.Running {
		f.claims = append(f.claims, t.ID)
	}
	f.reviewed[t.ID], f.results[t.ID] = t.ReviewedRun, t.Result
	if c.Done {
		c.Answer.Result = t.Result
	}
	f.at[t.ID] = len(f.cards)
	f.cards, f.lines = append(f.cards, c), append(f.lines, f.line)
	return nil
}

func (f *importFile) checkStatus(t *taskLine) error {
	for _, s := range projection.Statuses {
		if s == t.Status {
			return nil
		}
	}
	return f.wrong("status %q is none of %s", t.Status, strings.Join(projection.Statuses, ", "))
}

// card is the card that a line names, which stands before it.
func (f *importFile) card(id string) (*projection.Imported, error) {
	at, ok := f.at[id]
	if !ok {
		return nil, f.wrong("it is about card %q, which stands nowhere before it", id)
	}
	return &f.cards[at], nil
}

func (f *importFile) comment(line []byte) error {
	var c exportedComment
	c.commentJSON = new(commentJSON)
	if err := f.decode(line, &c, true); err != nil {
		return err
	}
	card, err := f.card(c.Task)
	if err == nil {
		card.Comments = append(card.Comments, projection.ImportedComment{Author: c.Author, Text: c.Text})
		f.comments++
	}
	return err
}

// run takes of a run the words about the work: of the run that completed the card
// last, or whose work is in review.
func (f *importFile) run(line []byte) error {
	var r runLine
	if err := f.decode(line, &r, false); err != nil {
		return err
	}
	card, err := f.card(r.Task)
	if err != nil {
		return err
	}
	f.runs++
	if !(card.Done && r.Outcome == projection.OutCompleted || r.ID != 0 && r.ID == f.reviewed[r.Task]) {
		return nil
	}
	card.Answer = projection.Answer{Summary: r.Summary, Result: r.Result}
	if string(r.Metadata) != "null" {
		card.Answer.Metadata = r.Metadata
	}
	// An approval speaks of the work, and a result may have been edited.
	if want := f.results[r.Task]; card.Done && want != r.Result && (r.Result != "" || want != r.Summary) {
		card.Answer.Result = want
	}
	return nil
}
