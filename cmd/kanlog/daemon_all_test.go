package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"kanlog/eventlog"
)

// A board that this process may not write to any more ends the daemon of all boards:
// only another process can go on with it. What is wrong with a board otherwise does not.
func TestFleetEndsAfterAFailedSync(t *testing.T) {
	for _, c := range []struct {
		err  error
		ends bool
	}{
		{fmt.Errorf("board a: %w", eventlog.ErrUnknownOutcome), true},
		{errors.New("board a: damaged"), false},
	} {
		ctx, stop := context.WithCancelCause(context.Background())
		var said bytes.Buffer
		f := &fleet{a: &app{errw: &said}, stop: stop, there: map[string]bool{}, said: map[string]string{}}
		f.ended(ctx, "a", c.err)
		if ended := ctx.Err() != nil && errors.Is(f.why(ctx), eventlog.ErrUnknownOutcome); ended != c.ends {
			t.Errorf("after %v: ended is %v", c.err, ended)
		}
		if told := strings.Contains(said.String(), "the other boards go on"); told == c.ends {
			t.Errorf("after %v it said %q", c.err, said.String())
		}
		stop(nil)
	}
}
