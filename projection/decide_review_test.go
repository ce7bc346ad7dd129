package projection

import (
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

// reviewing is card a with a reviewer at work: run 2 handed it in, run 3 looks.
func reviewing(b *board) { reviewedBy("rev")(b); b.startReview("a") }

func TestRequestReview(t *testing.T) {
	request := func(reviewer string, w func(*board) Writer) func(*board) Decider {
		return func(b *board) Decider {
			return RequestReview(b.id("a"), Answer{Summary: "look", Result: "r", Metadata: []byte(`{"n": 1.0}`)}, reviewer, nil, w(b))
		}
	}
	nobody := func(*board) Writer { return Writer{} }
	settings := func(b *board) { card(b); b.start("a", func(c *ClaimFor) { c.Reviewer = "rev" }) }
	reviewer := func(want string) func(*testing.T, *board, []eventlog.Event) {
		return func(t *testing.T, b *board, events []eventlog.Event) {
			equal(t, "the reviewer", one[*eventlog.ReviewRequested](t, events).Reviewer, want)
			equal(t, "on the card", b.task("a").Reviewer, want)
		}
	}
	decide(t, []decision{
		{name: "by its worker, for a person", given: started, when: request("", own), want: "review_requested",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				c, r := b.task("a"), b.run(2)
				equal(t, "the status", c.Status, Review)
				equal(t, "in review", c.ReviewedRun, 2)
				equal(t, "the outcome", r.Outcome, OutReviewRequested)
				equal(t, "the words", r.Summary+r.Result+string(r.Metadata), `lookr{"n": 1.0}`)
				equal(t, "the worker stays on record", c.Worker, 2)
				equal(t, "the card has no result yet", c.Result, "")
				why, err := b.view().Why(c, b.now, Admission{})
				equal(t, "the error", err, nil)
				equal(t, "why", why, "waits for a review of run 2 by a person: kanlog approve "+c.ID+", or kanlog request-changes "+c.ID+" REASON")
				b.ends(2, 0)
				equal(t, "startable by a dispatcher", b.task("a").Startable(b.now), false)
			}},
		{name: "for a profile", given: started, when: request("rev", own), want: "review_requested",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				reviewer("rev")(t, b, events)
				equal(t, "startable beside the process", b.task("a").Startable(b.now), false)
				b.ends(2, 0)
				equal(t, "startable when that is gone", b.task("a").Startable(b.now), true)
				why, err := b.view().Why(b.task("a"), b.now, Admission{Profiles: map[string]bool{"coder": true}})
				if err != nil || !strings.Contains(why, `no profile "rev" in the settings`) {
					t.Errorf("why: %q, %v", why, err)
				}
			}},
		{name: "for whom the settings name", given: settings, when: request("", own), want: "review_requested", then: reviewer("rev")},
		{name: "for another than the settings name", given: settings, when: request("zoe", own), want: "review_requested", then: reviewer("zoe")},
		{name: "for whom looked at it before", want: "review_requested", when: request("", own), then: reviewer("zoe"),
			given: func(b *board) {
				reviewedBy("zoe")(b)
				b.must(RequestChanges(b.id("a"), "no", 0, b.limits, Writer{}))
				b.start("a", func(c *ClaimFor) { c.Reviewer = "rev" })
			}},
		{name: "of a card nobody claimed: a run of its own", given: card, when: request("", nobody), want: "review_requested",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				r := b.run(2)
				equal(t, "its lane, its outcome", r.Lane+" "+r.Outcome, LaneReady+" "+OutReviewRequested)
				equal(t, "the open run", b.task("a").CurrentRun, 0)
			}},
		{name: "beside the process of the run before", given: func(b *board) { started(b); b.must(Fail(b.id("a"), "x", b.limits, own(b))) }, when: request("", nobody),
			kind: ErrState, says: "the process of run 2 has not ended"},
		{name: "by a reviewer", given: reviewing, when: request("", own), kind: ErrState, says: "in review already (of run 2); approve it or request changes"},
		{name: "before a parent that it linked", given: func(b *board) { couple(b); b.must(Link(b.id("p"), b.id("a"), b.worker("a", b.start("a")))) }, when: request("", own),
			kind: ErrState, says: "cannot be done before its parent"},
		{name: "a reviewer with a blank", given: card, when: request("rev ", nobody), kind: ErrInvalid, says: "the reviewer"},
		{name: "a summary too long", given: card, kind: ErrInvalid, says: "the summary has",
			when: func(b *board) Decider {
				return RequestReview(b.id("a"), Answer{Summary: strings.Repeat("x", MaxSummary+1)}, "", nil, Writer{})
			}},
		{name: "late", given: func(b *board) { started(b); b.must(request("", own)(b)) }, when: request("", own), want: "fenced", kind: ErrFenced, says: "it ended as review_requested"},
	})
}

