package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// A group is a verb that has verbs of its own. Called alone it shows its help; a
// word behind it that is none of its verbs is a wrong call, and never help with
// exit 0: a script would take that for done.

// asGroup makes cmd a group.
func asGroup(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && cmd.Flags().Changed("json"):
			// Help is no JSON, and whoever asks for that wants no help.
			return usage("%s: which verb? (kanlog help%s)", cmd.CommandPath(), strings.TrimPrefix(cmd.CommandPath(), "kanlog"))
		case len(args) == 0:
			return cmd.Help()
		}
		return unknownVerb(cmd, args[0])
	}
}

// unknownVerb refuses a word that is no verb of a group, and names what would be.
func unknownVerb(group *cobra.Command, word string) error {
	where, help := "", "kanlog help"
	if group.HasParent() {
		where, help = verbOf(group)+": ", "kanlog help "+verbOf(group)
	}
	near := group.SuggestionsFor(word)
	switch {
	case len(near) > 0:
		return usage("%sunknown verb %q; did you mean %s? (%s lists all)", where, word, strings.Join(near, " or "), help)
	case group.HasParent():
		var names []string
		for _, c := range group.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		return usage("%sunknown verb %q; there are %s (%s)", where, word, words(names), help)
	}
	return usage("unknown verb %q (%s lists all)", word, help)
}

// words are names as a sentence lists them.
func words(names []string) string {
	if n := len(names); n > 1 {
		return fmt.Sprintf("%s and %s", strings.Join(names[:n-1], ", "), names[n-1])
	}
	return strings.Join(names, "")
}

// shellLines are how each shell takes what completes in it.
var shellLines = map[string]string{
	"bash":       "source <(kanlog completion bash)",
	"zsh":        "source <(kanlog completion zsh)",
	"fish":       "kanlog completion fish | source",
	"powershell": "kanlog completion powershell | Out-String | Invoke-Expression",
}

// addCompletionCmd adds the library's verb that prints scripts for shells, as a
// group among ours. No board is needed for it.
func addCompletionCmd(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Short = "Print what completes verbs, flags, ids and more in a shell"
		cmd.Long = `completion prints a script for a shell. With it the Tab key completes verbs, flags,
ids (with their titles), assignees, tags and boards. The shell asks kanlog for them
each time, which changes nothing.`
		cmd.Example = "  " + shellLines["bash"] + "\n  " + shellLines["fish"]
		cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
		asGroup(cmd)
		for _, shell := range cmd.Commands() {
			shell.Short = "Print what completes kanlog in " + shell.Name()
			shell.Example = "  " + shellLines[shell.Name()]
			shell.Args = exactly(0, "no arguments")
		}
	}
}
