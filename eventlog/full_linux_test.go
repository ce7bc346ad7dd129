package eventlog

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"syscall"
	"testing"
)

func init() { childParts["full"] = childFull }

// A full disk cannot be faked below bbolt, so a child gets a small one: a tmpfs
// in a mount namespace of its own.
func TestDiskFull(t *testing.T) {
	cmd := child("full", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	err := cmd.Start()
	if err != nil && os.Getuid() == 0 {
		cmd = child("full", t.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("no mount namespace can be made here: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("child: %v (its words are above)", err)
	}
}

// childFull HOME
func childFull(args []string) error {
	home := args[0]
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("tmpfs", home, "tmpfs", 0, "size=1m"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	if _, err := Create(home, "default", testUUID, 1, Options{}); err != nil {
		return err
	}
	f := Open(BoardDir(home, "default"), Options{})
	var want []Commit
	fill := func() error {
		for {
			c, err := appendNext(f, note("ann", 40))
			if errors.Is(err, ErrDiskFull) {
				return nil
			}
			if err != nil {
				return err
			}
			want = append(want, c)
		}
	}
	check := func() error {
		got, err := readAll(f)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%d commits are there, %d were acknowledged", len(got), len(want))
		}
		return nil
	}
	// Full more than once: what a failed commit leaves behind must not
	// hurt the next.
	for _, size := range []string{"", "size=2m", "size=3m"} {
		if size != "" {
			if err := syscall.Mount("", home, "", syscall.MS_REMOUNT, size); err != nil {
				return fmt.Errorf("remount: %w", err)
			}
		}
		before := len(want)
		if err := fill(); err != nil {
			return err
		}
		if len(want) == before {
			return fmt.Errorf("nothing could be appended with %q", size)
		}
		if err := check(); err != nil {
			return err
		}
		if err := f.Rebuild(foldAuthors); !errors.Is(err, ErrDiskFull) {
			return fmt.Errorf("rebuild on the full disk: %v, want ErrDiskFull", err)
		}
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
