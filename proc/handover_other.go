//go:build !linux

package proc

import (
	"errors"
	"fmt"
)

// Become is there on Linux only.
func Become(Handover) error { return fmt.Errorf("supervise: %w", errors.ErrUnsupported) }
