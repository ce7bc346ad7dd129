package main

import (
	"slices"
	"time"

	"kanlog/projection"
)

// offer is what a completion looks at to offer a card or not.
type offer struct {
	view   projection.View
	task   *projection.Task
	writer projection.Writer
	given  []string // the arguments before
	app    *app
}

// offers say which cards are offered where a verb takes one, by the verb and, where
// that is not an ID, the word of its usage line or the flag. A verb that is not here
// takes any card. Where that can be asked it is the verb's own decider that says
// whether it would be refused, with a reason nobody sees; nothing is written.
var offers = map[string]func(o offer) bool{
	"unblock": would(func(o offer) projection.Decider { return projection.Unblock(o.task.ID, o.writer) }),
	"promote": would(func(o offer) projection.Decider { return projection.Promote(o.task.ID, o.writer) }),
	"assign":  would(func(o offer) projection.Decider { return projection.Assign(o.task.ID, "somebody", o.writer) }),
	"approve": would(func(o offer) projection.Decider {
		return projection.Approve(o.task.ID, projection.Answer{}, 0, o.writer)
	}),
	"request-changes": would(func(o offer) projection.Decider {
		return projection.RequestChanges(o.task.ID, someReason, 0, someLimits, o.writer)
	}),
	"reclaim": would(func(o offer) projection.Decider {
		return projection.Reclaim(o.task.ID, o.task.Owner(), someReason, "", false, o.writer)
	}),
	"cancel": would(func(o offer) projection.Decider {
		return projection.Cancel(o.task.ID, o.task.Owner(), someReason, "", o.writer)
	}),
	"claim": would(func(o offer) projection.Decider {
		return projection.Claim(projection.ClaimFor{Task: o.task.ID, Origin: projection.OriginManual, Holder: "somebody", TTL: time.Minute}, o.writer)
	}),
	"work": would(func(o offer) projection.Decider {
		return projection.Claim(projection.ClaimFor{
			Task: o.task.ID, Origin: projection.OriginWork, Holder: "somebody", Assignee: o.task.Starter(), TTL: time.Minute,
		}, o.writer)
	}),
	// These answer for a run, which may be given by --run behind the id.
	"complete": anyOf(runs, would(func(o offer) projection.Decider {
		return projection.Complete(o.task.ID, projection.Answer{}, o.writer)
	})),
	"heartbeat": runs,
	"fail":      runs,
	"block": anyOf(runs, would(func(o offer) projection.Decider {
		return projection.Block(o.task.ID, someReason, "", someLimits, o.writer)
	})),
	"defer": anyOf(runs, would(func(o offer) projection.Decider {
		return projection.Defer(o.task.ID, time.Minute, someReason, someLimits, o.writer)
	})),
	"request-review": anyOf(runs, would(func(o offer) projection.Decider {
		return projection.RequestReview(o.task.ID, projection.Answer{}, "", nil, o.writer)
	})),

	"reopen":          in(projection.Done),
	"archive":         notIn(projection.Archived),
	"edit":            notIn(projection.Archived),
	"dispatch --id":   in(projection.Ready, projection.Review),
	"create --parent": notIn(projection.Archived),
	"link PARENT":     notIn(projection.Archived),
	"link CHILD":      notIn(projection.Done, projection.Archived, projection.Running),
	"unlink CHILD":    waitsForGiven,
	"runs":            hadRun,
	"logs":            hadRun,
}

// What a decider has to be given and does not decide by here.
const someReason = "-"

var someLimits = projection.DefaultLimits()

func in(statuses ...string) func(offer) bool {
	return func(o offer) bool { return slices.Contains(statuses, o.task.Status) }
}

func notIn(statuses ...string) func(offer) bool {
	return func(o offer) bool { return !slices.Contains(statuses, o.task.Status) }
}

func runs(o offer) bool { return o.task.CurrentRun != 0 }

func hadRun(o offer) bool { return o.task.LastRun != 0 }

func waitsForGiven(o offer) bool {
	parent, err := o.view.Resolve(o.given[0])
	return err == nil && slices.Contains(o.view.Parents(o.task.ID), parent)
}

func anyOf(one, other func(offer) bool) func(offer) bool {
	return func(o offer) bool { return one(o) || other(o) }
}

// would asks a decider whether it would change anything, and keeps nothing of what
// it says.
func would(decide func(offer) projection.Decider) func(offer) bool {
	return func(o offer) bool {
		d, err := decide(o)(o.view, o.app.now)
		return err == nil && d.Refused == nil && len(d.Events) > 0
	}
}

// offered is which cards are offered at this place, nil for any.
func (b *completionBoard) offered() func(projection.View, *projection.Task) bool {
	verb := verbOf(b.cmd)
	fits := offers[verb]
	switch word := placeOf(b.cmd, len(b.given)); {
	case b.flag != "":
		fits = offers[verb+" --"+b.flag]
	case word != "ID":
		fits = offers[verb+" "+word]
	}
	w, err := b.app.writer()
	if fits == nil || err != nil {
		return nil
	}
	return func(v projection.View, t *projection.Task) bool {
		return fits(offer{v, t, w, b.given, b.app})
	}
}
