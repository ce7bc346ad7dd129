// Package proc may not decide anything about a card, read or write the board,
// or trust a process number. It imports none of the other packages.
//
// It knows processes: who one is ([Identity]), whether anything of a run is
// left ([Prober]), how to start the parent of one worker ([Spawn]) or to become
// it ([Become]) and what that parent does ([Supervise]), and the two files a run
// leaves behind: its output, which carries the run lock, and its exit record ([Record]).
//
// Three rules hold everywhere in here:
//
//   - A number is not a process. Nothing is signalled unless its pidfd was
//     opened first and its identity was proven again afterwards.
//   - Absence needs proof. A reading that failed says nothing; the answer is
//     then [Held], and held is never acted upon.
//   - One owner reaps. The supervisor alone waits for what it started, in one
//     loop, so that a number it signals cannot have been given away.
//
// Linux is where this is meant to run. Elsewhere it compiles, identities are
// "unverified" and a living process is therefore always held.
package proc
