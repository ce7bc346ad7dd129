package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kanlog/proc"
	"kanlog/projection"
)

// filesReport is what a look at the files of runs found.
type filesReport struct {
	Checked int `json:"checked"`
	// Problems contradict the board, Notes may have a harmless cause.
	Problems []string `json:"problems"`
	Notes    []string `json:"notes"`
}

// mostSaid bounds how many things of one sort are named: a board that was put back
// without its files has one for each run.
const mostSaid = 20

// checkFiles compares the files of runs with the runs. Whatever is written meanwhile
// is no contradiction: files are listed before the rows are read, since a run is on
// the board before it has a file, and what a record says is compared only once its
// run is booked.
func (a *app) checkFiles(s *projection.Store) (*filesReport, error) {
	uuid, err := s.UUID()
	if err != nil {
		return nil, err
	}
	c := &fileCheck{a: a, uuid: uuid, rep: &filesReport{Problems: []string{}, Notes: []string{}}}
	var files []runFile
	err = eachRunFile(filepath.Join(a.boardDir, "runs"), func(f runFile) error {
		switch f.ending {
		case outputEnding, recordEnding, contextEnding:
			files = append(files, f)
		}
		return nil
	})
	for batch := range batchesOf(files, gcBatch) {
		if err == nil {
			err = s.View(func(v projection.View) error { return c.known(v, batch) })
		}
		for _, r := range c.records {
			c.record(r)
		}
		c.records = nil
	}
	if err == nil {
		err = c.outputs(s)
	}
	if err != nil {
		return nil, err
	}
	c.rep.Checked = len(files)
	c.rep.Problems = bounded(c.rep.Problems)
	return c.rep, nil
}

func batchesOf(files []runFile, n int) func(func([]runFile) bool) {
	return func(yield func([]runFile) bool) {
		for len(files) > 0 {
			batch := files[:min(n, len(files))]
			if files = files[len(batch):]; !yield(batch) {
				return
			}
		}
	}
}

func bounded(said []string) []string {
	if more := len(said) - mostSaid; more > 0 {
		return append(said[:mostSaid:mostSaid], fmt.Sprintf("and %d more of the kind", more))
	}
	return said
}

type fileCheck struct {
	a       *app
	uuid    [16]byte
	rep     *filesReport
	records []recordOf // to be read when the board is free again
}

type recordOf struct {
	file runFile
	run  *projection.Run
}

func (c *fileCheck) problem(format string, args ...any) {
	c.rep.Problems = append(c.rep.Problems, fmt.Sprintf(format, args...))
}

func (c *fileCheck) note(format string, args ...any) {
	c.rep.Notes = append(c.rep.Notes, fmt.Sprintf(format, args...))
}

// known finds files of no run.
func (c *fileCheck) known(v projection.View, files []runFile) error {
	for _, f := range files {
		r, err := v.Run(f.run)
		switch {
		case err != nil:
			return err
		case r == nil && neverBegun(f):
			c.note("%s is empty, and there is no run %d: whoever claimed it was killed before that was recorded", f.path, f.run)
		case r == nil:
			c.problem("%s: the board has no run %d", f.path, f.run)
		case r.Task != f.task:
			c.problem("%s: run %d is one of card %s", f.path, f.run, r.Task)
		case f.ending == recordEnding:
			c.records = append(c.records, recordOf{f, r})
		}
	}
	return nil
}

// neverBegun tells whether nothing was written to the output: that of a run that began
// has a line at its head, also where the log was cut back.
func neverBegun(f runFile) bool {
	info, err := os.Lstat(f.path)
	return f.ending == outputEnding && err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// record compares an exit record with what was booked.
func (c *fileCheck) record(of recordOf) {
	r := of.run
	token := r.Token
	if token == "" {
		token = startOf(c.uuid, r.ID)
	}
	rec, err := proc.ReadRecord(of.file.path, token, r.ID)
	switch {
	case errors.Is(err, fs.ErrPermission):
		c.note("%v", err)
	case err != nil:
		c.problem("%v", err)
	case rec == nil, r.Open(), r.HasWorker, r.ExitCode == nil && r.Signal == "":
		// Nothing is booked from it, or not yet.
	case rec.Signal != r.Signal || rec.ExitCode == nil != (r.ExitCode == nil) || rec.ExitCode != nil && int64(*rec.ExitCode) != *r.ExitCode:
		c.problem("%s says %s; run %d of %s is booked with %s", of.file.path, exitWords(exitRecord(*rec).ExitCode, rec.Signal), r.ID, r.Task, exitWords(r.ExitCode, r.Signal))
	}
}

func exitWords(code *int64, signal string) string {
	switch {
	case signal != "":
		return "signal " + signal
	case code != nil:
		return fmt.Sprintf("exit %d", *code)
	}
	return "no exit code"
}

// outputs finds runs that had a supervisor and have no output file, though gc has
// not removed it as far as can be told.
func (c *fileCheck) outputs(s *projection.Store) error {
	set, err := c.a.settings()
	if err != nil {
		return err
	}
	state := readGCState(os.ReadFile(filepath.Join(c.a.boardDir, gcStateName)))
	now := c.a.clock()
	var gone []string
	for next := uint64(1); ; {
		var runs []*projection.Run
		if err := s.View(func(v projection.View) (err error) {
			runs, err = v.RunsFrom(next, gcBatch)
			return err
		}); err != nil {
			return err
		}
		for _, r := range runs {
			next = r.ID + 1
			byGC := r.ID < state.Settled || set.keepOutput != 0 && !r.Open() && r.EndedAt.Add(set.keepOutput) <= now
			if r.SpawnedAt == 0 || byGC {
				continue
			}
			path := c.a.files().output(r.Task, r.ID)
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
				gone = append(gone, fmt.Sprintf("%d of %s", r.ID, r.Task))
			}
		}
		if len(runs) < gcBatch {
			break
		}
	}
	if len(gone) > 0 {
		c.note("%s had a supervisor and no output file is there: %s; it was removed, or the board was restored without it",
			plural(len(gone), "run", "runs"), strings.Join(bounded(gone), ", "))
	}
	return nil
}
