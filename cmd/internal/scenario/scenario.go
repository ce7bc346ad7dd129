// Package scenario holds what kanlog and kanlog-scenario, which runs scenario files,
// have to agree on: the commands that a file may use, what a scripted worker may do,
// and what passes between the two programs. It may import nothing that costs a start
// of kanlog anything; what runs the files is in the package below.
package scenario

import "time"

// Runner is the program that runs scenario files. It is one of its own, since what it
// is made of (a query language, a script engine) would make every short call of
// kanlog a fifth slower, by its mere presence.
const Runner = "kanlog-scenario"

// Job is what kanlog tells the runner, as JSON in its one argument.
type Job struct {
	Program  string        `json:"program"` // the kanlog under test
	Files    []string      `json:"files"`
	Settings Settings      `json:"settings"`
	Verbose  bool          `json:"verbose"`
	Keep     bool          `json:"keep"`
	Timeout  time.Duration `json:"timeout"`
}

// Settings are files that were read and found good, "" for none. Board is put over
// Home.
type Settings struct {
	Home  string `json:"home"`
	Board string `json:"board"`
}

// Result is what the runner says of a file, in one line of JSON.
type Result struct {
	File    string   `json:"file"`
	Name    string   `json:"name"`
	OK      bool     `json:"ok"`
	Skipped bool     `json:"skipped"`
	Seconds float64  `json:"seconds"`
	Line    int      `json:"line"`    // where it failed, 0 if that is no line
	Text    string   `json:"text"`    // of that line
	Message string   `json:"message"` // why it failed
	Log     string   `json:"log"`     // what was done since the last comment of the file
	Events  []string `json:"events"`  // the last ones of its boards, before its end
	Work    string   `json:"work"`    // its directory, if that was kept
}

// Word is a command of scenario files.
type Word struct{ Name, Usage, Help string }

// Words are the commands beside those of the script language. A [!] may be negated.
var Words = []Word{
	{"kanlog", "[!] kanlog VERB...", "any verb; with ! it has to fail"},
	{"worker", "worker PROFILE BEHAVIOUR[, BEHAVIOUR]...", "what stands in for its command: a behaviour for each attempt at a card, the last for all others"},
	{"clock", "clock +2h", "move the clock of all that follows, on or back (-30m)"},
	{"settle", "settle", "ticks until nothing runs and nothing more can start by now"},
	{"drain", "drain [EXPR]", "ticks until every card is done, or until a query on list --json is true"},
	{"await", "await EXPR CMD...", "repeat a command until a query on its stdout is true"},
	{"status", "[!] status ID STATUS...", "the card is in this status (or one of these)"},
	{"outcome", "[!] outcome ID OUTCOME...", "the card's runs ended like this, the first one first; open is one that runs"},
	{"capture", "capture NAME [EXPR]", "put the last stdout, or a query on it, into $NAME"},
	{"jq", "[!] jq EXPR [WANT]", "a jq query on the last stdout gives WANT, or true; several values are queried as one array"},
	{"code", "code N CMD...", "the command exits with N; its output is in code.out and code.err"},
	{"parallel", "parallel N CMD...", "N copies at once ({i} is the copy's number); exit codes in parallel.codes, output in parallel.out"},
	{"waitgone", "waitgone PID", "wait until a process is gone"},
}
