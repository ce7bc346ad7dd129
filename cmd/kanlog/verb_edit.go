package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
	"kanlog/projection"
)

func editCmd(a *app) *cobra.Command {
	var title, body, bodyFile, tenant, notBefore, result, reviewer string
	var tags []string
	var priority, retries int64
	var maxRuntime ownRuntime
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Change what a card asks for",
		Long: `edit changes the fields that are given and leaves the others. A run that goes on
has read the card already; the next one sees the change.`,
		Example: `  kanlog edit t_1a2b --title "fix the build on arm" --priority 5
  kanlog edit t_1a2b --not-before 2h
  kanlog edit t_1a2b --max-runtime profile        # the limit of its profile again
  kanlog edit t_1a2b --tag urgent --tag arm       # these tags and no others; --tag none: no tags`,
		Args: exactly(1, "one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			var c projection.Changes
			if given("title") {
				c.Title = &title
			}
			if given("body") || given("body-file") {
				text, err := bodyOf(given("body"), body, given("body-file"), bodyFile)
				if err != nil {
					return err
				}
				c.Body = &text
			}
			if given("priority") {
				c.Priority = &priority
			}
			if given("tenant") {
				tenant = noneIsEmpty(tenant)
				c.Tenant = &tenant
			}
			if given("tag") {
				if len(tags) == 1 {
					if tags[0] = noneIsEmpty(tags[0]); tags[0] == "" {
						tags = nil
					}
				}
				c.Tags = &tags
			}
			if given("max-retries") {
				if retries < 0 {
					return usage("--max-retries %d: at least 1, or 0 for the settings'", retries)
				}
				c.MaxRetries = &retries
			}
			if given("max-runtime") {
				c.MaxRuntime = &maxRuntime.limit
			}
			if given("not-before") {
				var at eventlog.Time
				if strings.TrimSpace(notBefore) != "none" {
					var err error
					if at, err = a.parseMoment(notBefore); err != nil {
						return usage("--not-before %v", err)
					}
				}
				c.NotBefore = &at
			}
			if given("result") {
				c.Result = &result
			}
			if given("reviewer") {
				reviewer = noneIsEmpty(reviewer)
				c.Reviewer = &reviewer
			}
			set, err := a.settings()
			if err != nil {
				return err
			}
			err = a.decide(args[0], "edit", "edited", func(id string, w projection.Writer) projection.Decider {
				return projection.Edit(id, c, set.policy.Limits, w)
			})
			if err == nil {
				a.warnNoProfile(reviewer)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&title, "title", "", "the title")
	f.StringVar(&body, "body", "", "what is to be done, in full; empty for none")
	f.StringVar(&bodyFile, "body-file", "", "read the body from a file, - for stdin")
	f.Var(&number[int64]{&priority}, "priority", "higher is started first")
	f.StringVar(&tenant, "tenant", "", "the tenant, none for none")
	f.StringArrayVar(&tags, "tag", nil, "the tags, all of them (repeatable), none for none")
	f.Var(&maxRuntime, "max-runtime", "end a run after this long (0: never, whatever the profile says; profile: when that says)")
	f.Var(&number[int64]{&retries}, "max-retries", "failed attempts before the card is blocked, 0 for the settings'")
	f.StringVar(&notBefore, "not-before", "", "do not start before this moment (RFC 3339) or time from now (2h); none for at once")
	f.StringVar(&reviewer, "reviewer", "", "the profile that reviews it, none for a person")
	f.StringVar(&result, "result", "", "the result of a card that is done")
	return cmd
}

// profilesRuntime is the word that gives a card the limit of its profile again. none
// would read as no limit, which is 0.
const profilesRuntime = "profile"

// ownRuntime is a limit of a card's own as edit takes it.
type ownRuntime struct {
	duration
	limit time.Duration
}

func (o *ownRuntime) Set(text string) error {
	if text == profilesRuntime {
		o.limit = 0
		return nil
	}
	if err := o.duration.Set(text); err != nil {
		return fmt.Errorf("%w, or %s for the limit of its profile", err, profilesRuntime)
	}
	o.limit = limitGiven(o.std())
	return nil
}

// noneIsEmpty reads the word with which a value is taken away.
func noneIsEmpty(s string) string {
	if s == "none" {
		return ""
	}
	return s
}
