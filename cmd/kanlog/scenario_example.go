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

	// Longer than anything holds a card or a profile back by itself.
	wait := 24 * time.Hour
	for l := set.policy.Limits; wait < 2*max(l.RetryBackoff, l.MaxBackoff, l.RateLimitCooldown, set.policy.Breaker.Pause, set.policy.Breaker.Most); {
		wait *= 2
	}
	later := fmt.Sprintf("clock +%dh", wait/time.Hour)

	// Without a back-off the next attempt begins at once.
	between := func(backOff time.Duration) string {
		if backOff == 0 {
			return later + "\nsettle"
		}
		return "status $CARD ready\n" + later + "\nsettle"
	}

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
		say("%s", between(set.policy.Limits.RetryBackoff))
	}
	say("status $CARD blocked")
	say("outcome $CARD%s\n", strings.Repeat(" crashed", int(limit)))

	say("# Exit 75 says try later and never counts: the card is tried again and done.")
	say("%s\nworker %s exit 75, complete 'all well'", later, who)
	say("kanlog create 'comes back' --assignee %s", who)
	say("capture CARD\nsettle\n%s\nstatus $CARD done", between(set.policy.Limits.RateLimitCooldown))
	say("outcome $CARD rate_limited completed")

	if p.MaxRuntime > 0 {
		say("\n# A worker that hangs is ended when its max_runtime is over, which counts as a failure.")
		say("worker %s hang, complete", who)
		say("kanlog create 'hangs' --assignee %s", who)
		say("capture CARD\nkanlog dispatch\nstatus $CARD running")
		say("clock +%s\nsettle\n%s\nsettle", (p.MaxRuntime + time.Minute).Round(time.Second), later)
		if limit == 1 {
			say("status $CARD blocked\noutcome $CARD timed_out")
		} else {
			say("status $CARD done\noutcome $CARD timed_out completed")
		}
	}
	if len(names) == 0 {
		say("\n-- home/config.toml --")
		say("# You have no profiles: a scenario may bring settings of its own, like this.")
		say("[profiles.coder]\ncommand = [\"./agent.sh\", \"{task}\"]")
	}
	return b.String()
}
