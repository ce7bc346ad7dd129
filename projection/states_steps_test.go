package projection_test

import (
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// stateSteps is the vocabulary of these histories: each is one decision about
// the card in hand.
var stateSteps = map[string]func(*stateStory) error{
	"create":         func(s *stateStory) error { return s.create(projection.Draft{}) },
	"create-triage":  func(s *stateStory) error { return s.create(projection.Draft{Triage: true}) },
	"create-blocked": func(s *stateStory) error { return s.create(projection.Draft{Blocked: true, BlockReason: "why"}) },
	"create-later":   func(s *stateStory) error { return s.create(projection.Draft{NotBefore: s.now.Add(time.Hour)}) },
	"create-child":   func(s *stateStory) error { return s.createChild(0) },
	// A child that is due later than its parent is done.
	"create-child-later": func(s *stateStory) error { return s.createChild(time.Hour) },
	"complete-parent": func(s *stateStory) error {
		return s.update(projection.Complete(s.parent, projection.Answer{}, projection.Writer{}))
	},
	"wait-a-day": func(s *stateStory) error { s.now = s.now.Add(24 * time.Hour); return nil },

	"claim":          func(s *stateStory) error { return s.claim(projection.OriginDispatch, projection.CleanViolation) },
	"claim-complete": func(s *stateStory) error { return s.claim(projection.OriginDispatch, projection.CleanComplete) },
	"claim-review":   func(s *stateStory) error { return s.claim(projection.OriginDispatch, projection.CleanReview) },
	"claim-manual":   func(s *stateStory) error { return s.claim(projection.OriginManual, "") },
	"work": func(s *stateStory) error {
		c := projection.ClaimFor{Task: s.card, Assignee: s.task(s.store, s.card).Starter(), TTL: time.Hour, OnCleanExit: projection.CleanViolation}
		return s.update(projection.Work(c, func(uint64) (projection.Registration, error) {
			return projection.Registration{Token: "token", Worker: eventlog.Process{PID: 7, Fingerprint: "boot:1|7"}}, nil
		}, projection.Writer{}))
	},
	"spawn": func(s *stateStory) error {
		return s.update(projection.Register(projection.Registration{
			Task: s.card, Run: s.run(), Token: "token", Worker: eventlog.Process{PID: 7, Fingerprint: "boot:1|7"},
		}))
	},
	"heartbeat": func(s *stateStory) error { return s.update(projection.Beat(s.card, "on it", s.limits, s.writer())) },
	"complete": func(s *stateStory) error {
		return s.update(projection.Complete(s.card, projection.Answer{Summary: "did it"}, s.writer()))
	},
	"fail": func(s *stateStory) error { return s.update(projection.Fail(s.card, "no", s.limits, s.writer())) },
	"defer": func(s *stateStory) error {
		return s.update(projection.Defer(s.card, time.Hour, "", s.limits, s.writer()))
	},
	"block": func(s *stateStory) error {
		return s.update(projection.Block(s.card, "why", "", projection.DefaultLimits(), s.writer()))
	},
	"unblock": func(s *stateStory) error { return s.update(projection.Unblock(s.card, projection.Writer{})) },
	"comment": func(s *stateStory) error {
		return s.update(projection.AddComment(s.card, "me", "hm", projection.Writer{}))
	},
	"assign": func(s *stateStory) error { return s.update(projection.Assign(s.card, "other", projection.Writer{})) },
	"assign-back": func(s *stateStory) error {
		return s.update(projection.Assign(s.card, "coder", projection.Writer{}))
	},
	"due": func(s *stateStory) error { return s.update(projection.PromoteDue(s.card)) },
	"raise-limit": func(s *stateStory) error {
		l := s.limits
		l.FailureLimit = 9
		return s.update(projection.PromoteParked(s.card, l))
	},

	// The flow between cards. A story has one parent beside the card in hand.
	"link": func(s *stateStory) error {
		if s.parent == "" {
			card := s.card
			if err := s.create(projection.Draft{}); err != nil {
				return err
			}
			s.parent, s.card = s.card, card
		}
		return s.update(projection.Link(s.parent, s.card, s.writer()))
	},
	"unlink": func(s *stateStory) error {
		return s.update(projection.Unlink(s.parent, s.card, projection.Writer{}))
	},
	"reopen-parent": func(s *stateStory) error {
		return s.update(projection.Reopen(s.parent, "wrong", projection.Writer{}))
	},
	"archive-parent": func(s *stateStory) error {
		return s.update(projection.Archive(s.parent, 0, "", "", projection.Writer{}))
	},
	"reopen":  func(s *stateStory) error { return s.update(projection.Reopen(s.card, "wrong", projection.Writer{})) },
	"promote": func(s *stateStory) error { return s.update(projection.Promote(s.card, projection.Writer{})) },
	"put-off": func(s *stateStory) error {
		return s.update(projection.Defer(s.card, time.Hour, "", s.limits, projection.Writer{}))
	},
	"edit-later": func(s *stateStory) error {
		later := s.now.Add(time.Hour)
		return s.update(projection.Edit(s.card, projection.Changes{NotBefore: &later}, s.limits, projection.Writer{}))
	},
	"edit-now": func(s *stateStory) error {
		now := eventlog.Time(0)
		return s.update(projection.Edit(s.card, projection.Changes{NotBefore: &now}, s.limits, projection.Writer{}))
	},
	"edit-retries": func(s *stateStory) error {
		n := int64(9)
		return s.update(projection.Edit(s.card, projection.Changes{MaxRetries: &n}, s.limits, projection.Writer{}))
	},
	"block-dependency": func(s *stateStory) error {
		return s.update(projection.Block(s.card, "why", projection.Dependency, s.limits, s.writer()))
	},
	"block-limit-1": func(s *stateStory) error {
		l := s.limits
		l.BlockLimit = 1
		return s.update(projection.Block(s.card, "why", "", l, s.writer()))
	},
	"request-review": func(s *stateStory) error {
		return s.update(projection.RequestReview(s.card, projection.Answer{}, "coder", nil, s.writer()))
	},
	"approve": func(s *stateStory) error {
		return s.update(projection.Approve(s.card, projection.Answer{}, 0, s.writer()))
	},
	"request-changes": func(s *stateStory) error {
		return s.update(projection.RequestChanges(s.card, "no", 0, s.limits, s.writer()))
	},

	"exit-0":       func(s *stateStory) error { return s.exit(0) },
	"exit-1":       func(s *stateStory) error { return s.exit(1) },
	"exit-75":      func(s *stateStory) error { return s.exit(75) },
	"exit-78":      func(s *stateStory) error { return s.exit(78) },
	"start-failed": func(s *stateStory) error { return s.end(&projection.ExitRecord{Cause: projection.CauseStartFailed}) },
	"told-to-stop": func(s *stateStory) error { return s.end(&projection.ExitRecord{Cause: projection.CauseTerminated}) },
	"gone":         func(s *stateStory) error { return s.end(nil) },
	"cut-off": func(s *stateStory) error {
		return s.update(projection.BookCutOff(projection.CutOff{Run: s.run(), Interrupted: true}, s.limits))
	},
	"not-started": func(s *stateStory) error {
		return s.update(projection.BookCutOff(projection.CutOff{Run: s.run(), Error: "no such program"}, s.limits))
	},
	"extend":              func(s *stateStory) error { return s.update(projection.Extend(s.run())) },
	"expire":              func(s *stateStory) error { return s.update(projection.ExpireManual(s.run())) },
	"end-max_runtime":     func(s *stateStory) error { return s.requestEnd(projection.EndMaxRuntime) },
	"end-heartbeat_stale": func(s *stateStory) error { return s.requestEnd(projection.EndHeartbeatStale) },
	"end-orphaned":        func(s *stateStory) error { return s.requestEnd(projection.EndOrphaned) },
	"end-terminal_grace":  func(s *stateStory) error { return s.requestEnd(projection.EndTerminalGrace) },
	"defer-end":           func(s *stateStory) error { return s.update(projection.DeferEnd(s.run(), "held", "held", 0)) },
	"reclaim": func(s *stateStory) error {
		return s.update(projection.Reclaim(s.card, s.owner(), "because", "alive", false, projection.Writer{}))
	},
	"cancel": func(s *stateStory) error {
		return s.update(projection.Cancel(s.card, s.owner(), "", "alive", projection.Writer{}))
	},
	"archive": func(s *stateStory) error {
		return s.update(projection.Archive(s.card, s.owner(), "", "alive", projection.Writer{}))
	},
	"reclaim-force": func(s *stateStory) error {
		return s.update(projection.Reclaim(s.card, s.owner(), "because", "held", true, projection.Writer{}))
	},
}
