package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

func importCmd(a *app) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Make a new board of an export: its cards, links and comments",
		Long: `import reads what kanlog export wrote as JSON Lines (- for stdin) and puts the cards
on a new board, all of them or none. The board is made if it is not there; one that
has a history is refused.

Kept: ids, titles, bodies, parents, priorities, tags, tenants, keys, workspaces,
limits, comments and their authors, results and summaries, blocks and their reasons,
what is done or archived, and a pause of the board. Not kept: runs and events, with
their times and failure counts; every time is that of the import. A card that was
running comes as one that nobody has begun: if the board that it comes from goes on,
it is done twice.`,
		Example: `  kanlog import board.jsonl --board copy
  kanlog import board.jsonl --board copy --dry-run
  ssh other kanlog export | kanlog import - --board from-other --json`,
		Args: exactly(1, "one file (- for stdin)"),
		RunE: func(_ *cobra.Command, args []string) error { return a.importBoard(args[0], dryRun) },
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would come, change nothing")
	return cmd
}

type importJSON struct {
	Board    string          `json:"board"`
	Path     string          `json:"path"`
	DryRun   bool            `json:"dry_run"`
	Cards    int             `json:"cards"`
	Comments int             `json:"comments"`
	ByStatus map[string]int  `json:"by_status"`
	Changed  []importChanged `json:"changed"`
	Dropped  importDropped   `json:"dropped"`
	Commits  int             `json:"commits"`
	Head     any             `json:"head"` // null if nothing was written
}

// importChanged is a card that is not in the status it was in, or came without
// something.
type importChanged struct {
	Task string `json:"task"`
	From string `json:"from"`
	To   string `json:"to"`
	Why  string `json:"why"`
}

type importDropped struct {
	Runs   int `json:"runs"`
	Events int `json:"events"`
	Claims int `json:"claims"`
}

func (a *app) importBoard(path string, dryRun bool) error {
	w, err := a.writer()
	if err != nil {
		return err
	}
	if w.InWorker() {
		return &refusedError{"import refused: this process is a worker of " + w.Card + ", and boards are not its to make"}
	}
	// Before the file is read: whoever names a board that is used wants another one.
	store, err := a.board()
	if err != nil {
		return err
	}
	switch head, err := store.NewestCommit(); {
	case errors.Is(err, eventlog.ErrNoBoard):
	case err != nil:
		return err
	case head.Commit > 0:
		return &refusedError{fmt.Sprintf("board %s has a history of %s; an import needs a new board: name one that is not there (--board SLUG)", a.slug, plural(int(head.Commit), "commit", "commits"))}
	}
	file, err := readImport(path)
	if err != nil {
		return err
	}
	plan, err := projection.PlanImport(file.cards, file.pause, a.actor(w), a.now)
	if err != nil {
		return file.refused(err)
	}
	j := a.imported(file, plan)
	j.DryRun = dryRun
	if !dryRun {
		if _, err := a.init(); err != nil {
			return err
		}
		if len(plan.Commits) > 0 {
			head, err := store.Fill(a.actor(w), a.now, plan.Commits)
			if err != nil {
				return err
			}
			j.Head = hex.EncodeToString(head.Hash[:])
		}
	}
	if err := a.printImport(j, file); err != nil && !dryRun {
		return fmt.Errorf("board %s: the cards are recorded, but: %w", a.slug, err)
	} else if err != nil {
		return err
	}
	return nil
}

func (a *app) imported(file *importFile, plan *projection.Import) *importJSON {
	j := &importJSON{
		Board: a.slug, Path: a.boardDir, Cards: len(file.cards), Comments: file.comments, ByStatus: map[string]int{}, Changed: []importChanged{},
		Dropped: importDropped{file.runs, file.events, len(file.claims)}, Commits: len(plan.Commits),
	}
	for i, c := range plan.Cards {
		j.ByStatus[c.Status]++
		if c.Note != "" {
			j.Changed = append(j.Changed, importChanged{file.cards[i].ID, file.cards[i].Status, c.Status, c.Note})
		}
	}
	return j
}

// changedShown is how many changed cards are named one by one.
const changedShown = 10

func (a *app) printImport(j *importJSON, file *importFile) error {
	said := map[string]bool{}
	for _, c := range file.cards {
		if over := c.Status == projection.Done || c.Status == projection.Archived; !over && !said[c.Assignee] {
			said[c.Assignee] = true
			a.warnNoProfile(c.Assignee)
		}
	}
	if n := j.Dropped.Claims; n > 0 {
		a.warn("%s running where they come from (%s); here nobody has begun them, and a dispatch may start them", plural(n, "card was", "cards were"), some(file.claims, changedShown))
	}
	if a.asJSON {
		return a.json(j)
	}
	for i, c := range j.Changed {
		if i == changedShown {
			a.warn("... and %d more cards; --json names all", len(j.Changed)-i)
			break
		}
		what := c.From + " -> " + c.To
		if c.From == c.To {
			what = "not kept"
		}
		a.warn("%s: %s: %s", c.Task, what, c.Why)
	}
	if d := j.Dropped; d.Runs+d.Events > 0 {
		a.warn("not kept: %s, %s and their times", plural(d.Runs, "run", "runs"), plural(d.Events, "event", "events"))
	}
	var parts []string
	for _, s := range projection.Statuses {
		if n := j.ByStatus[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	done := "imported"
	if j.DryRun {
		done = "would import"
	}
	by := ""
	if len(parts) > 0 {
		by = " (" + strings.Join(parts, ", ") + ")"
	}
	return a.printf("%s %s%s and %s into board %s: %s\n", done, plural(j.Cards, "card", "cards"), by, plural(j.Comments, "comment", "comments"), j.Board, j.Path)
}
