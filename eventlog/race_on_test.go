//go:build race

package eventlog

// flipStride: with the race detector every byte would take minutes.
const flipStride = 7
