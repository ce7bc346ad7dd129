package main

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

// What a shell asks while somebody types must come at once, must change nothing,
// and must say nothing but words that fit: of whatever goes wrong the shell gets no
// words. Bounds: how long is waited in all, how many cards are looked at, and how
// many words are given.
const (
	completionWait  = 500 * time.Millisecond
	completionCards = 2000
	completionWords = 100
)

// completer gives the words for one place of a command line.
type completer func(b *completionBoard, typed string) []cobra.Completion

// idWords and assigneeWords are the words in a verb's usage line that stand for a
// card and for an assignee: a new verb is completed by what its line says.
var (
	idWords       = []string{"ID", "PARENT", "CHILD"}
	assigneeWords = []string{"PROFILE"}
)

// flagWords are the flags that name something of the board, in whatever verb.
var flagWords = map[string]completer{
	"id": cardIDs, "parent": cardIDs,
	"status":   fixed(projection.Statuses...),
	"assignee": assignees,
	"tag":      ofCards(func(t *projection.Task) []string { return t.Tags }),
	"tenant":   ofCards(func(t *projection.Task) []string { return []string{t.Tenant} }),
}

// addCompletions makes every verb answer a shell. Only a call that may be one pays.
func (a *app) addCompletions(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		cmd.ValidArgsFunction = a.complete(arguments(cmd))
		for name, words := range flagWords {
			a.completeFlag(cmd, name, words)
		}
		switch cmd.Name() {
		case "list":
			a.completeFlag(cmd, "sort", sortWords)
		case "events":
			a.completeFlag(cmd, "kind", fixed(strings.Fields(kindList())...))
		case "block":
			a.completeFlag(cmd, "kind", fixed(projection.BlockKinds...))
		}
	}
	a.completeFlag(root, "board", boardNames)
	// A directory: what the shell itself completes best.
	_ = root.MarkPersistentFlagDirname("home")
}

func (a *app) completeFlag(cmd *cobra.Command, name string, words completer) {
	f := cmd.Flags().Lookup(name)
	if f == nil {
		f = cmd.PersistentFlags().Lookup(name)
	}
	if f == nil {
		return
	}
	list := f.Value.Type() == "stringSlice"
	_ = cmd.RegisterFlagCompletionFunc(name, a.complete(func([]string) completer {
		if list {
			return afterComma(words)
		}
		return words
	}))
}

// complete is a completer in the form that the library calls.
func (a *app) complete(at func(args []string) completer) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const nothingElse = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		words := at(args)
		if words == nil || a.start() != nil {
			return nil, nothingElse
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionWait)
		defer cancel()
		found := make(chan []cobra.Completion, 1)
		go func() {
			b := &completionBoard{app: a, given: args, store: projection.Open(a.boardDir, eventlog.Options{LockTimeout: completionWait / 2})}
			found <- words(b, typed)
		}()
		select {
		case list := <-found:
			return list[:min(len(list), completionWords)], nothingElse
		case <-ctx.Done():
			return nil, nothingElse
		}
	}
}

// arguments says by a verb's usage line what stands at each place.
func arguments(cmd *cobra.Command) func(args []string) completer {
	places := strings.Fields(cmd.Use)[1:]
	return func(args []string) completer {
		i := len(args)
		if n := len(places); n > 0 && i >= n && strings.Contains(places[n-1], "...") {
			i = n - 1
		}
		if i >= len(places) {
			return nil
		}
		for word := range strings.FieldsFuncSeq(places[i], func(r rune) bool { return !(r >= 'A' && r <= 'Z') }) {
			switch {
			case slices.Contains(idWords, word):
				return cardIDs
			case slices.Contains(assigneeWords, word):
				return assignees
			}
		}
		return nil
	}
}

// completionBoard is the board as a completion may look at it.
type completionBoard struct {
	app   *app
	given []string // the arguments before
	store *projection.Store
}

// cards are some cards whose ids begin with prefix, what is at work first.
func (b *completionBoard) cards(prefix string) (list []*projection.Task) {
	_ = b.store.Peek(func(v projection.View) error {
		runs, err := v.Active()
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, r := range runs {
			if t, err := v.Task(r.Task); err == nil && t != nil && strings.HasPrefix(t.ID, prefix) && !seen[t.ID] {
				seen[t.ID] = true
				list = append(list, t)
			}
		}
		more, err := v.TasksUnder(prefix, completionCards)
		for _, t := range more {
			if !seen[t.ID] {
				list = append(list, t)
			}
		}
		return err
	})
	return list
}

// over tells whether nobody is likely to mean a card any more.
func over(t *projection.Task) int {
	return slices.Index([]string{projection.Done, projection.Archived}, t.Status) + 1
}

// cardIDs are ids, open cards first and the newest of them on top; a card that was
// named already is not offered again.
func cardIDs(b *completionBoard, typed string) (words []cobra.Completion) {
	cards := b.cards(typed)
	slices.SortStableFunc(cards, func(x, y *projection.Task) int {
		return cmp.Or(cmp.Compare(over(x), over(y)), cmp.Compare(y.CreatedSeq, x.CreatedSeq))
	})
	for _, t := range cards {
		if !slices.Contains(b.given, t.ID) {
			words = append(words, described(t.ID, t.Status+": "+t.Title))
		}
	}
	return words
}

// described is a word with what is said beside it. A tab or a line break in it
// would make words of its own.
func described(word, what string) cobra.Completion {
	return cobra.CompletionWithDesc(word, clean(what, false))
}

// ofCards are the words that cards have, each once.
func ofCards(of func(*projection.Task) []string) completer {
	return func(b *completionBoard, typed string) []cobra.Completion {
		have := map[string]bool{}
		for _, t := range b.cards("") {
			for _, word := range of(t) {
				have[word] = true
			}
		}
		return fixed(slices.Sorted(maps.Keys(have))...)(b, typed)
	}
}

// assignees are the profiles of the settings and who has cards.
func assignees(b *completionBoard, typed string) []cobra.Completion {
	have := map[string]bool{}
	if set, err := loadSettings(b.app.home, b.app.boardDir); err == nil {
		for name := range set.policy.Profiles {
			have[name] = true
		}
	}
	for _, t := range b.cards("") {
		have[t.Assignee] = true
	}
	return fixed(slices.Sorted(maps.Keys(have))...)(b, typed)
}

func boardNames(b *completionBoard, typed string) []cobra.Completion {
	var names []string
	entries, _ := os.ReadDir(filepath.Join(b.app.home, "boards"))
	for _, e := range entries {
		if e.IsDir() && eventlog.CheckSlug(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return fixed(names...)(b, typed)
}

func sortWords(b *completionBoard, typed string) []cobra.Completion {
	name, minus := strings.CutPrefix(typed, "-")
	words := fixed(strings.Split(sortNames, ", ")...)(b, name)
	for i := range words {
		if minus {
			words[i] = "-" + words[i]
		}
	}
	return words
}

// fixed are words that do not depend on the board. A word that the shell could not
// take as one, or that would do something to it, is left out.
func fixed(words ...string) completer {
	return func(_ *completionBoard, typed string) (fit []cobra.Completion) {
		for _, w := range words {
			if w != "" && strings.HasPrefix(w, typed) && clean(w, false) == w {
				fit = append(fit, w)
			}
		}
		return fit
	}
}

// afterComma completes the last of several words that are separated by commas.
func afterComma(words completer) completer {
	return func(b *completionBoard, typed string) []cobra.Completion {
		i := strings.LastIndexByte(typed, ',') + 1
		list := words(b, typed[i:])
		for n, w := range list {
			list[n] = typed[:i] + w
		}
		return list
	}
}
