package projection

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"kanlog/eventlog"
)

// Noted is the end of a log as somebody wrote it down: a log that contains it has
// every commit that it had then, unchanged, since each hash covers all before it.
type Noted struct {
	// Commit is the number that was noted with the hash, or that of the commit
	// which has it; Hash the hash or its beginning, hex.
	Commit uint64 `json:"commit"`
	Hash   string `json:"hash"`
	// Found: the log contains it. Since is how many commits came after it.
	Found bool   `json:"found"`
	Since uint64 `json:"since"`

	numbered bool   // Commit was given
	there    string // the hash of commit number Commit, if that was given
}

// minNoted is how much of a hash must be given: 48 bits are met by chance in no
// log that there will ever be.
const minNoted = 12

// ParseNoted reads HASH or COMMIT:HASH; the hash may be cut to its beginning, and
// what stands behind it, as kanlog head prints it, is passed over.
func ParseNoted(text string) (*Noted, error) {
	wrong := invalid("%q is no head: HASH or COMMIT:HASH is, with at least %d hex digits of the hash, as kanlog head prints it", text, minNoted)
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil, wrong
	}
	n := &Noted{Hash: strings.ToLower(fields[0])}
	if number, hash, both := strings.Cut(n.Hash, ":"); both {
		var err error
		if n.Commit, err = strconv.ParseUint(number, 10, 53); err != nil {
			return nil, wrong
		}
		n.Hash, n.numbered = hash, true
	}
	if len(n.Hash) < minNoted || len(n.Hash) > 64 || strings.Trim(n.Hash, "0123456789abcdef") != "" {
		return nil, wrong
	}
	return n, nil
}

// see is told of each commit, and of the beginning, in order.
func (n *Noted) see(at eventlog.Head) {
	hash := hex.EncodeToString(at.Hash[:])
	if n.numbered && at.Commit == n.Commit {
		n.there = hash
	}
	switch {
	case n.Found:
		n.Since++
	case strings.HasPrefix(hash, n.Hash) && (!n.numbered || at.Commit == n.Commit):
		n.Found, n.Commit = true, at.Commit
	}
}

// missing says in words that a log of so many commits does not contain it, "" if it
// does.
func (n *Noted) missing(commits uint64) string {
	const why = "it was cut back, rewritten, or is the log of another board"
	switch {
	case n.Found:
		return ""
	case n.numbered && n.Commit > commits:
		return fmt.Sprintf("the log ends with commit %d and does not contain commit %d with hash %s, which was noted: %s", commits, n.Commit, n.Hash, why)
	case n.numbered:
		return fmt.Sprintf("commit %d has hash %.16s, and %.16s was noted: the log was rewritten at this commit or before it, or is that of another board", n.Commit, n.there, n.Hash)
	}
	return fmt.Sprintf("the log (commits 1 to %d) contains no commit with hash %s: %s", commits, n.Hash, why)
}
