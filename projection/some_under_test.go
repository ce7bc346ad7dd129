package projection

import (
	"fmt"
	"strings"
	"testing"
)

// Of a board that is bigger than may be looked at, what runs is seen all the same, a
// card is there once, and more of an id shows the cards that bear it.
func TestSomeUnder(t *testing.T) {
	b := newBoard(t)
	for i := range 60 {
		b.create(fmt.Sprint("c", i), func(d *Draft) { d.BlockReason, d.Blocked = "held", i > 0 })
	}
	last := ""
	for i := range 60 {
		last = max(last, b.id(fmt.Sprint("c", i)))
	}
	run := b.task("c0").ID
	b.manual("c0", "ann", 1e12)
	some, err := b.view().SomeUnder("", 5)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range some {
		if seen[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		seen[c.ID] = true
	}
	if !seen[run] || len(some) > 7*5 || len(some) < 5 {
		t.Errorf("%d cards, the running one is there: %v", len(some), seen[run])
	}
	under, err := b.view().SomeUnder(last[:len(last)-1], 5)
	if err != nil || len(under) == 0 {
		t.Fatalf("%v: %d cards", err, len(under))
	}
	for _, c := range under {
		if !strings.HasPrefix(c.ID, last[:len(last)-1]) {
			t.Errorf("%s does not begin with %s", c.ID, last[:len(last)-1])
		}
	}
}
