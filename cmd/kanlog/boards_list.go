package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kanlog/eventlog"
	"kanlog/projection"
)

// boardJSON is one board of a home.
type boardJSON struct {
	Slug       string        `json:"slug"`
	Path       string        `json:"path"`
	Current    bool          `json:"current"`
	Archived   bool          `json:"archived"`
	ArchivedAt eventlog.Time `json:"archived_at"`
	// Counts are cards by status, each status named; nil with Error.
	Counts map[string]int64 `json:"counts"`
	Total  any              `json:"total"`
	Error  any              `json:"error"`
}

// listBoards looks at every board of the home, whatever is wrong with one.
func (a *app) listBoards(archived bool) ([]*boardJSON, error) {
	list := []*boardJSON{}
	current, err := a.unnamed()
	if err != nil {
		a.warn("%v", err)
		current = ""
	}
	each := func(dir string, fill func(name string, b *boardJSON) error) error {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for boards: %w", err)
		}
		for _, e := range entries {
			b := &boardJSON{Path: filepath.Join(dir, e.Name())}
			there, err := holdsBoard(b.Path)
			if err == nil && !there {
				continue
			}
			if err == nil {
				err = fill(e.Name(), b)
			} else {
				b.Slug = e.Name()
			}
			if err == nil {
				err = a.countCards(b)
			}
			if err != nil {
				b.Counts, b.Total, b.Error = nil, nil, err.Error()
			}
			list = append(list, b)
		}
		return nil
	}
	found := false
	err = each(a.boardsDir(), func(name string, b *boardJSON) error {
		b.Slug, b.Current = name, name == current
		found = found || b.Current
		return eventlog.CheckSlug(name) // a copy that somebody made beside it
	})
	if len(list) > 0 && !found && current != "" {
		a.warnNotThere(current)
	}
	if err == nil && archived {
		err = each(a.archivedDir(), func(name string, b *boardJSON) error {
			b.Archived = true
			b.Slug, b.ArchivedAt = parseArchived(name)
			return nil
		})
	}
	return list, err
}

// countCards counts the cards of a board, each with the settings that are its own.
func (a *app) countCards(b *boardJSON) error {
	set, err := loadSettings(a.home, b.Path)
	if err != nil {
		return err
	}
	b.Counts = map[string]int64{}
	for _, s := range projection.Statuses {
		b.Counts[s] = 0
	}
	total := int64(0)
	store := projection.Open(b.Path, eventlog.Options{LockTimeout: set.lockTimeout, AllowNetwork: set.allowNetwork})
	err = store.EachCard(func(_ projection.View, t *projection.Task) error {
		b.Counts[t.Status]++
		total++
		return nil
	})
	b.Total = total
	return err
}

func (a *app) printBoards(list []*boardJSON, archived bool) error {
	if a.asJSON {
		return a.json(list)
	}
	if len(list) == 0 {
		a.warn("no boards here (kanlog init makes one)")
		return nil
	}
	return a.table(func(w io.Writer) {
		fmt.Fprintf(w, "\tBOARD\tOPEN\tRUNNING\tTOTAL\t")
		if archived {
			fmt.Fprintf(w, "ARCHIVED\t")
		}
		fmt.Fprintln(w, "WHERE")
		for _, b := range list {
			mark := ""
			if b.Current {
				mark = "*"
			}
			fmt.Fprintf(w, "%s\t%s\t", mark, cell(b.Slug))
			if b.Error == nil {
				open := b.Total.(int64) - b.Counts[projection.Done] - b.Counts[projection.Archived]
				fmt.Fprintf(w, "%d\t%d\t%d\t", open, b.Counts[projection.Running], b.Total)
			} else {
				fmt.Fprintf(w, "-\t-\t-\t")
			}
			if archived {
				fmt.Fprintf(w, "%s\t", a.age(b.ArchivedAt))
			}
			fmt.Fprint(w, cell(b.Path))
			if b.Error != nil {
				fmt.Fprintf(w, " (%s)", cell(b.Error.(string)))
			}
			fmt.Fprintln(w)
		}
	})
}
