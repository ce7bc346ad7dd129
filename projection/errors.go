package projection

import (
	"errors"
	"fmt"
)

// Why a decision was refused. Callers match with errors.Is; the program maps
// each to an exit code. When one is returned nothing of the card changed.
var (
	// ErrNotFound: no such card or run.
	ErrNotFound = errors.New("not found")
	// ErrState: the card's state or a rule says no.
	ErrState = errors.New("refused")
	// ErrFenced: the writer's run is not the card's open run.
	ErrFenced = errors.New("fenced")
	// ErrInvalid: the input itself is wrong, whatever the board holds.
	ErrInvalid = errors.New("invalid")
	// ErrInconsistent: a log that no decider of ours could have written.
	ErrInconsistent = errors.New("inconsistent log")
)

// refusal is an error of one of the kinds above with its words.
type refusal struct {
	kind error
	text string
}

func (r *refusal) Error() string        { return r.text }
func (r *refusal) Is(target error) bool { return target == r.kind }

func invalid(format string, args ...any) error {
	return &refusal{ErrInvalid, fmt.Sprintf(format, args...)}
}

// noSuchCard has the words with which every verb answers an id that is not there.
func noSuchCard(id string) error {
	return &refusal{ErrNotFound, fmt.Sprintf("no such card: %q (kanlog list shows all)", id)}
}

// refuse names the card once, here, so that no caller wraps it again.
func refuse(kind error, task, format string, args ...any) error {
	return &refusal{kind, "task " + task + ": " + fmt.Sprintf(format, args...)}
}

func inconsistent(format string, args ...any) error {
	return &refusal{ErrInconsistent, fmt.Sprintf(format, args...)}
}
