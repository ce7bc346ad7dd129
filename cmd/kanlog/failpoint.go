package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A failpoint ends or delays this process at a named point, so that a scenario
// can pull the plug exactly there: KANLOG_FAILPOINT=point=action[,...] where
// action is kill (SIGKILL), stop (SIGSTOP), exit:CODE or sleep:DURATION, and
// point may end in @N for its N-th passing. Workers do not inherit it.
type failpoints struct {
	mu   sync.Mutex
	acts map[string][]failAct
	seen map[string]int
}

type failAct struct {
	nth int // 0: each time
	do  func()
}

func parseFailpoints(s string) (*failpoints, error) {
	f := &failpoints{acts: map[string][]failAct{}, seen: map[string]int{}}
	if s == "" {
		return f, nil
	}
	for _, part := range strings.Split(s, ",") {
		point, action, ok := strings.Cut(part, "=")
		if !ok {
			return nil, usage("KANLOG_FAILPOINT: %q is not point=action", part)
		}
		var a failAct
		if name, n, ok := strings.Cut(point, "@"); ok {
			var err error
			if a.nth, err = strconv.Atoi(n); err != nil || a.nth < 1 {
				return nil, usage("KANLOG_FAILPOINT: %q is no count", n)
			}
			point = name
		}
		verb, arg, _ := strings.Cut(action, ":")
		switch verb {
		case "kill":
			a.do = func() { signalSelf(syscall.SIGKILL) }
		case "stop":
			a.do = func() { signalSelf(syscall.SIGSTOP) }
		case "exit":
			code, err := strconv.Atoi(arg)
			if err != nil {
				return nil, usage("KANLOG_FAILPOINT: %q is no exit code", arg)
			}
			a.do = func() { os.Exit(code) }
		case "sleep":
			d, err := parseDuration(arg)
			if err != nil {
				return nil, fmt.Errorf("KANLOG_FAILPOINT: %w", err)
			}
			a.do = func() { time.Sleep(d) }
		default:
			return nil, usage("KANLOG_FAILPOINT: %q is none of kill, stop, exit:CODE, sleep:DURATION", action)
		}
		f.acts[point] = append(f.acts[point], a)
	}
	return f, nil
}

// signalSelf does not return before a SIGKILL has taken effect, or a SIGSTOP
// has and somebody let the process go on. kill(2) alone promises neither where
// there are several threads: this one might run on past the point meanwhile.
func signalSelf(s syscall.Signal) {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	_ = syscall.Kill(os.Getpid(), s)
	if s == syscall.SIGKILL {
		select {}
	}
	<-goOn
}

// hit passes a point.
func (f *failpoints) hit(point string) {
	f.mu.Lock()
	f.seen[point]++
	n := f.seen[point]
	acts := f.acts[point]
	f.mu.Unlock()
	for _, a := range acts {
		if a.nth == 0 || a.nth == n {
			a.do()
		}
	}
}
