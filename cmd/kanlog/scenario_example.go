package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kanlog/tick"
)

// exampleLimit is up to which failure limit the example goes through all attempts.
const exampleLimit = 8

// exampleScenario is a scenario file that passes by these settings, for the first
// profile.
func exampleScenario(set *settings) string {
	names := slices.Sorted(maps.Keys(set.policy.Profiles))
	p := tick.Profile{Name: "coder"}
	if len(names) > 0 {
		p = set.policy.Profiles[names[0]]
	}
	who := p.Name
	if !madeOf(who, lowercase+"-_0123456789") {
		who = "'" + strings.ReplaceAll(who, "'", "''") + "'"
	}
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	limit := set.policy.Limits.FailureLimit
	if limit > exampleLimit {
		limit = 3
		say("# Your failure_limit is %d; a lower one makes this file shorter.", set.policy.Limits.FailureLimit)
		say("env KANLOG_FAILURE_LIMIT=%d\n", limit)
	}
	say("# A worker that crashes each time: the card is tried %d times (failure_limit) and", limit)
	say("# then held for a person.")
	say("worker %s exit 1", who)
	say("kanlog create 'crashes' --assignee %s", who)
	say("capture CARD\nsettle")
	for range limit - 1 {
		say("status $CARD ready\nclock +24h\nsettle")
	}
	say("status $CARD blocked")
	say("outcome $CARD%s\n", strings.Repeat(" crashed", int(limit)))

	say("# Exit 75 says try later and never counts: the card is tried again and done.")
	say("worker %s exit 75, complete 'all well'", who)
	say("kanlog create 'comes back' --assignee %s", who)
	say("capture CARD\nsettle\nstatus $CARD ready\nclock +24h\nsettle\nstatus $CARD done")
	say("outcome $CARD rate_limited completed")

	if p.MaxRuntime > 0 {
		say("\n# A worker that hangs is ended when its max_runtime is over, and the card tried again.")
		say("worker %s hang, complete", who)
		say("kanlog create 'hangs' --assignee %s", who)
		say("capture CARD\nkanlog dispatch\nstatus $CARD running")
		say("clock +%s\nsettle\nclock +24h\nsettle", (p.MaxRuntime + time.Minute).Round(time.Second))
		say("status $CARD done\noutcome $CARD timed_out completed")
	}
	if len(names) == 0 {
		say("\n-- home/config.toml --")
		say("# You have no profiles: a scenario may bring settings of its own, like this.")
		say("[profiles.coder]\ncommand = [\"./agent.sh\", \"{task}\"]")
	}
	return b.String()
}
