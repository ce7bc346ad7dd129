package projection

import "testing"

// TestEndsInWords: a run's error says what is known of the kernel's out-of-memory
// killer and of a core, and neither changes how the end is booked.
func TestEndsInWords(t *testing.T) {
	code := func(n int64) *int64 { return &n }
	const killer = "; meanwhile the kernel's out-of-memory killer "
	for _, tt := range []struct {
		name     string
		rec      ExitRecord
		outcome  string
		failures int64
		says     string
	}{
		{"killed in its group", ExitRecord{Cause: CauseSignaled, Signal: "SIGKILL", OOMKill: OOMInGroup}, OutCrashed, 1,
			"ended by signal SIGKILL" + killer + "ended a process in its control group"},
		{"killed on its host", ExitRecord{Cause: CauseSignaled, Signal: "SIGKILL", OOMKill: OOMOnHost}, OutCrashed, 1,
			"ended by signal SIGKILL" + killer + "ended a process on this host"},
		{"a word of a later program", ExitRecord{Cause: CauseSignaled, Signal: "SIGKILL", OOMKill: "pod"}, OutCrashed, 1,
			"ended by signal SIGKILL" + killer + "was at work"},
		{"its child was", ExitRecord{Cause: CauseExited, ExitCode: code(137), OOMKill: OOMInGroup}, OutCrashed, 1,
			"exited with 137" + killer + "ended a process in its control group"},
		{"and it asks for later", ExitRecord{Cause: CauseExited, ExitCode: code(75), OOMKill: OOMInGroup}, OutRateLimited, 0,
			"exited with 75: try later" + killer + "ended a process in its control group"},
		{"and it can never work", ExitRecord{Cause: CauseExited, ExitCode: code(78), OOMKill: OOMInGroup}, OutCrashed, 1,
			"exited with 78: it can never work" + killer + "ended a process in its control group"},
		{"no killer", ExitRecord{Cause: CauseSignaled, Signal: "SIGKILL"}, OutCrashed, 1, "ended by signal SIGKILL"},
		{"a core", ExitRecord{Cause: CauseSignaled, Signal: "SIGSEGV", CoreDumped: true}, OutCrashed, 1, "ended by signal SIGSEGV (core dumped)"},
		{"no core", ExitRecord{Cause: CauseSignaled, Signal: "SIGSEGV"}, OutCrashed, 1, "ended by signal SIGSEGV"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBoard(t)
			started(b)
			b.must(record(&tt.rec)(b))
			released(t, b, nil)
			r := b.run(b.task("a").LastRun)
			equal(t, "the outcome", r.Outcome, tt.outcome)
			equal(t, "the error", r.Error, tt.says)
			equal(t, "the signal", r.Signal, tt.rec.Signal)
			c, err := b.view().CountsOf(b.task("a"))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "what counts", c.Failures, tt.failures)
		})
	}
}

// TestUntil: the time of a run is over when it was registered and max runtime
// have passed, and never for one that is not limited.
func TestUntil(t *testing.T) {
	const at = 1_000_000_000_000_001
	for _, tt := range []struct {
		r    Run
		want string
	}{
		{Run{SpawnedAt: at, StartedAt: 5}, ""},
		{Run{SpawnedAt: at, MaxRuntimeSeconds: 90}, "2001-09-09T01:48:10.000001Z"},
		{Run{StartedAt: 5, MaxRuntimeSeconds: 90}, "2001-09-09T01:48:11.000001Z"},
	} {
		got := ""
		if u := tt.r.Until(at + 1_000_000); !u.IsZero() {
			got = u.Format("2006-01-02T15:04:05.999999Z07:00")
		}
		equal(t, "the deadline", got, tt.want)
	}
}
