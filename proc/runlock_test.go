package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A supervisor that comes when its board has been moved away must not make the old
// place anew: what it left there would pass for a damaged board.
func TestTheOutputNeedsItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "moved away", "runs", "t_1")
	if f, err := openOutput(filepath.Join(dir, "1.log")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opened %v: %v", f, err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(dir))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
}
