package eventlog

// Payloads about the whole board: their events have no card.

// Paused: dispatchers start nothing from here on.
type Paused struct {
	Reason string `msgpack:"reason,omitempty" json:"reason,omitempty"`
}

// Resumed: they start again.
type Resumed struct{}