func TestApprove(t *testing.T) {
	approve := func(seen uint64, w func(*board) Writer) func(*board) Decider {
		return func(b *board) Decider { return Approve(b.id("a"), Answer{Summary: "fine"}, seen, w(b)) }
	}
	nobody := func(*board) Writer { return Writer{} }
	done := func(t *testing.T, b *board, events []eventlog.Event) {
		equal(t, "the run that was approved", one[*eventlog.Completed](t, events).Reviewed, 2)
		equal(t, "the status", b.task("a").Status, Done)
		equal(t, "the result is the work's, not the review's", b.task("a").Result, "r")
		equal(t, "in review", b.task("a").ReviewedRun, 0)
	}
	decide(t, []decision{
		{name: "by a person: a run of its own in the lane", given: reviewedBy(""), when: approve(0, nobody), want: "completed by approval",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				done(t, b, events)
				r := b.run(b.task("a").LastRun)
				equal(t, "its lane, outcome and words", r.Lane+" "+r.Outcome+" "+r.Summary, LaneReview+" "+OutCompleted+" fine")
				equal(t, "what it looked at", r.Reviews, 2)
			}},
		{name: "by the reviewer", given: reviewing, when: approve(0, own), want: "completed by approval", then: done},
		{name: "with a result of its own", given: reviewedBy(""), want: "completed by approval",
			when: func(b *board) Decider { return Approve(b.id("a"), Answer{Result: "mended"}, 2, Writer{}) },
			then: func(t *testing.T, b *board, _ []eventlog.Event) { equal(t, "the result", b.task("a").Result, "mended") }},
		{name: "frees what waited", given: func(b *board) { reviewedBy("")(b); b.under("child", "a") }, when: approve(2, nobody), want: "completed by approval; promoted>ready parents_done"},
		{name: "on a manual claim of the review", given: func(b *board) { reviewedBy("rev")(b); b.manual("a", "ann", time.Hour) }, when: approve(0, nobody), want: "completed by approval", then: done},
		{name: "what was handed in since it was looked at", kind: ErrState, says: "what is in review is the work of run 4, not of run 2; look again", when: approve(2, nobody),
			given: func(b *board) {
				reviewedBy("")(b)
				b.must(RequestChanges(b.id("a"), "no", 0, b.limits, Writer{}))
				reviewedBy("")(b)
			}},
		{name: "its own work, by the worker that still runs", given: started, when: approve(0, own), kind: ErrState, says: "approve refused: run 2 works on the card and does not review it"},
		{name: "its own work, handed in", given: func(b *board) { started(b); b.must(RequestReview(b.id("a"), Answer{}, "", nil, own(b))) }, when: approve(0, own),
			want: "fenced", kind: ErrFenced, says: "not open any more"},
		{name: "by a person beside the process that handed it in", given: func(b *board) { started(b); b.must(RequestReview(b.id("a"), Answer{}, "", nil, own(b))) }, when: approve(0, nobody),
			kind: ErrState, says: "the process of run 2 has not ended"},
		{name: "by a person while a reviewer runs", given: reviewing, when: approve(0, nobody), kind: ErrState, says: "use reclaim first"},
		{name: "beside a parent that the reviewer linked", kind: ErrState, says: "cannot be done before its parent", when: approve(0, own),
			given: func(b *board) { reviewing(b); b.create("p"); b.must(Link(b.id("p"), b.id("a"), own(b))) }},
		{name: "of a blocked card", given: func(b *board) { reviewedBy("")(b); b.must(Block(b.id("a"), "x", "", b.limits, Writer{})) }, when: approve(0, nobody), kind: ErrState, says: "not in review but blocked"},
		{name: "metadata that is none", given: reviewedBy(""), kind: ErrInvalid, says: "not JSON",
			when: func(b *board) Decider { return Approve(b.id("a"), Answer{Metadata: []byte("{")}, 0, Writer{}) }},
	})
}

