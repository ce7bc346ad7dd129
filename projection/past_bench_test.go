package projection_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"kanlog/eventlog"
	. "kanlog/projection"
)

// lives appends the lives of so many cards to a log in memory: each is made, claimed,
// worked on, failed once, beaten and done, as the deciders write it.
func lives(b testing.TB, s *MemStore, cards int) {
	now := eventlog.Time(1_800_000_000_000_000)
	update := func(actor string, d Decider) Result {
		now = now.Add(time.Second)
		res, err := s.Update(actor, now, d)
		if err != nil {
			b.Fatal(err)
		}
		return res
	}
	limits := DefaultLimits()
	for i := range cards {
		draft := Draft{Title: fmt.Sprintf("card %d", i), Assignee: "coder", WorkspaceKind: Scratch, Priority: int64(i % 5)}
		binary.BigEndian.PutUint64(draft.ID[:], uint64(i+1))
		id := update("operator:ann", Create(draft, Writer{})).Task
		for attempt := range 2 {
			run := update("dispatcher:host/1-abcdef", Claim(ClaimFor{
				Task: id, Origin: OriginDispatch, Assignee: "coder", TTL: 15 * time.Minute, LaunchGrace: 30 * time.Second, OnCleanExit: CleanViolation,
				Claimer: eventlog.Process{PID: 4711, Fingerprint: "b:3|99", Machine: "m", PIDNS: "4026531836"}, Limits: limits,
			}, Writer{})).Commit.RunOf(0)
			me := Writer{Card: id, Run: run}
			update(fmt.Sprintf("supervisor:%s/%d", id, run), Register(Registration{
				Task: id, Run: run, Worker: eventlog.Process{PID: 4712, Fingerprint: "b:3|100", Machine: "m", PIDNS: "4026531836"},
				OutputInode: "8:1234", Token: fmt.Sprintf("%032x/%d/%016x", i, run, run), Workspace: "/home/ann/boards/default/workspaces/" + id,
			}))
			if attempt == 0 {
				code := int64(1)
				update(fmt.Sprintf("supervisor:%s/%d", id, run), BookEnd(Ending{Run: run, Record: &ExitRecord{Cause: CauseExited, ExitCode: &code}, Evidence: "its supervisor saw it end"}, limits))
				now = now.Add(time.Minute)
				continue
			}
			now = now.Add(5 * time.Minute)
			update(fmt.Sprintf("worker:%s/%d", id, run), Beat(id, "half way there", limits, me))
			update(fmt.Sprintf("worker:%s/%d", id, run), AddComment(id, "coder", "I have looked at it", me))
			update(fmt.Sprintf("worker:%s/%d", id, run), Complete(id, Answer{Summary: "it works now"}, me))
			code := int64(0)
			update(fmt.Sprintf("supervisor:%s/%d", id, run), BookEnd(Ending{Run: run, Record: &ExitRecord{Cause: CauseExited, ExitCode: &code}, Evidence: "its supervisor saw it end"}, limits))
		}
	}
}

// BenchmarkFold is the folding of a log alone, in events a second: the commits were
// read before.
func BenchmarkFold(b *testing.B) {
	s := &MemStore{Mem: eventlog.NewMem([16]byte{1})}
	lives(b, s, 2000)
	var commits []eventlog.Commit
	events := 0
	if err := s.Mem.Read(1, func(c eventlog.Commit) error {
		commits, events = append(commits, c), events+len(c.Events)
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p := new(Store).Before()
		for _, c := range commits {
			if err := p.Apply(c); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkReadLog is the reading and checking of the same log.
func BenchmarkReadLog(b *testing.B) {
	s := &MemStore{Mem: eventlog.NewMem([16]byte{1})}
	lives(b, s, 2000)
	events := 0
	for b.Loop() {
		events = 0
		if err := s.Mem.Read(1, func(c eventlog.Commit) error { events += len(c.Events); return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
