// Package prefault maps, in a few calls of the kernel, the memory that a start of
// the program is about to touch. It may not import anything but syscall, unsafe and
// the runtime: it does its work when it is initialised, and packages are initialised
// in the order of their paths as soon as what they import is. A test keeps it before
// package time, and so before everything that matters.
//
// Most calls of kanlog live for some milliseconds, and spend most of them on page
// faults: a Go program's memory comes in pages of 4 KiB, each with its own exception,
// some 450 of them for `kanlog create`. One costs half a microsecond on bare
// hardware and up to 20 in a virtual machine; a page that is mapped together with
// others costs a tenth of that. `sh scripts/cost` prints the start's share.
//
// A huge page is not always to be had at once: where memory is in pieces the kernel may
// first move others together, which has taken as long as it saves or longer.
//
// What the kernel does not know or will not do is left as it is: then the pages come
// one by one, as everywhere else.
package prefault
