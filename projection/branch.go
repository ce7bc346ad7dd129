package projection

import "strings"

// checkBranch refuses a name that git takes for no branch (git check-ref-format
// --branch): the card would be on the board, and each of its starts would fail.
func checkBranch(s string) error {
	if err := checkName("the branch", s); err != nil || s == "" || branchName(s) {
		return err
	}
	return invalid(`the branch %q is no name that git takes: it holds no blanks, control characters, ~ ^ : ? * [ \ .. // or @{, begins with neither - nor /, ends with neither / nor ., none of its parts between slashes begins with . or ends with .lock, and it is neither @ nor HEAD`, s)
}

func branchName(s string) bool {
	switch {
	case s == "" || s == "@" || s == "HEAD":
		return false
	case s[0] == '-' || strings.HasSuffix(s, "."):
		return false
	case strings.Contains(s, "..") || strings.Contains(s, "@{"):
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f || strings.IndexByte(`~^:?*[\`, s[i]) >= 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}
