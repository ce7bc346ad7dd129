package main

import "strings"

// Sets of characters and no expressions of package regexp: those that a package
// holds are compiled at each start of the program, also where nothing asks for them.
const (
	lowercase    = "abcdefghijklmnopqrstuvwxyz"
	alphanumeric = lowercase + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// madeOf tells whether s has characters, and none but these.
func madeOf(s, characters string) bool {
	return s != "" && strings.Trim(s, characters) == ""
}
