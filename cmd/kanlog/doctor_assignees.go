package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"kanlog/projection"
)

// checkAssignees finds ready cards that no dispatch will ever start: an assignee
// without a profile is most often a typing mistake.
func (d *doctor) checkAssignees() ([]finding, error) {
	stranded, reviews := map[string][]string{}, map[string][]string{}
	err := d.view(func(v projection.View) error {
		add := func(t *projection.Task) bool {
			stranded[t.Assignee] = append(stranded[t.Assignee], t.ID)
			return true
		}
		for _, name := range v.ReadyAssignees() {
			if _, known := d.set.policy.Profiles[name]; known {
				continue
			}
			if err := v.Ready(name, add); err != nil {
				return err
			}
		}
		for _, name := range v.Reviewers() {
			if _, known := d.set.policy.Profiles[name]; known {
				continue
			}
			err := v.InReview(name, func(t *projection.Task) bool {
				reviews[name] = append(reviews[name], t.ID)
				return true
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var list []finding
	for name, ids := range stranded {
		list = append(list, d.strandedFinding(name, ids))
	}
	for name, ids := range reviews {
		list = append(list, found(sevWarning, name,
			fmt.Sprintf("%s for the reviewer %q, who has no profile: %s", plural(len(ids), "review", "reviews"), name, some(ids, maxFindings)),
			"no dispatch ever starts them; with --reviewer none a person reviews them", d.run("edit", ids[0])+" --reviewer none"))
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Message < list[j].Message })
	return list, nil
}

func (d *doctor) strandedFinding(name string, ids []string) finding {
	var profiles []string
	for p := range d.set.policy.Profiles {
		profiles = append(profiles, p)
	}
	to := nearest(name, profiles)
	cards := plural(len(ids), "ready card", "ready cards")
	if name == "" {
		who := `"${PROFILE:?set PROFILE to one of the settings}"`
		if len(profiles) == 1 {
			who = shellWord(profiles[0])
		}
		return found(sevNote, "", fmt.Sprintf("nobody is assigned to %s: %s", cards, some(ids, maxFindings)),
			"a dispatch starts cards of assignees with a profile only", d.assign(ids, who))
	}
	const why = "no dispatch ever starts them; only somebody who pulls them (kanlog work) or claims them by hand would"
	message := fmt.Sprintf("%s for %q, which has no profile: %s", cards, name, some(ids, maxFindings))
	if to == "" {
		return found(sevWarning, name, message, why+". The command below makes a profile whose program you have to write", d.addProfile(name))
	}
	return found(sevWarning, name, message+"; there is a profile "+to, why, d.assign(ids, shellWord(to)))
}

// assign gives cards to a profile, a word of the shell.
func (d *doctor) assign(ids []string, to string) string {
	var lines []string
	for _, id := range ids[:min(len(ids), maxFindings)] {
		lines = append(lines, d.run("assign", id)+" "+to)
	}
	return strings.Join(lines, " && ")
}

// addProfile appends a profile to the home's settings.
func (d *doctor) addProfile(name string) string {
	key, script := projection.TOMLKey(name), "./"+name
	if key != name {
		script = "./worker"
	}
	key = strings.NewReplacer(`\`, `\\`, "%", "%%").Replace(key)
	format := fmt.Sprintf(`\n[profiles.%s]\ncommand = ["%s", "{task}"]\n`, key, script)
	return "printf " + shellWord(format) + " >>" + shellWord(filepath.Join(d.a.home, settingsName))
}

// nearest is the name that the one given may be a mistyped form of, the least
// unlike of several, "" if none is.
func nearest(name string, names []string) string {
	slices.Sort(names)
	best := ""
	for _, n := range names {
		if name != "" && alikeNames(name, n) && (best == "" || distance(name, n) < distance(name, best)) {
			best = n
		}
	}
	return best
}

// alikeNames tells whether one may be a mistyped other.
func alikeNames(a, b string) bool {
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) || distance(a, b) <= 2 && distance(a, b) < len(b)
}

// distance counts the letters to insert, delete or change from a to b, whatever
// their case (Levenshtein).
func distance(a, b string) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		corner := row[0]
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			corner, row[j+1] = row[j+1], min(corner+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(y)]
}
