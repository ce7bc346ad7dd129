// Package tick is the dispatcher: it looks at every active run once, decides
// what to do about it, promotes what is due, and starts what may start.
//
// It may not decide anything about a card by itself (that is package
// projection, inside a transaction), nor touch a process or a file except
// through the interfaces in world.go. judge.go and admit.go are pure: a test
// keeps clocks and the outside world out of them.
package tick