func TestRequestChanges(t *testing.T) {
	changes := func(seen uint64, w func(*board) Writer) func(*board) Decider {
		return func(b *board) Decider { return RequestChanges(b.id("a"), "no tests", seen, b.limits, w(b)) }
	}
	nobody := func(*board) Writer { return Writer{} }
	decide(t, []decision{
		{name: "by the reviewer: back to who worked on it", given: reviewing, when: changes(2, own), want: "changes_requested>ready",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				c := b.task("a")
				equal(t, "the run that was sent back", one[*eventlog.ChangesRequested](t, events).Reviewed, 2)
				equal(t, "in review", c.ReviewedRun, 0)
				equal(t, "the starter", c.Starter(), "coder")
				equal(t, "the lane", c.Lane(), LaneReady)
				equal(t, "what the next attempt learns", c.LastError, "no tests")
				equal(t, "the outcome", b.run(3).Outcome, OutChangesRequested)
				equal(t, "startable beside the reviewer's process", c.Startable(b.now), false)
				b.ends(3, 0)
				equal(t, "startable when that is gone", b.task("a").Startable(b.now), true)
			}},
		{name: "by a person", given: reviewedBy("rev"), when: changes(0, nobody), want: "changes_requested>ready",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the run's lane", b.run(b.task("a").LastRun).Lane, LaneReview)
			}},
		{name: "with sub-tasks that the reviewer made", given: func(b *board) { reviewing(b); b.create("p"); b.must(Link(b.id("p"), b.id("a"), own(b))) }, when: changes(0, own), want: "changes_requested>todo"},
		{name: "of other work", given: reviewedBy("rev"), when: changes(9, nobody), kind: ErrState, says: "not of run 9; look again"},
		{name: "by who works on it", given: started, when: changes(0, own), kind: ErrState, says: "run 2 works on the card and does not review it"},
		{name: "for no reason", given: reviewedBy(""), kind: ErrInvalid, says: "request-changes needs a reason",
			when: func(b *board) Decider { return RequestChanges(b.id("a"), " ", 0, b.limits, Writer{}) }},
		{name: "for a reason too long", given: reviewedBy(""), kind: ErrInvalid, says: "the reason has",
			when: func(b *board) Decider {
				return RequestChanges(b.id("a"), strings.Repeat("x", MaxReason+1), 0, b.limits, Writer{})
			}},
	})
}

