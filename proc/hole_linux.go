package proc

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// punch gives a part of a file back to the file system. It then reads as zeroes,
// and is found by NextHole.
func punch(f *os.File, from, to int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from)
		if err != unix.EINTR {
			return err
		}
	}
}

// NextHole finds what was dropped of a run's output: the first hole at or after
// from, and where it ends. Without one before upto both are upto. It moves the
// offset of f.
func NextHole(f *os.File, from, upto int64) (hole, end int64, err error) {
	hole, err = unix.Seek(int(f.Fd()), from, unix.SEEK_HOLE)
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENXIO):
		return upto, upto, nil // a file system that knows no holes; behind the end
	case err != nil:
		return 0, 0, err
	case hole >= upto: // there is one at the end of each file
		return upto, upto, nil
	}
	end, err = unix.Seek(int(f.Fd()), hole, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) { // nothing but the hole up to the end
		end, err = unix.Seek(int(f.Fd()), 0, unix.SEEK_END)
	}
	return hole, end, err
}
