package projection_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// BenchmarkDurableAppend compares one decision through the store (lock, open,
// decide, append, fold, sync, close) with the least that durability can cost:
// 4 KiB appended to a file and fdatasync. The two are measured in turn, since
// a disk is not equally fast all the time. Run it with -benchtime=1x; the
// figures are medians of many samples of that one run.
func BenchmarkDurableAppend(b *testing.B) {
	const samples = 300
	home := b.TempDir()
	if _, err := eventlog.Create(home, "cost", [16]byte{1}, 1, eventlog.Options{}); err != nil {
		b.Fatal(err)
	}
	store := projection.Open(eventlog.BoardDir(home, "cost"), eventlog.Options{})
	now := eventlog.Time(time.Now().UnixMicro())
	card := ""
	for i := range 200 { // a board that is in use
		card = benchCard(b, store, now, uint64(i))
	}
	plain, err := os.OpenFile(filepath.Join(home, "plain"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	page := make([]byte, 4096)

	var comment, create, floor []time.Duration
	for b.Loop() {
		for i := range samples {
			floor = append(floor, benchTime(func() {
				if _, err := plain.Write(page); err != nil {
					b.Fatal(err)
				}
				if err := syscall.Fdatasync(int(plain.Fd())); err != nil {
					b.Fatal(err)
				}
			}))
			comment = append(comment, benchTime(func() {
				if _, err := store.Update("operator:cost", now, projection.AddComment(card, "cost", "one line of text", projection.Writer{})); err != nil {
					b.Fatal(err)
				}
			}))
			create = append(create, benchTime(func() { benchCard(b, store, now, uint64(1000+i)) }))
		}
	}
	b.ReportMetric(medianUS(floor), "plain-us")
	b.ReportMetric(medianUS(comment), "comment-us")
	b.ReportMetric(medianUS(create), "create-us")
	b.ReportMetric(medianUS(comment)/medianUS(floor), "comment-ratio")
	b.ReportMetric(medianUS(create)/medianUS(floor), "create-ratio")
}

func benchCard(b *testing.B, store *projection.Store, now eventlog.Time, n uint64) string {
	d := projection.Draft{Title: "a card", Assignee: "cost", WorkspaceKind: projection.Scratch}
	binary.BigEndian.PutUint64(d.ID[:], n)
	res, err := store.Update("operator:cost", now, projection.Create(d, projection.Writer{}))
	if err != nil {
		b.Fatal(err)
	}
	return res.Task
}

func benchTime(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

// medianUS is the median in microseconds.
func medianUS(samples []time.Duration) float64 {
	slices.Sort(samples)
	return float64(samples[len(samples)/2].Nanoseconds()) / 1e3
}