// Whatever ends a reviewer's run but its answer, the card waits for its review again.
func TestAReviewThatEndsOtherwise(t *testing.T) {
	by := func(e Ending) func(*board) Decider {
		return func(b *board) Decider { e.Run = 3; return BookEnd(e, b.limits) }
	}
	clean := func(how string) func(*board) {
		return func(b *board) {
			reviewedBy("rev")(b)
			b.start("a", func(c *ClaimFor) { c.Assignee, c.OnCleanExit = "rev", how })
		}
	}
	asked := func(reason string) func(*board) {
		return func(b *board) { reviewing(b); b.must(RequestEnd(EndRequest{Run: 3, Reason: reason})) }
	}
	waits := func(t *testing.T, b *board, _ []eventlog.Event) {
		c := b.task("a")
		equal(t, "in review", c.ReviewedRun, 2)
		equal(t, "the starter", c.Starter(), "rev")
		b.wait(time.Hour)
		equal(t, "startable later", c.Startable(b.now), true)
	}
	none := func(b *board) { reviewedBy("rev")(b); b.claim("a", func(c *ClaimFor) { c.Assignee = "rev" }) }
	decide(t, []decision{
		{name: "crash", given: reviewing, when: by(Ending{Record: exited(1)}), want: "crashed>review", then: waits},
		{name: "no trace", given: reviewing, when: by(Ending{}), want: "crashed>review", then: waits},
		{name: "reboot", given: reviewing, when: by(Ending{OtherBoot: true}), want: "reclaimed>review interrupted", then: waits},
		{name: "try later", given: reviewing, when: by(Ending{Record: exited(ExitTryLater)}), want: "rate_limited>review", then: waits},
		{name: "exit 0 without an answer", given: reviewing, when: by(Ending{Record: exited(0)}), want: "protocol_violation>review", then: func(t *testing.T, b *board, e []eventlog.Event) {
			waits(t, b, e)
			equal(t, "what would have been one", strings.Contains(b.run(3).Error, "(approve, request-changes, block, fail or defer)"), true)
		}},
		{name: "exit 0 where that means complete", given: clean(CleanComplete), when: by(Ending{Record: exited(0)}), want: "completed by clean_exit"},
		{name: "exit 0 where that means review: nobody reviews a review", given: clean(CleanReview), when: by(Ending{Record: exited(0)}), want: "protocol_violation>review", then: waits},
		{name: "never started", given: none, when: func(b *board) Decider { return BookCutOff(CutOff{Run: 3, Error: "x"}, b.limits) }, want: "spawn_failed>review", then: waits},
		{name: "over its time", given: asked(EndMaxRuntime), when: by(Ending{}), want: "timed_out>review", then: waits},
		{name: "silent", given: asked(EndHeartbeatStale), when: by(Ending{}), want: "stale>review", then: waits},
		{name: "fail", given: reviewing, when: func(b *board) Decider { return Fail(b.id("a"), "x", b.limits, own(b)) }, want: "failed>review"},
		{name: "defer", given: reviewing, when: func(b *board) Decider { return Defer(b.id("a"), time.Minute, "", b.limits, own(b)) }, want: "deferred>review"},
		{name: "reclaim", given: none, when: func(b *board) Decider { return Reclaim(b.id("a"), 3, "x", "", false, Writer{}) }, want: "reclaimed>review", then: waits},
		{name: "reclaim of a worker", given: func(b *board) { reviewing(b); b.must(Reclaim(b.id("a"), 3, "x", "", false, Writer{})) }, when: by(Ending{}), want: "reclaimed>review", then: waits},
		{name: "reclaim by force", given: reviewing, when: func(b *board) Decider { return Reclaim(b.id("a"), 3, "x", "", true, Writer{}) }, want: "reclaimed>review forced", then: waits},
		{name: "cancel: held, then its review", given: none, when: func(b *board) Decider { return Cancel(b.id("a"), 3, "", "", Writer{}) }, want: "reclaimed>blocked; blocked",
			then: func(t *testing.T, b *board, e []eventlog.Event) {
				b.unblocks()
				equal(t, "the status then", b.task("a").Status, Review)
				waits(t, b, e)
			}},
		{name: "a manual claim that ran out", given: func(b *board) { reviewedBy("rev")(b); b.manual("a", "ann", time.Minute); b.wait(time.Hour) },
			when: func(b *board) Decider { return ExpireManual(3) }, want: "reclaimed>blocked; blocked",
			then: func(t *testing.T, b *board, e []eventlog.Event) { b.unblocks(); waits(t, b, e) }},
		{name: "archive", given: none, when: func(b *board) Decider { return Archive(b.id("a"), 3, "", "", Writer{}) }, want: "reclaimed>review; archived",
			then: func(t *testing.T, b *board, _ []eventlog.Event) { equal(t, "in review", b.task("a").ReviewedRun, 0) }},
		{name: "block", given: reviewing, when: func(b *board) Decider { return Block(b.id("a"), "x", "", b.limits, own(b)) }, want: "blocked",
			then: func(t *testing.T, b *board, e []eventlog.Event) { b.ends(3, 0); b.unblocks(); waits(t, b, e) }},
	})
}

