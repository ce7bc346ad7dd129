//go:build !race

package eventlog

const flipStride = 1
