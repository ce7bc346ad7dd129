package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpText is the help of a verb: what it does, examples, and only then what can
// be varied. Most who ask want a line to copy.
func helpText(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	fmt.Fprintln(&b, strings.TrimSpace(orDash(cmd.Long, cmd.Short)))
	section := func(head, text string) {
		if text = strings.TrimRight(text, " \n"); text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s\n", head, text)
		}
	}
	section("Examples", cmd.Example)
	usage := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		usage = cmd.CommandPath() + " VERB [flags]"
	}
	section("Usage", "  "+usage)
	section("Verbs", verbList(cmd))
	section("Flags", flagList(cmd.LocalFlags()))
	section("Flags of every verb", flagList(cmd.InheritedFlags()))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s VERB --help says more of one.\n", cmd.CommandPath())
	}
	fmt.Fprint(cmd.OutOrStdout(), b.String())
}

// flagList leaves out what the library says behind each flag that is on or off.
func flagList(flags *pflag.FlagSet) string {
	const onOff = "[=true|false]"
	return strings.ReplaceAll(flags.FlagUsages(), onOff, strings.Repeat(" ", len(onOff)))
}

func verbList(cmd *cobra.Command) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(&b, "  %-*s  %s\n", c.NamePadding(), c.Name(), c.Short)
		}
	}
	return b.String()
}
