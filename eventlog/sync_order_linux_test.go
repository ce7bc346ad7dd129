package eventlog

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func init() { childParts["syncs"] = childSyncs }

// childSyncs HOME makes a store, appends to it and rebuilds it, makes a directory, and
// says on stdout before what and after what.
func childSyncs(args []string) error {
	fmt.Println("create")
	if _, err := Create(args[0], "default", testUUID, 1, Options{}); err != nil {
		return err
	}
	f := Open(BoardDir(args[0], "default"), Options{})
	fmt.Println("append")
	if _, err := f.Append(0, note("ann", 1)); err != nil {
		return err
	}
	fmt.Println("rebuild")
	if err := f.Rebuild(foldAuthors); err != nil {
		return err
	}
	// The second time as if the first one had been killed before the sync.
	for range 2 {
		fmt.Println("makedir")
		if err := MakeDir(filepath.Join(args[0], "copies")); err != nil {
			return err
		}
	}
	fmt.Println("done")
	return nil
}

// syncOrder is what reaches the disk, in order, several writes in a row as one.
// Data before the page that makes it count, a file before its name, a name before
// the word that it is there: nothing but the power going out shows that one of
// these is missing, so it is the calls that are looked at.
const syncOrder = `create
fsync DIR
fsync boards
fsync home
fsync boards
fsync home
fsync DIR
write board.db.new
sync board.db.new
fsync board.db.new
write board.db.new
sync board.db.new
fsync board.db.new
rename board.db.new board.db
fsync default
write board-id
fsync board-id
fsync runs.new
rename runs.new runs
fsync default
append
write board.db
sync board.db
write board.db
sync board.db
rebuild
write board.db.new
sync board.db.new
fsync board.db.new
write board.db.new
sync board.db.new
sync board.db.new
fsync board.db.new
rename board.db.new board.db
fsync default
makedir
fsync home
fsync home
makedir
fsync home
done
`

func TestOrderOfSyncs(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatalf("needs strace: %v", err)
	}
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	cmd := child("syncs", filepath.Join(dir, "home"))
	cmd.Args = append([]string{strace, "-f", "-qq", "-y", "-s", "16", "-o", trace, "-e", "signal=none",
		"-e", "trace=write,pwrite64,fsync,fdatasync,rename,renameat,renameat2", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = strace
	if err := cmd.Run(); err != nil {
		t.Fatalf("needs strace, and to be allowed to use it: %v", err)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if got := diskOrder(t, text, filepath.Base(dir)); got != syncOrder {
		t.Errorf("what reaches the disk is\n%s\nwant\n%s\nthe trace:\n%s", got, syncOrder, text)
	}
}

var (
	tracedFile = regexp.MustCompile(`(write|pwrite64|fsync|fdatasync)\(\d+<([^>]*)>(?:, "(\w+)\\n")?`)
	tracedName = regexp.MustCompile(`rename\w*\(.*?"([^"]*)".*?"([^"]*)"`)
)

// diskOrder reads a trace of strace.
func diskOrder(t *testing.T, trace []byte, top string) string {
	var b strings.Builder
	last := ""
	say := func(words ...string) {
		line := strings.Join(words, " ")
		if line != last || words[0] != "write" {
			b.WriteString(line + "\n")
		}
		last = line
	}
	base := func(path string) string {
		if name := filepath.Base(path); name != top {
			return name
		}
		return "DIR"
	}
	for line := range bytes.Lines(trace) {
		if m := tracedName.FindSubmatch(line); m != nil {
			say("rename", base(string(m[1])), base(string(m[2])))
			continue
		}
		m := tracedFile.FindSubmatch(line)
		if m == nil {
			continue // the second half of a call that others came between
		}
		call, path := string(m[1]), string(m[2])
		switch {
		case len(m[3]) > 0 && !strings.Contains(path, top):
			say(string(m[3])) // a word on stdout
		case !strings.Contains(path, top):
		case call == "fdatasync":
			say("sync", base(path))
		case call == "fsync":
			say("fsync", base(path))
		default:
			say("write", base(path))
		}
	}
	return b.String()
}
