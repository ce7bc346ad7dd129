package projection

import "kanlog/eventlog"

// Work is a pull worker's claim: the process that claims supervises, so the claim
// and its registration are one commit, and no claim is ever left without a worker.
//
// register is told the run and returns who supervises it. It is called inside the
// transaction, since the run's number is not known before, and what the run is told
// by (its lock, its token) is named after it. If nothing is committed after all,
// what register made is nobody's.
func Work(c ClaimFor, register func(run uint64) (Registration, error), w Writer) Decider {
	c.Origin, c.Caps = OriginWork, Caps{}
	claim := Claim(c, w)
	return func(v View, now eventlog.Time) (Decision, error) {
		d, err := claim(v, now)
		if err != nil || d.Refused != nil {
			return d, err
		}
		run, err := v.nextSeq()
		if err != nil {
			return Decision{}, err
		}
		g, err := register(run)
		if err != nil {
			return Decision{}, err
		}
		g.Task, g.Run = c.Task, run
		claimed := overlay{v.r, map[string]map[string][]byte{}}
		if err := Fold(claimed, eventlog.Commit{Number: run, Seq: run, At: now, Events: d.Events}); err != nil {
			return Decision{}, err
		}
		spawned, err := Register(g)(View{claimed}, now)
		if err != nil || spawned.Refused != nil {
			return spawned, err
		}
		d.Events = append(d.Events, spawned.Events...)
		return d, nil
	}
}

// nextSeq is the number that the next event gets. Only a board that can be written
// has one.
func (v View) nextSeq() (uint64, error) {
	tx, ok := v.r.(interface {
		Head() (eventlog.Head, error)
	})
	if !ok {
		return 0, inconsistent("what is only rehearsed has no log to be claimed in")
	}
	head, err := tx.Head()
	return head.Seq + 1, err
}
