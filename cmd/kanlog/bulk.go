package main

import (
	"fmt"

	"kanlog/projection"
)

// Verbs that take several ids: each card is a decision of its own, so that one
// that is refused holds up no other.

// doneJSON is what a verb did to one card.
type doneJSON struct {
	Task    string `json:"task"`
	Done    any    `json:"done"`
	Changed bool   `json:"changed"`
	Seq     any    `json:"seq"`
}

// outcome is doneJSON among others, where one may be refused.
type outcome struct {
	doneJSON
	Error any `json:"error"`
	Code  int `json:"code"`
}

// said prints what was done to a card, or keeps it for the array of all.
func (a *app) said(j doneJSON) error {
	if a.each != nil {
		a.each.doneJSON = j
		return nil
	}
	return a.json(j)
}

// bulk tries every card, each once however often it is named, and returns the
// highest exit code met. With --json it prints one array in the order given; a
// single id keeps its object, and its error.
func (a *app) bulk(ids []string, do func(id string) error) error {
	switch {
	case len(ids) == 1:
		return do(ids[0])
	case len(ids) > projection.MaxBulk:
		return usage("%d ids; at most %d are taken in one call", len(ids), projection.MaxBulk)
	}
	cards, err := a.resolveAll(ids)
	if err != nil {
		return err
	}
	outcomes, worst := []outcome{}, 0
	for _, c := range cards {
		o := outcome{doneJSON: doneJSON{Task: c.id}}
		if a.asJSON {
			a.each = &o
		}
		err := c.err
		if err == nil {
			err = do(c.id)
		}
		a.each = nil
		if err != nil {
			a.warn("%v", err)
			o.Error, o.Code = err.Error(), exitCode(err)
			worst = max(worst, o.Code)
		}
		outcomes = append(outcomes, o)
	}
	if a.asJSON {
		if err := a.json(outcomes); err != nil {
			return fmt.Errorf("the cards were tried, and what could be done is recorded, but: %w", err)
		}
	}
	if worst != 0 {
		return &codedError{worst}
	}
	return nil
}

// resolved is a card as it was named: its id, or what is wrong with the name.
type resolved struct {
	id  string
	err error
}

// resolveAll is resolve for several names, in one look at the board; a card that
// is named twice is there once.
func (a *app) resolveAll(prefixes []string) (cards []resolved, err error) {
	err = a.view(func(v projection.View) error {
		seen := map[string]bool{}
		for _, prefix := range prefixes {
			id, err := v.Resolve(prefix)
			if err != nil {
				id = prefix
			}
			if !seen[id] {
				seen[id] = true
				cards = append(cards, resolved{id, err})
			}
		}
		return nil
	})
	return cards, err
}
