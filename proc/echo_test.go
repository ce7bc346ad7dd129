package proc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What the supervisor writes behind the command's last word is not shown, and who
// stops reading costs nothing.
func TestEchoShowsTheCommandsPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write := func(s string) {
		if _, err := f.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
	write("header\n")
	var shown bytes.Buffer
	e := startEcho(f, int64(len("header\n")), &shown)
	write("one\ntwo")
	e.finish()
	write("\ntrailer\n")
	<-e.done
	if got := shown.String(); got != "one\ntwo" {
		t.Errorf("shown: %q", got)
	}

	gone := startEcho(f, 0, closedTerminal{})
	<-gone.done
	gone.finish()
}

type closedTerminal struct{}

func (closedTerminal) Write([]byte) (int, error) { return 0, errors.New("hung up") }
