package proc

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// outputCap keeps a run's output file small, however much its worker writes. The
// worker writes into the file itself (the descriptor carries the run lock), so
// nobody stands between who could count: the supervisor looks at the size now and
// then, and gives the middle back to the file system as a hole. The head, the tail,
// the inode and the logical size stay as they are; so do the worker's descriptors.
//
// Between two looks the file may grow beyond the limit, by what can be written in
// that time. Of a worker that was quiet before that is a second (capPauseMax), or up to
// eight where the disk has room for it: a thousand supervisors that look once a second
// cost a third of a processor.
type outputCap struct {
	f     *os.File // the supervisor's own descriptor
	limit int64    // 0: none

	size    int64 // at the last look
	at      time.Time
	pause   time.Duration // from then to the next one
	hole    int64         // where the hole ends, 0 if there is none
	dropped int64         // by shorten
}

// look gives back what is too much, and returns when to look again.
func (c *outputCap) look(now time.Time) time.Duration {
	st, err := c.f.Stat()
	if err != nil {
		return capPauseMax
	}
	size := st.Size()
	if size < c.hole {
		c.hole = 0 // the worker has emptied its own output
	}
	kept := size
	if c.hole > 0 {
		kept -= c.hole - c.headEnd()
	}
	c.pause = nextLook(size-c.size, now.Sub(c.at), c.pause, c.limit)
	if c.pause > capPauseMax {
		c.pause = min(c.pause, longestPause(freeBytes(c.f)))
	}
	c.size, c.at = size, now
	if kept > c.limit {
		c.give(size)
	}
	return c.pause
}

// headEnd and tailStart are whole blocks: what is punched in parts of a block is
// zeroes in the file and no hole. Behind a cut more than a third of the limit is
// free, so that it is not made at every look.
func (c *outputCap) headEnd() int64             { return roundUp(c.limit/8, holeBlock) }
func (c *outputCap) tailStart(size int64) int64 { return (size - c.limit/2) / holeBlock * holeBlock }

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// give makes the hole, or makes it longer. What cannot be done now is tried again
// at the next look.
func (c *outputCap) give(size int64) {
	from, to := max(c.headEnd(), c.hole), c.tailStart(size)
	if from >= to {
		return
	}
	switch err := punch(c.f, from, to); {
	case err == nil:
		c.hole = to
	case errors.Is(err, errors.ErrUnsupported):
		c.shorten(size)
	}
}

// shorten is for file systems that know no holes: the file is cut behind its head,
// and the end of what was cut off is appended again. What the worker writes in that
// instant is lost or stands before it; a full disk would be worse.
func (c *outputCap) shorten(size int64) {
	tail := make([]byte, min(c.limit/2, maxMoved))
	n, err := c.f.ReadAt(tail, size-int64(len(tail)))
	if err != nil || c.f.Truncate(c.headEnd()) != nil {
		return
	}
	c.dropped += size - c.headEnd() - int64(n)
	_, _ = fmt.Fprintf(c.f, "\nkanlog: %d bytes of output dropped here (output_limit)\n%s", c.dropped, tail[:n])
	c.size = c.headEnd() + int64(n)
}

// nextLook is how long to wait until an eighth of the limit has been written at the
// pace of the last span; of a file that does not grow it is twice the last pause. What
// has grown in a long span counts as if it were of its last second.
func nextLook(grown int64, span, last time.Duration, limit int64) time.Duration {
	next := max(2*last, capPauseMin)
	if grown > 0 && span > 0 {
		// In floating point: the product of the two may be any size.
		next = time.Duration(min(float64(next), float64(limit)/8/float64(grown)*float64(min(span, capPauseMax))))
	}
	return min(max(next, capPauseMin), capPauseRoomy)
}

// longestPause is how long a quiet worker need not be looked at on a disk with so many
// bytes of room. In that time a quarter of it is written, if all write; there are disks
// four times as fast.
func longestPause(room int64) time.Duration {
	return min(max(time.Duration(room/4/fastestWriter)*time.Second, capPauseMax), capPauseRoomy)
}
