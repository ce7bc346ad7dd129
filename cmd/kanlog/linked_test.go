package main

import "os"

// The scenarios run a program that is built apart. go test does not see that:
// it would take a result from its cache although the program has changed, as
// long as no test calls the changed part itself. So all of the program is
// linked into the test, by a call that never comes about.
func init() {
	if len(os.Args) == 0 {
		main()
	}
}
