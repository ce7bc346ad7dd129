package main

import "time"

// pace keeps who reacts to everything from using up a processor: a burst of ticks
// is free, then they may take a quarter of one. What happens meanwhile is seen by
// the next tick.
type pace struct {
	debt time.Duration // work not yet paid for
	at   time.Time
}

const (
	paceShare = 4           // one part of work to this many of time
	paceBurst = time.Second // of work that may be done at once
	paceMost  = time.Minute // of waiting, whatever one tick took
)

// spent notes what a tick took, and returns how long the next one has to wait.
func (p *pace) spent(work time.Duration, now time.Time) time.Duration {
	if !p.at.IsZero() {
		p.debt = max(0, p.debt-max(0, now.Sub(p.at))/paceShare)
	}
	p.debt, p.at = p.debt+work, now
	return min(paceMost, max(0, p.debt-paceBurst)*paceShare)
}
