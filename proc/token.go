package proc

import "strings"

// NewToken returns the token of one start of a run, "<board>/<run>/<mark>". The
// mark is drawn anew for each start: a copy of a board has its id and counts its
// runs alike, and what the one started must be a stranger to the other, or a tick
// of the one would end the workers of the other.
func NewToken(board, run, mark string) string { return board + "/" + run + "/" + mark }

// runOf returns the run that a token of the board is of. One of an older program
// has no mark.
func runOf(token, board string) (run string, ours bool) {
	rest, ours := strings.CutPrefix(token, board+"/")
	run, _, _ = strings.Cut(rest, "/")
	return run, ours
}

// isStartOf reports whether a token is want, or, if want is "<board>/<run>", that
// of any start of this run.
func isStartOf(token, want string) bool {
	return token == want || strings.Count(want, "/") == 1 && strings.HasPrefix(token, want+"/")
}