// A manual claim takes a review that has no reviewer, and the lane shows on its run.
func TestAPersonClaimsAReview(t *testing.T) {
	b := newBoard(t)
	reviewedBy("")(b)
	r := b.run(b.manual("a", "ann", time.Hour))
	equal(t, "lane and reviewed run", r.Lane, LaneReview)
	equal(t, "the run it reviews", r.Reviews, 2)
	if _, err := b.try(operator, RequestReview(b.id("a"), Answer{}, "", nil, Writer{})); err == nil {
		t.Error("a review was handed in for a review")
	}
	b.must(RequestChanges(b.id("a"), "no", 2, b.limits, Writer{}))
	equal(t, "the status", b.task("a").Status, Ready)
}

// Two workers that do not agree would go on for ever; a person may send a card back
// as often as it takes.
func TestReviewRoundsAreBounded(t *testing.T) {
	b := newBoard(t)
	card(b)
	for range MaxRounds {
		reviewedBy("rev")(b)
		b.must(RequestChanges(b.id("a"), "no", 0, b.limits, Writer{}))
	}
	round := func() {
		run := b.start("a")
		b.must(RequestReview(b.id("a"), Answer{}, "rev", nil, b.worker("a", run)))
		b.ends(run, 0)
		run = b.startReview("a")
		b.must(RequestChanges(b.id("a"), "no tests", 0, b.limits, b.worker("a", run)))
		b.ends(run, 0)
	}
	for range MaxRounds - 1 {
		round()
		equal(t, "the status between", b.task("a").Status, Ready)
	}
	round()
	c := b.task("a")
	equal(t, "the status", c.Status, Blocked)
	equal(t, "the reason", c.BlockReason, "reviews sent it back 10 times; the last: no tests")
	equal(t, "parked: no limit frees it", c.ParkedLimit, 0)
	b.unblocks()
	round()
	equal(t, "the status after an unblock and a round", b.task("a").Status, Ready)
}

// A failure before a review still counts after it, and so does one of the reviewer.
func TestFailuresCountOverReviews(t *testing.T) {
	b := newBoard(t)
	card(b)
	b.limits.FailureLimit = 3
	b.attempt("a", 1)
	b.wait(time.Hour)
	run := b.start("a")
	b.must(RequestReview(b.id("a"), Answer{}, "rev", nil, b.worker("a", run)))
	b.ends(run, 0)
	b.ends(b.startReview("a"), 1)
	b.wait(time.Hour)
	run = b.startReview("a")
	b.must(RequestChanges(b.id("a"), "no", 0, b.limits, b.worker("a", run)))
	b.ends(run, 0)
	equal(t, "the status", b.task("a").Status, Ready)
	b.attempt("a", 1)
	equal(t, "the status after the third failure in all", b.task("a").Status, Blocked)
	equal(t, "the limit it is parked under", b.task("a").ParkedLimit, 3)
}

// A clean exit hands in or completes nothing that waits for another card.
func TestACleanExitBesideAnOpenParent(t *testing.T) {
	exits := func(b *board) Decider { return BookEnd(Ending{Run: b.owner("a"), Record: exited(0)}, b.limits) }
	for _, how := range []string{CleanComplete, CleanReview, CleanViolation} {
		decide(t, []decision{{name: how, when: exits, want: "protocol_violation>todo",
			given: func(b *board) {
				couple(b)
				run := b.start("a", func(c *ClaimFor) { c.OnCleanExit = how })
				b.must(Link(b.id("p"), b.id("a"), b.worker("a", run)))
			},
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "it says what would have been right", strings.Contains(b.task("a").LastError, "waits for another card (block --kind dependency says so)"), true)
			}}})
	}
}
