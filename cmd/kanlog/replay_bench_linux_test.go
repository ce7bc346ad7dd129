package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// BenchmarkReplayMillion is one look at the past of a board whose log holds a million
// events, for scripts/replay: by the program, in a process of its own.
func BenchmarkReplayMillion(b *testing.B) {
	const events = 1_000_000
	kanlog := program(b)
	home := costHome(b, "")
	dir := filepath.Join(home, "boards", "default")
	if err := fillWithLives(dir, events); err != nil {
		b.Fatal(err)
	}
	fi, err := os.Stat(filepath.Join(dir, eventlog.StoreName))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(fi.Size())/(1<<20), "MiB-of-store")
	for b.Loop() {
		for _, at := range []int{events / 2, events} {
			var took []time.Duration
			var peak int64
			for range 3 {
				cmd := exec.Command(kanlog, "--home", home, "replay", "--at", fmt.Sprint(at), "--stats", "--json")
				began := time.Now()
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				took = append(took, time.Since(began))
				peak = max(peak, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
			}
			half := map[bool]string{true: "whole", false: "half"}[at == events]
			s := ms(took) / 1000
			b.ReportMetric(s, "s-"+half)
			b.ReportMetric(float64(at)/s, "events/s-"+half)
			b.ReportMetric(float64(peak)/1024, "MiB-"+half)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// fillWithLives writes the lives of so many cards as give a number of events into an
// empty board: made, claimed, started, beaten, commented, answered and ended, as the
// deciders write it. The tables are left to the first who wants them.
func fillWithLives(dir string, events uint64) error {
	const cardsInABatch = 1000
	mem := &projection.MemStore{Mem: eventlog.NewMem([16]byte{1})}
	now, card, copied := eventlog.Time(1_800_000_000_000_000), uint64(0), uint64(0)
	live := func() error {
		card++
		limits := projection.DefaultLimits()
		var failed error
		update := func(actor string, d projection.Decider) projection.Result {
			now = now.Add(time.Second)
			res, err := mem.Update(actor, now, d)
			if failed == nil {
				failed = err
			}
			return res
		}
		draft := projection.Draft{Title: fmt.Sprintf("card %d", card), Assignee: "coder", WorkspaceKind: projection.Scratch, Priority: int64(card % 5)}
		binary.BigEndian.PutUint64(draft.ID[:], card)
		id := update("operator:ann", projection.Create(draft, projection.Writer{})).Task
		run := update("dispatcher:host/1-abcdef", projection.Claim(projection.ClaimFor{
			Task: id, Origin: projection.OriginDispatch, Assignee: "coder", TTL: 15 * time.Minute, LaunchGrace: 30 * time.Second,
			OnCleanExit: projection.CleanViolation, Claimer: eventlog.Process{PID: 4711, Fingerprint: "b:3|99", Machine: "m", PIDNS: "4026531836"}, Limits: limits,
		}, projection.Writer{})).Commit.RunOf(0)
		supervisor, me := fmt.Sprintf("supervisor:%s/%d", id, run), projection.Writer{Card: id, Run: run}
		update(supervisor, projection.Register(projection.Registration{
			Task: id, Run: run, Worker: eventlog.Process{PID: 4712, Fingerprint: "b:3|100", Machine: "m", PIDNS: "4026531836"},
			OutputInode: "8:1234", Token: fmt.Sprintf("%032x/%d/%016x", card, run, run), Workspace: "/home/ann/boards/default/workspaces/" + id,
		}))
		now = now.Add(10 * time.Minute)
		worker := fmt.Sprintf("worker:%s/%d", id, run)
		update(worker, projection.Beat(id, "half way there", limits, me))
		update(worker, projection.AddComment(id, "coder", "I have looked at it", me))
		update(worker, projection.Complete(id, projection.Answer{Summary: "it works now"}, me))
		code := int64(0)
		update(supervisor, projection.BookEnd(projection.Ending{
			Run: run, Record: &projection.ExitRecord{Cause: projection.CauseExited, ExitCode: &code}, Evidence: "its supervisor saw it end",
		}, limits))
		return failed
	}
	return eventlog.Open(dir, eventlog.Options{}).Fill(func(t *eventlog.Tx, _ int) (bool, error) {
		for range cardsInABatch {
			if err := live(); err != nil {
				return false, err
			}
		}
		var seq uint64
		err := mem.Mem.Read(copied+1, func(c eventlog.Commit) error {
			var err error
			if c, err = t.Append(copied, eventlog.Commit{At: c.At, Actor: c.Actor, Events: c.Events}); err == nil {
				copied, seq = c.Number, c.Seq
			}
			return err
		})
		return seq < events, err
	})
}
