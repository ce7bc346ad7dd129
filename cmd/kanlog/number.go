package main

import (
	"fmt"
	"strconv"
)

// number is a flag that holds a whole number, written as people write them: 010
// is ten. The library's own flags read what a Go source may hold, where it is
// eight.
type number[T int | int64 | uint64] struct{ n *T }

func (f *number[T]) Type() string { return "number" }
func (f *number[T]) String() string {
	if f.n == nil {
		return "0"
	}
	return fmt.Sprint(*f.n)
}

// Set reads a flag's value.
func (f *number[T]) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || int64(T(n)) != n || (n < 0) != (T(n) < 0) {
		return usage("%q is no whole number", s)
	}
	*f.n = T(n)
	return nil
}
