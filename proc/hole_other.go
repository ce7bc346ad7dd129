//go:build !linux

package proc

import (
	"errors"
	"os"
)

// punch: holes are Linux's here.
func punch(*os.File, int64, int64) error { return errors.ErrUnsupported }

// NextHole: without punch there is none.
func NextHole(_ *os.File, _, upto int64) (hole, end int64, err error) { return upto, upto, nil }
