package proc

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// A terminal that stood still while the output's middle was given back does not get the
// hole as zeroes.
func TestEchoSkipsWhatWasDropped(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "output")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head, tail := strings.Repeat("head\n", holeBlock/5+1)[:holeBlock], "tail\n"
	const end = 1 << 30
	for at, text := range map[int64]string{0: head, end: tail} {
		if _, err := f.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	var shown bytes.Buffer
	e := startEcho(f, 0, &shown)
	e.finish()
	<-e.done
	said := fmt.Sprintf("\nkanlog: %d bytes of output dropped here (output_limit)\n", end-holeBlock)
	if got := shown.String(); got != head+said+tail {
		t.Errorf("%d bytes were shown, at the end %q", len(got), got[max(0, len(got)-200):])
	}
}
