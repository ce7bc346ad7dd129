package main

import (
	"fmt"

	"github.com/docker/go-units"
)

// sizeText is a number of bytes as a settings file has it: 1048576, or "1MiB". Like
// durationText it is read only where file, line and key can be named.
type sizeText string

// UnmarshalText takes what stands in the file, number or text.
func (t *sizeText) UnmarshalText(b []byte) error {
	*t = sizeText(b)
	return nil
}

func (t sizeText) set(to *int64, least, most int64) error {
	n, err := units.RAMInBytes(string(t))
	if err != nil {
		return fmt.Errorf("%q is no size: bytes (1048576) or a number with a unit (512KiB, 64MiB, 2GiB)", string(t))
	}
	if n < least || n > most {
		return fmt.Errorf("%s is out of range (%s to %s)", string(t), sizeWords(least), sizeWords(most))
	}
	*to = n
	return nil
}

// sizeWords is a number of bytes for people.
func sizeWords(n int64) string { return units.BytesSize(float64(n)) }
