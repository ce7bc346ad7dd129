// Package projection holds what is (the rows of cards and runs, folded from the
// log) and what may happen next (the deciders).
//
// It may not read a clock, draw random numbers, look at a process or at the
// environment: time, ids and evidence come in as values, so that the same log
// always gives the same tables and a simulator can run millions of decisions. A
// test keeps it so. Its only way to the disk is the transaction that package
// eventlog hands in.
//
// Reading order: rows.go, fold.go, tables.go, decide.go and the decide_*.go
// beside it, why.go, store.go, verify.go.
package projection
