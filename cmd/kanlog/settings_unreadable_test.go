package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Settings that cannot be read are a failure and no wrong call: nobody gave a
// bad value.
func TestSettingsThatCannotBeRead(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "config.toml")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := loadSettings(home, filepath.Join(home, "boards", "default"))
	if err == nil || exitCode(err) != exitFailed || !strings.Contains(err.Error(), path) {
		t.Errorf("%v (exit %d), want exit %d and the name of the file", err, exitCode(err), exitFailed)
	}
}
