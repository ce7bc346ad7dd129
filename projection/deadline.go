package projection

import (
	"time"

	"kanlog/eventlog"
)

// Until is when the time of a run with a worker is over: max runtime after
// spawned, the moment by which a tick judges it. registered stands for that of a
// run that is being registered right now. It is zero for a run whose time is not
// limited.
func (r *Run) Until(registered eventlog.Time) time.Time {
	if r.MaxRuntimeSeconds <= 0 {
		return time.Time{}
	}
	since := r.SpawnedAt
	if since == 0 {
		since = registered
	}
	return since.Add(time.Duration(r.MaxRuntimeSeconds) * time.Second).Std()
}
