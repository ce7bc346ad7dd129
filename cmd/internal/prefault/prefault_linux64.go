//go:build linux && (amd64 || arm64)

package prefault

import (
	"runtime"
	"syscall"
	"unsafe"
)

// From the kernel's uapi/asm-generic/mman-common.h; package syscall lacks most.
const (
	dontNeed      = 4  // MADV_DONTNEED
	adviseHuge    = 14 // MADV_HUGEPAGE: fault in huge pages from here on
	adviseSmall   = 15 // MADV_NOHUGEPAGE: no more of them
	populateRead  = 22 // MADV_POPULATE_READ, Linux 5.14
	populateWrite = 23 // MADV_POPULATE_WRITE, Linux 5.14
	collapse      = 25 // MADV_COLLAPSE: one huge page instead of these, Linux 6.1
)

const (
	page     = 4 << 10
	hugePage = 2 << 20
	// chunk is what Go's heap grows by, and is aligned to.
	chunk = 4 << 20
	// firstHeap is what a short call takes of the heap.
	firstHeap = 512 << 10
)

// Both lie where Go puts what they are: onHeap points to the heap, inData stands in the
// data, behind the code and the constants.
var (
	onHeap = new([64]byte)
	inData = [1]byte{1}
)

func init() {
	heap(uintptr(unsafe.Pointer(onHeap)))
	code(firstCode(), uintptr(unsafe.Pointer(&inData)))
}

// NoMoreHugePages keeps a process that there are many of to the one huge page it began
// with; the other half of the chunk then comes page by page.
func NoMoreHugePages() {
	madvise(uintptr(unsafe.Pointer(onHeap))&^(chunk-1), chunk, adviseSmall)
}

// GiveBack is for a process that is going to wait for long. The mapping of the program's
// code and constants is given up; they stay in the page cache and come back where they
// are used. last is a function of package main, which the linker puts at the end.
//
// The danger: what was written to since it was mapped is lost, and the program with it.
// Code never is. Constants are where a loader writes addresses into them, which it does
// not in a program that is linked to a fixed place; that place is low. Its constants end
// with the table of functions, to which FuncForPC points (for code that was inlined it
// points to the heap, far above).
func GiveBack(last func()) {
	const low = 1 << 32
	end := addressOf(last)
	if table := uintptr(unsafe.Pointer(runtime.FuncForPC(end))); end < table && table < low {
		end = table
	}
	inHalves(firstCode(), end)
	between(firstCode(), end, dontNeed)
}

// inHalves keeps a page that comes back from bringing with it the 2 MiB that it lies in:
// the kernel maps a huge page whole where one mapping holds all of it, and gives those
// parts that differ in advice mappings of their own.
func inHalves(from, to uintptr) {
	for at := from&^(hugePage-1) + hugePage/2; at < to; at += hugePage {
		between(at, min(at+hugePage/2, to), adviseSmall)
	}
}

// firstCode is an address among the first functions of the program.
func firstCode() uintptr { return addressOf(runtime.GC) }

func addressOf(f func()) uintptr { return **(**uintptr)(unsafe.Pointer(&f)) }

// heap asks for huge pages for the chunk of the heap that at lies in. Half of it has
// been used already, page by page, so that only the kernel can put it together.
func heap(at uintptr) {
	if hugePagesAllowed() {
		madvise(at&^(chunk-1), chunk, adviseHuge)
		if madvise(at&^(hugePage-1), hugePage, collapse) == 0 {
			return
		}
	}
	madvise(at&^(page-1), firstHeap, populateWrite)
}

// code maps the code and the constants in pieces: a call ends at the first hole, and
// the linker may have left one before each of the program's parts.
func code(from, to uintptr) {
	for at := from &^ (hugePage - 1); at < to; at += hugePage {
		between(max(at, from), min(at+hugePage, to), populateRead)
	}
}

// hugePagesAllowed asks, because MADV_COLLAPSE does not, whether this machine's owner
// wants none.
func hugePagesAllowed() bool {
	fd, err := syscall.Open("/sys/kernel/mm/transparent_hugepage/enabled", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	var text [64]byte // "always [madvise] never"
	n, _ := syscall.Read(fd, text[:])
	for i := 0; i+1 < n; i++ {
		if text[i] == '[' {
			return text[i+1] != 'n'
		}
	}
	return false
}

// between gives advice on the pages from one address of the program's file up to that
// of another.
func between(from, to, advice uintptr) {
	if from &^= page - 1; from < to {
		madvise(from, to-from, advice)
	}
}

func madvise(at, length, advice uintptr) syscall.Errno {
	_, _, errno := syscall.RawSyscall(syscall.SYS_MADVISE, at, length, advice)
	return errno
}
