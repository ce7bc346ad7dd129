package main

import "strings"

// Made by hand and no expressions of package regexp: those that a package holds
// are compiled at each start of the program, which cost a short call more than its
// work.
const (
	lowercase    = "abcdefghijklmnopqrstuvwxyz"
	alphanumeric = lowercase + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// madeOf tells whether s has characters, and none but these.
func madeOf(s, characters string) bool {
	return s != "" && strings.Trim(s, characters) == ""
}
