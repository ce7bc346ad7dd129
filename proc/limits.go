package proc

import "time"

// Every bound of the package stands here.
const (
	// maxProcFile bounds one reading from /proc. An environment may be large
	// (a quarter of the stack limit, 2 MiB by default); what is cut off would
	// hide a token.
	maxProcFile = 8 << 20

	// maxRecord bounds an exit record that is read back.
	maxRecord = 64 << 10

	// maxHeaderArgs is how many bytes of the command the header line shows.
	maxHeaderArgs = 512

	// maxErrorText bounds an error's text in a record and in a report.
	maxErrorText = 1024

	// maxOwnLine is more than a header or a trailer can be long.
	maxOwnLine = 4 << 10

	// maxInterpreter is as much of a script's first line as the kernel reads.
	maxInterpreter = 256

	// holeBlock is what holes in an output are made of: at least the block of any
	// file system that is common.
	holeBlock = 64 << 10

	// MinOutputLimit is the least an output can be kept to, MaxOutputLimit the most.
	MinOutputLimit = 1 << 20
	MaxOutputLimit = 1 << 40

	// capPauseMin and capPauseMax bound the pause between two looks at how much a
	// worker has written; capPauseRoomy does where the disk has room.
	capPauseMin   = 20 * time.Millisecond
	capPauseMax   = time.Second
	capPauseRoomy = 8 * time.Second

	// fastestWriter is how many bytes a second are written to a good disk, by all
	// together: once a fifth of the memory waits for it, the kernel makes writers wait.
	fastestWriter = 2 << 30

	// maxMoved bounds the tail that is kept where there are no holes: it is moved.
	maxMoved = 1 << 20

	// captureTries is how often a process tries to tell its own identity.
	captureTries = 3

	// maxLooks is how often a process is looked at again when two readings of
	// one moment contradict each other (it was just ending).
	maxLooks = 3

	// maxScanRounds is how often /proc is listed again for processes that were
	// forked while it was being read.
	maxScanRounds = 5

	// maxSettles bounds how often a process is looked at again that is just
	// executing a program and has no environment yet, settlePause apart.
	maxSettles  = 20
	settlePause = time.Millisecond

	// busyTries bounds the starts of a command that is still open for writing
	// somewhere (ETXTBSY); the pause doubles from busyPause: 2.6 s in all.
	busyTries = 9
	busyPause = 10 * time.Millisecond

	// spareTakes bounds the wait for a spare supervisor to take its spec, or to end.
	spareTakes = time.Second
	// spareLate is how long its word is looked for once more, when that wait is over.
	spareLate = 20 * time.Millisecond

	// settledAfter is how long a worker runs before [Supervision.Settled] is called.
	settledAfter = time.Second

	// killPause is the pause between two rounds of SIGKILL to a tree that has
	// not ended, doubling to killPauseMax.
	killPause    = 10 * time.Millisecond
	killPauseMax = 500 * time.Millisecond

	// walkRounds is how often one round looks again for what was forked while
	// it signalled.
	walkRounds = 8

	// toldPause is how long a signal may take from the kernel to who was notified.
	toldPause = 2 * time.Millisecond
	// stopPause is how long a SIGTERM of our own may come after the command has
	// ended of one.
	stopPause = 100 * time.Millisecond

	// bookPause is the pause between two tries to book, doubling to
	// bookPauseMax.
	bookPause    = 50 * time.Millisecond
	bookPauseMax = 2 * time.Second

	// echoEvery is how often it is looked for more of what a command writes, for
	// somebody who looks on, and echoBuffer how much is read at once.
	echoEvery  = 50 * time.Millisecond
	echoBuffer = 32 << 10

	// recordTries bounds the tries for a record when nobody will book the end:
	// a board that was deleted must not keep supervisors alive.
	recordTries = 10
)
