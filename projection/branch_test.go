package projection

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// What git takes for a branch we take, and nothing else: git itself is asked too.
func TestBranchNames(t *testing.T) {
	for name, want := range map[string]bool{
		"main": true, "wt/t_1a2b": true, "feature/two-words": true, "a/b/c": true, "v1.2": true, "a@b": true,
		"größe": true, "HEAD/x": true, "head": true, "a-": true, "x.locked": true, "#12": true, "a{b}": true, "a]": true,
		"a,b;c&d|e": true, "'quoted'": true, "a=b": true, "@x": true, "x@": true, "a/@": true, "refs/heads/x": true,

		"a b": false, " a": false, "a\tb": false, "a\nb": false, "a\x7fb": false,
		"a..b": false, "a~1": false, "a^": false, "a:b": false, "a?": false, "a*": false, "a[b": false, `a\b`: false,
		"/a": false, "a/": false, "a//b": false, "a.": false, "a/b.": false, ".a": false, "a/.b": false, ".": false, "..": false,
		"a.lock": false, "a.lock/b": false, "@": false, "a@{1}": false, "-a": false, "--": false, "HEAD": false, "a/.": false,
	} {
		if got := branchName(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
		// The one name that git reads as another: a shorthand for HEAD.
		if got := name != "@" && exec.Command("git", "check-ref-format", "--branch", name).Run() == nil; got != want {
			t.Errorf("%q: git says %v, the table %v", name, got, want)
		}
		if err := checkBranch(name); (err == nil) != want || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := checkBranch(""); err != nil {
		t.Errorf("no branch: %v", err)
	}
	if err := checkBranch(strings.Repeat("a", MaxName+1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("too long: %v", err)
	}
}
