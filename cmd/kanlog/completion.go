package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// placeWords are the words in a verb's usage line that stand for something: a new
// verb is completed by what its line says. Of ids it is a table that says which are
// offered, see offers. A FILE is what the shell itself completes best.
var placeWords = map[string]completer{
	"ID": cardIDs, "PARENT": cardIDs, "CHILD": cardIDs,
	"PROFILE": assignees,
	"SLUG":    boardNames, "OLD": boardNames,
	"VERB": verbNames,
}

// flagWords are the flags that name something, in whatever verb; with a verb before
// it that verb's. No other flag has words, and none but fileFlags files.
var flagWords = map[string]completer{
	"board":  boardNames,
	"parent": cardIDs, "dispatch --id": cardIDs, "export --task": cardIDs,
	"export --format": fixed(exportFormats...), "export --table": fixed(exportTables...),
	"status":   fixed(projection.Statuses...),
	"assignee": assignees, "reviewer": assignees,
	"tag":           ofCards(func(t *projection.Task) []string { return t.Tags }),
	"tenant":        ofCards(func(t *projection.Task) []string { return []string{t.Tenant} }),
	"workspace":     fixed(projection.Scratch, projection.Worktree, projection.Dir+":", projection.Shared+":"),
	"list --sort":   sortWords,
	"events --kind": fixed(strings.Fields(kindList())...),
	"block --kind":  fixed(projection.BlockKinds...),
	"on-clean-exit": fixed(projection.CleanViolation, projection.CleanComplete, projection.CleanReview),
}

var fileFlags = []string{"home", "body-file", "output", "settings"}

// addCompletions makes every verb answer a shell. Only a call that may be one pays.
func (a *app) addCompletions(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	a.completeFlags(root, root.PersistentFlags())
	// A directory: what the shell itself completes best.
	_ = root.MarkPersistentFlagDirname("home")
	var walk func(group *cobra.Command)
	walk = func(group *cobra.Command) {
		for _, cmd := range group.Commands() {
			if cmd.Name() == "completion" {
				continue // the library's own
			}
			if !slices.Contains(places(cmd), "FILE") {
				cmd.ValidArgsFunction = a.complete(cmd, func(b *completionBoard, typed string) []cobra.Completion {
					if words := placeWords[placeOf(cmd, len(b.given))]; words != nil {
						return words(b, typed)
					}
					return nil
				})
			}
			a.completeFlags(cmd, cmd.Flags())
			walk(cmd)
		}
	}
	walk(root)
}

func (a *app) completeFlags(cmd *cobra.Command, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" || slices.Contains(fileFlags, f.Name) {
			return
		}
		words := flagWords[verbOf(cmd)+" --"+f.Name]
		if words == nil {
			words = flagWords[f.Name]
		}
		if words == nil {
			words = fixed()
		}
		if f.Value.Type() == "stringSlice" {
			words = afterComma(words)
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, a.complete(cmd, func(b *completionBoard, typed string) []cobra.Completion {
			b.flag = f.Name
			return words(b, typed)
		}))
	})
}

// complete is a completer in the form that the library calls.
func (a *app) complete(cmd *cobra.Command, words completer) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const nothingElse = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if a.ambient() != nil {
			return nil, nothingElse
		}
		b := &completionBoard{app: a, cmd: cmd, given: args}
		// Without a board there are no cards; what boards there are, and words that
		// never change, are known all the same.
		if a.chooseBoard() == nil {
			b.store = projection.Open(a.boardDir, eventlog.Options{LockTimeout: completionWait / 2})
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionWait)
		defer cancel()
		found := make(chan []cobra.Completion, 1)
		go func() { found <- words(b, typed) }()
		select {
		case list := <-found:
			how := nothingElse
			if b.flag == "workspace" && slices.ContainsFunc(list, func(word string) bool { return strings.HasSuffix(word, ":") }) {
				how |= cobra.ShellCompDirectiveNoSpace // a path follows
			}
			return list[:min(len(list), completionWords)], how
		case <-ctx.Done():
			return nil, nothingElse
		}
	}
}

// places are the words of a verb's usage line.
func places(cmd *cobra.Command) (words []string) {
	for _, place := range strings.Fields(cmd.Use)[1:] {
		name, _, _ := strings.Cut(strings.TrimLeft(place, "["), "|")
		words = append(words, strings.TrimRight(name, "]."))
	}
	return words
}

// placeOf is the word for the argument behind n others, "" if there is none.
func placeOf(cmd *cobra.Command, n int) string {
	words := places(cmd)
	if last := len(words) - 1; last >= 0 && n > last && strings.Contains(cmd.Use, "...") {
		n = last
	}
	if n >= len(words) {
		return ""
	}
	return words[n]
}

// completionBoard is the board as a completion may look at it.
type completionBoard struct {
	app   *app
	cmd   *cobra.Command
	flag  string            // whose value is asked for, "" for an argument
	given []string          // the arguments before
	store *projection.Store // nil without a board
}

// cards are some cards whose ids begin with prefix and that are wanted (nil: all),
// what an index knows first. However big the board is, no more of it is looked at;
// of what is not seen more is seen when more of the id is typed.
func (b *completionBoard) cards(prefix string, wanted func(projection.View, *projection.Task) bool) (list []*projection.Task) {
	if b.store == nil {
		return nil
	}
	_ = b.store.Peek(func(v projection.View) error {
		some, err := v.SomeUnder(prefix, completionCards)
		for _, t := range some {
			if wanted == nil || wanted(v, t) {
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

// cardIDs are the ids that the verb would take, open cards first and the newest of
// them on top; a card that was named already is not offered again.
func cardIDs(b *completionBoard, typed string) (words []cobra.Completion) {
	cards := b.cards(typed, b.offered())
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
		for _, t := range b.cards("", nil) {
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
	for _, t := range b.cards("", nil) {
		have[t.Assignee] = true
	}
	return fixed(slices.Sorted(maps.Keys(have))...)(b, typed)
}

func boardNames(b *completionBoard, typed string) []cobra.Completion {
	names, _ := b.app.slugs()
	return fixed(names...)(b, typed)
}

// verbNames are the verbs of the group that the words before name.
func verbNames(b *completionBoard, typed string) (words []cobra.Completion) {
	group, rest, err := b.cmd.Root().Find(b.given)
	if err != nil || len(rest) > 0 {
		return nil
	}
	for _, c := range group.Commands() {
		if c.IsAvailableCommand() && strings.HasPrefix(c.Name(), typed) {
			words = append(words, described(c.Name(), c.Short))
		}
	}
	return words
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
