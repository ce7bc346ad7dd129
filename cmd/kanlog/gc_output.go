package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"kanlog/eventlog"
	"kanlog/projection"
)

// gcBatch is how many runs are read in one transaction.
const gcBatch = 500

// gcState is what a gc leaves for the next one, so that it does not go through all
// runs there ever were. Without it that is what it does.
type gcState struct {
	// Settled: of the runs below this number nothing is left to remove.
	Settled uint64 `json:"settled"`
	// At is when it ended.
	At eventlog.Time `json:"at"`
}

func readGCState(text []byte, err error) (s gcState) {
	if err != nil || json.Unmarshal(text, &s) != nil {
		return gcState{}
	}
	return s
}

// collectOutputs removes the outputs and context files of runs whose cards are over for
// long. The exit records stay.
func (g *gc) collectOutputs(board *os.Root) error {
	state := readGCState(board.ReadFile(gcStateName))
	if g.a.set.keepOutput != 0 { // 0 is for ever
		if err := g.outputsFrom(board, &state); err != nil {
			return err
		}
	}
	if g.dryRun {
		return nil
	}
	state.At = g.a.now
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := board.WriteFile(gcStateName+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return board.Rename(gcStateName+".new", gcStateName)
}

func (g *gc) outputsFrom(board *os.Root, state *gcState) error {
	runs, err := g.inside(board, "runs")
	if runs == nil || err != nil {
		return err
	}
	defer runs.Close()
	settled := true
	for next := state.Settled; ; {
		if err := g.ctx.Err(); err != nil {
			return err
		}
		list, busy, err := g.runsFrom(next)
		if err != nil {
			return err
		}
		for _, r := range list {
			done, err := g.collectOutput(runs, r, busy[r.Task])
			if err != nil {
				return err
			}
			if settled = settled && done; settled {
				state.Settled = r.ID + 1
			}
			next = r.ID + 1
		}
		if len(list) < gcBatch {
			return nil
		}
	}
}

// runsFrom reads a batch of runs, and of each card whether it is in use.
func (g *gc) runsFrom(run uint64) (list []*projection.Run, busy map[string]bool, err error) {
	busy = map[string]bool{}
	err = g.view(func(v projection.View) error {
		if list, err = v.RunsFrom(run, gcBatch); err != nil {
			return err
		}
		for _, r := range list {
			t, err := v.MustTask(r.Task)
			if err != nil {
				return err
			}
			busy[r.Task] = t.InUse() != ""
		}
		return nil
	})
	return list, busy, err
}

// collectOutput removes what a run printed and what it was told. done says that nothing of
// it is left to remove.
func (g *gc) collectOutput(runs *os.Root, r *projection.Run, busy bool) (done bool, err error) {
	// A run that is closed without a worker never has one again.
	if busy || r.Open() || r.HasWorker {
		return false, nil
	}
	if why, err := g.recent(r.Task, g.a.set.keepOutput, "keep_output"); why != "" || err != nil {
		return false, err
	}
	i := gcItem{Kind: gcOutput, Task: r.Task, Run: r.ID, Path: g.a.files().output(r.Task, r.ID)}
	there := false
	done = true
	for _, ending := range []string{outputEnding, contextEnding} {
		name := filepath.Join(r.Task, strconv.FormatUint(r.ID, 10)+ending)
		st, err := runs.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !g.dryRun {
			err = runs.Remove(name)
		}
		if err != nil {
			g.fail(i, err)
			return false, nil
		}
		there, done = true, done && !g.dryRun
		i.Bytes += allocated(st)
	}
	if there {
		g.rep.Removed = append(g.rep.Removed, i)
	}
	return done, nil
}
