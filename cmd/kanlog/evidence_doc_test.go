package main

import (
	"slices"
	"strings"
	"testing"

	"kanlog/proc"
	"kanlog/tick"
)

// What package proc finds reaches the dispatcher as docs/evidence.md says.
func TestEvidenceIsPassedOnAsDocumented(t *testing.T) {
	section := docSection(t, readDoc(t, "docs/evidence.md"), "## What is seen")
	judged := map[string]int{}
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 5 || cells[0] == "Evidence" || cells[0] == "---" {
			continue
		}
		answer, flags, _ := strings.Cut(cells[2], ", ")
		has := func(flag string) bool { return slices.Contains(strings.Split(flags, ", "), flag) }
		e := evidenceOf(proc.Evidence{
			Answer: proc.Answer(answer), Why: cells[4],
			OtherBoot: has("other boot"), Foreign: has("foreign"), LockUnknown: has("lock unknown"),
		})
		words := string(e.Answer)
		if e.OtherBoot {
			words += ", interrupted"
		}
		if e.Unprovable {
			words += ", unprovable"
		}
		if words != cells[3] || e.Why != cells[4] {
			t.Errorf("%s: passed on as %q, %q", cells[0], words, e.Why)
		}
		judged[words]++
	}
	for _, a := range []tick.Answer{tick.Alive, tick.Orphaned, tick.Dead, tick.Held} {
		if judged[string(a)] == 0 {
			t.Errorf("docs/evidence.md shows nothing that is %s", a)
		}
	}
}
