package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Format is the number of the form described here: event kinds, their fields
// and the tables together. Any addition raises it, since a program that does
// not know a kind must refuse the store and not skip the event.
//
// # Form 1
//
// A board's store, boards/<slug>/board.db, is one bbolt file with the freelist
// kept in it. Its buckets:
//
//	meta   magic    "kanlog"
//	       format   this number, 8 bytes big-endian
//	       tables   format of the tables, 8 bytes big-endian; 0 = none yet
//	       uuid     16 bytes, the identity of the board
//	       created  Time, 8 bytes big-endian
//	log    key      number of the commit, 8 bytes big-endian, 1, 2, 3, ...
//	       value    msgpack array [hash (bin, 32 bytes), body (bin)]
//	t:NAME          table NAME; its keys and values are package projection's
//
// The bbolt sequence of bucket log is the number of its last commit. It stands
// in another page than the commits do, so a page of the log that lost its last
// keys is found, which the chain alone cannot do.
//
// A body is the msgpack of a commit, ints in their shortest form, nothing
// behind it:
//
//	[number, seq, at, actor, [event, ...]]
//	event = [task, run, kind, {field: value, ...}]
//
// The fields of a payload stand in the order of its struct in payloads_card.go,
// payloads_run.go or payloads_board.go.
//
// hash = SHA-256(hash of the commit before || body). The first commit follows
// on SHA-256("kanlog board " || uuid), so a commit cannot be moved to another
// board either.
//
// Beside the store: board.lock, the side lock, never replaced; board.db.new, a
// store being made, worth nothing until it is renamed; runs/board-id, the uuid
// in hex, so that a store put in place of another is found. A board is whole
// once runs/ exists; runs.new is that directory being made. board.db.lock is held
// by who makes a store anew.
//
// # Form 2
//
// Adds the kind archived, and fields to termination_requested (limit_seconds,
// measured_seconds), reclaim_deferred (claim_expires), timed_out (limit_source,
// elapsed_seconds) and stale (silent_seconds).
//
// # Form 3
//
// Adds the kinds linked, unlinked, edited, reopened, retracted,
// block_loop_detected, changes_requested, paused and resumed, and fields to created (reviewer),
// claimed (reviewer, reviews), blocked (to, requested_kind), completed (reviewed)
// and review_requested (result, metadata, reviewer).
//
// # Form 4
//
// Adds fields to claimed (active, active_assignee, board_cap, assignee_cap, host_cap,
// limits), to the kinds that end a run, blocked and gave_up the limits they were decided by, and
// the word shared to workspace_kind.
const Format = 4

// The names on disk.
const (
	StoreName = "board.db"
	asideName = "board.db.new"
	lockName  = "board.lock"
	// asideLockName is held by who writes a store aside in a board's directory.
	asideLockName = "board.db.lock"
	runsName      = "runs"
	idName        = "board-id"

	magic       = "kanlog"
	tablePrefix = "t:"
)

var (
	bucketMeta = []byte("meta")
	bucketLog  = []byte("log")

	metaMagic   = []byte("magic")
	metaFormat  = []byte("format")
	metaTables  = []byte("tables")
	metaUUID    = []byte("uuid")
	metaCreated = []byte("created")
)

// genesis is what the first commit of a board follows on.
func genesis(uuid [16]byte) [32]byte {
	return sha256.Sum256(append([]byte("kanlog board "), uuid[:]...))
}

// chain is the hash of a commit with this body behind prev.
func chain(prev [32]byte, body []byte) [32]byte {
	h := sha256.New()
	h.Write(prev[:])
	h.Write(body)
	return [32]byte(h.Sum(nil))
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// idText is the content of runs/board-id.
func idText(uuid [16]byte) []byte { return []byte(hex.EncodeToString(uuid[:]) + "\n") }

func sameID(text []byte, uuid [16]byte) bool {
	return bytes.Equal(bytes.TrimSpace(text), bytes.TrimSpace(idText(uuid)))
}
