package tick

// Host is what the machine says about new starts.
type Host struct {
	// Others is how many runs are active on the other boards of this home.
	Others int
	// Short says in words why nothing may be started on this machine just now,
	// "" if something may.
	Short string
	// Broken says of each profile whose command cannot be started here why.
	Broken map[string]string
}
