package eventlog

// What the events say that concern a card and no process. New fields: see kinds.go.

// Created: a card was put on the board.
type Created struct {
	Title    string   `msgpack:"title" json:"title"`
	Body     string   `msgpack:"body,omitempty" json:"body,omitempty"`
	Assignee string   `msgpack:"assignee,omitempty" json:"assignee,omitempty"`
	Status   string   `msgpack:"status" json:"status"`
	Priority int64    `msgpack:"priority,omitempty" json:"priority,omitempty"`
	Tenant   string   `msgpack:"tenant,omitempty" json:"tenant,omitempty"`
	Tags     []string `msgpack:"tags,omitempty" json:"tags,omitempty"`
	Parents  []string `msgpack:"parents,omitempty" json:"parents,omitempty"`
	Key      string   `msgpack:"key,omitempty" json:"key,omitempty"`
	// MaxRuntimeSeconds is 0 if the profile decides, -1 for no limit.
	MaxRuntimeSeconds int64  `msgpack:"max_runtime_seconds,omitempty" json:"max_runtime_seconds,omitempty"`
	MaxRetries        int64  `msgpack:"max_retries,omitempty" json:"max_retries,omitempty"`
	WorkspaceKind     string `msgpack:"workspace_kind" json:"workspace_kind"`
	WorkspacePath     string `msgpack:"workspace_path,omitempty" json:"workspace_path,omitempty"`
	Branch            string `msgpack:"branch,omitempty" json:"branch,omitempty"`
	NotBefore         Time   `msgpack:"not_before,omitempty" json:"not_before,omitzero"`
	BlockReason       string `msgpack:"block_reason,omitempty" json:"block_reason,omitempty"`
	// Reviewer is the profile that reviews it, empty for whom the settings name.
	Reviewer string `msgpack:"reviewer,omitempty" json:"reviewer,omitempty"`
}

// Linked: the card waits for another one from now on.
type Linked struct {
	Parent string `msgpack:"parent" json:"parent"`
	// To is the card's status afterwards, empty if it stays.
	To string `msgpack:"to,omitempty" json:"to,omitempty"`
}

// Unlinked: the card waits for that one no longer.
type Unlinked struct {
	Parent string `msgpack:"parent" json:"parent"`
	To     string `msgpack:"to,omitempty" json:"to,omitempty"`
}

// Edited: what the card asks for was changed; absent fields stay.
type Edited struct {
	Title    *string `msgpack:"title,omitempty" json:"title,omitempty"`
	Body     *string `msgpack:"body,omitempty" json:"body,omitempty"`
	Priority *int64  `msgpack:"priority,omitempty" json:"priority,omitempty"`
	Tenant   *string `msgpack:"tenant,omitempty" json:"tenant,omitempty"`
	// Tags are all there are from now on; NoTags says that there are none, which
	// an absent list does not.
	Tags              []string `msgpack:"tags,omitempty" json:"tags,omitempty"`
	NoTags            bool     `msgpack:"no_tags,omitempty" json:"no_tags,omitempty"`
	MaxRuntimeSeconds *int64   `msgpack:"max_runtime_seconds,omitempty" json:"max_runtime_seconds,omitempty"`
	MaxRetries        *int64   `msgpack:"max_retries,omitempty" json:"max_retries,omitempty"`
	NotBefore         *Time    `msgpack:"not_before,omitempty" json:"not_before,omitempty"`
	Result            *string  `msgpack:"result,omitempty" json:"result,omitempty"`
	// Reviewer is the profile that reviews, empty for a person.
	Reviewer *string `msgpack:"reviewer,omitempty" json:"reviewer,omitempty"`
	// To is the card's status afterwards, empty if it stays.
	To string `msgpack:"to,omitempty" json:"to,omitempty"`
}

// Assigned: the card has another assignee, empty for none.
type Assigned struct {
	Assignee string `msgpack:"assignee" json:"assignee"`
	From     string `msgpack:"from,omitempty" json:"from,omitempty"`
}

// Promoted: the card may be started now, or waits for one thing less.
type Promoted struct {
	To string `msgpack:"to" json:"to"`
	// Reason is parents_done, due, limit_raised, reassigned or by_hand. By hand
	// it starts at once, with fresh budgets and without its due time.
	Reason string `msgpack:"reason" json:"reason"`
}

// Commented: somebody left a note on the card.
type Commented struct {
	Author string `msgpack:"author" json:"author"`
	Text   string `msgpack:"text" json:"text"`
}

// Archived: the card was put away; cards that waited for it wait no longer.
type Archived struct {
	Reason string `msgpack:"reason,omitempty" json:"reason,omitempty"`
}

// Unblocked: an operator lets the card go on, with fresh budgets.
type Unblocked struct {
	To string `msgpack:"to" json:"to"`
}

// Blocked: the card waits for somebody. With an open run it closes that run.
type Blocked struct {
	Reason string `msgpack:"reason" json:"reason"`
	// BlockKind is needs_input, capability, transient or dependency.
	BlockKind string `msgpack:"block_kind,omitempty" json:"block_kind,omitempty"`
	// To is the card's status afterwards: todo for a dependency that is still
	// open, else empty for blocked (a block_loop_detected in the same commit may
	// change it again).
	To string `msgpack:"to,omitempty" json:"to,omitempty"`
	// RequestedKind is what was asked for where it could not be had: dependency
	// without an open parent.
	RequestedKind string `msgpack:"requested_kind,omitempty" json:"requested_kind,omitempty"`
	Weighed       `msgpack:",inline"`
}

// BlockLoop: workers have blocked the card for the same kind of reason again and
// again, whoever unblocked it in between; it goes to triage.
type BlockLoop struct {
	BlockKind string `msgpack:"block_kind" json:"block_kind"`
	Times     int64  `msgpack:"times" json:"times"`
	Limit     int64  `msgpack:"limit" json:"limit"`
}

// Reopened: a finished card, or one in review, is to be done again, with fresh
// budgets.
type Reopened struct {
	Reason string `msgpack:"reason" json:"reason"`
	To     string `msgpack:"to" json:"to"`
}

// Retracted: what the card was built on was reopened; it waits again. Its run, if
// it had one, was closed before.
type Retracted struct {
	// Ancestor is the card that was reopened.
	Ancestor string `msgpack:"ancestor" json:"ancestor"`
	From     string `msgpack:"from" json:"from"`
	To       string `msgpack:"to" json:"to"`
}

// Fenced: a write was refused because it did not come from the card's open
// run. Written once per run that tried.
type Fenced struct {
	Verb string `msgpack:"verb" json:"verb"`
	// Presented is the run the writer named, 0 if it named none.
	Presented uint64 `msgpack:"presented" json:"presented"`
	// Current is the card's open run at that moment, 0 if none.
	Current uint64 `msgpack:"current" json:"current"`
}
