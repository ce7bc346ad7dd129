package main

import (
	"fmt"
	"strings"
	"testing"

	"kanlog/tick"
)

// What a tick says fits on a screen however much happened, and says nothing of what
// did not.
func TestReportText(t *testing.T) {
	many := func(n int) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprintf("t_%02d", i))
		}
		return ids
	}
	for name, c := range map[string]struct {
		rep  tick.Report
		want string
	}{
		"nothing": {tick.Report{}, "nothing to do"},
		"one of each": {tick.Report{Crashed: many(1), AutoBlocked: many(1), Spawned: []tick.Spawned{{Task: "t_1", Run: 9, Assignee: "coder", PID: 77}}},
			"crashed: t_00|blocked: t_00|started: t_1 run 9 (coder, pid 77)"},
		"as many as are named": {tick.Report{Promoted: many(7)}, "promoted: t_00 t_01 t_02 t_03 t_04 t_05 t_06"},
		"more than are named":  {tick.Report{Promoted: many(20)}, "promoted: t_00 t_01 t_02 t_03 t_04 t_05 and 14 more"},
		"several started": {tick.Report{Spawned: []tick.Spawned{{Task: "t_1", Assignee: "coder"}, {Task: "t_2", Run: 8, Assignee: "writer", PID: 7}, {Task: "t_3", Assignee: "coder"}}},
			"started: t_1 t_3 (coder)|started: t_2 run 8 (writer, pid 7)"},
		"a dry run":               {tick.Report{DryRun: true, Promoted: many(1), Spawned: []tick.Spawned{{Task: "t_1", Assignee: "coder"}}}, "would be promoted: t_00|would be started: t_1 (coder)"},
		"a claim that ran out":    {tick.Report{Reclaimed: []string{"t_1", "t_2"}, Expired: []string{"t_2"}}, "reclaimed: t_1|claim by hand ran out, held for a person (kanlog unblock ID): t_2"},
		"nothing but such claims": {tick.Report{Reclaimed: []string{"t_2"}, Expired: []string{"t_2"}}, "claim by hand ran out, held for a person (kanlog unblock ID): t_2"},
		"what is over":            {tick.Report{Waiting: []tick.Waiting{{Task: "t_1", Reason: "done"}}, NotWaiting: []tick.Waiting{{Task: "t_1", Reason: "done"}}}, "nothing to start: t_1 is done"},
		"one reason for several": {tick.Report{Waiting: []tick.Waiting{{Task: "t_1", Reason: "cap"}, {Task: "t_2", Reason: "held"}, {Task: "t_3", Reason: "cap"}}},
			"waits: t_1 t_3: cap|waits: t_2: held"},
		"a reason that names its card": {tick.Report{Waiting: []tick.Waiting{{Task: "t_1", Reason: "kanlog assign t_1 P"}}}, "waits: t_1: kanlog assign t_1 P"},
		"and of several their place":   {tick.Report{Waiting: []tick.Waiting{{Task: "t_1", Reason: "kanlog assign t_1 P"}, {Task: "t_2", Reason: "kanlog assign t_2 P"}}}, "waits: t_1 t_2: kanlog assign ID P"},
		"one error of several starts": {tick.Report{SpawnFailed: []tick.SpawnFailed{{Task: "t_1", Run: 4, Error: "agent: not found\n"}, {Task: "t_2", Run: 5, Error: "agent: not found\n"}}},
			"not started: t_1 t_2: agent: not found\\u000a"},
		"another tick": {tick.Report{SkippedLocked: true}, "another dispatch is at work on this board; nothing done"},
	} {
		if got := strings.ReplaceAll(strings.TrimSuffix(reportText(&c.rep), "\n"), "\n", "|"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	var rep tick.Report
	for _, id := range many(40) {
		rep.Waiting = append(rep.Waiting, tick.Waiting{Task: id, Reason: "because of " + id + "!" + id[2:]})
	}
	text := reportText(&rep)
	if lines := strings.Count(text, "\n"); lines != reportReasons+1 || !strings.Contains(text, "waits: 30 more, for other reasons") {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}
