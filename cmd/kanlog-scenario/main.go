// Command kanlog-scenario runs the files of kanlog scenario, which starts it. It is a
// program of its own so that kanlog does not carry, at each start, what it is made of.
package main

import (
	"os"

	"kanlog/cmd/internal/scenario/script"
)

func main() { os.Exit(script.Main(os.Args[1:], os.Stdout, os.Stderr)) }
