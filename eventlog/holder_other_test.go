//go:build !linux

package eventlog

const holderKnown = false
