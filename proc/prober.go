package proc

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Prober gathers evidence. Make one per tick: what it has read of /proc it
// remembers and serves to every run, and it is stale when the tick is over.
// It is not safe for concurrent use.
type Prober struct {
	world    world
	here     *surroundings
	hereErr  error
	scan     *scan
	excluded map[int]bool
	ahead    map[Identity]seen
}

// seen is what one look at a number found.
type seen struct {
	there presence
	why   string
}

// NewProber returns a prober for the calling process.
func NewProber() *Prober { return &Prober{world: newWorld()} }

// Probe says what is left of the run whose supervisor has this identity. It
// signals nothing and changes nothing, apart from asking the run lock for an
// instant. /proc is searched only if the supervisor is proven gone.
func (p *Prober) Probe(id Identity) Evidence {
	if id.Fingerprint == "" {
		return held("recorded without any fingerprint")
	}
	if id.PID <= 0 {
		return held("recorded without a process number")
	}
	at, where, err := p.locate(id)
	if err != nil {
		return held("this machine cannot be told: " + err.Error())
	}
	switch at {
	case otherBoot:
		return Evidence{Answer: Dead, Why: where, OtherBoot: true}
	case foreignMachine:
		return concludeForeign(at, where, lockUnknown, nil)
	case foreign:
		lock, err := p.askLock(id)
		e := concludeForeign(at, where, lock, err)
		if e.Answer == Dead {
			// A container's processes are seen from outside of it, under other
			// numbers: one that closed its output still has the token.
			if seen := p.seesToken(id); seen != "" {
				return Evidence{Answer: Held, Why: e.Why + "; but " + seen, Foreign: true}
			}
		}
		return e
	}
	there, why := p.lookOnce(id)
	switch there {
	case proven:
		return Evidence{Answer: Alive, Why: "supervisor " + why}
	case gone, replaced:
		return p.search(id, fmt.Sprintf("supervisor %d is gone (%s)", id.PID, why), there == gone)
	}
	return held(fmt.Sprintf("supervisor %d: %s", id.PID, why))
}

// ProbeClaimer says whether the process that made a claim is there. It has no
// token, lock or tree, so the answer is never Orphaned; a foreign one is held
// with LockUnknown.
func (p *Prober) ProbeClaimer(id Identity) Evidence {
	id.Token, id.OutputPath, id.OutputInode = "", "", ""
	if id.Fingerprint == "" {
		return held("recorded without any fingerprint")
	}
	if id.PID <= 0 {
		return held("recorded without a process number")
	}
	at, where, err := p.locate(id)
	if err != nil {
		return held("this machine cannot be told: " + err.Error())
	}
	switch at {
	case otherBoot:
		return Evidence{Answer: Dead, Why: where, OtherBoot: true}
	case foreign, foreignMachine:
		return Evidence{Answer: Held, Why: where, Foreign: true, LockUnknown: true}
	}
	there, why := p.look(id)
	why = fmt.Sprintf("claimer %d: %s", id.PID, why)
	switch there {
	case proven:
		return Evidence{Answer: Alive, Why: why}
	case gone, replaced:
		return Evidence{Answer: Dead, Why: why}
	}
	return held(why)
}

func (p *Prober) locate(id Identity) (whereabouts, string, error) {
	if p.here == nil && p.hereErr == nil {
		p.here, p.hereErr = survey(p.world)
	}
	if p.hereErr != nil {
		return 0, "", p.hereErr
	}
	at, why := locate(id, parseFingerprint(id.Fingerprint), *p.here)
	return at, why, nil
}

func survey(w world) (*surroundings, error) {
	var (
		s   surroundings
		err error
	)
	if s.machine, err = w.machine(); err != nil {
		return nil, fmt.Errorf("machine id: %w", err)
	}
	if s.boot, err = w.bootID(); err != nil {
		return nil, fmt.Errorf("boot id: %w", err)
	}
	if s.pidNS, err = w.pidNS(); err != nil {
		return nil, fmt.Errorf("PID namespace: %w", err)
	}
	if s.first, err = startOfFirst(w); err != nil {
		return nil, fmt.Errorf("PID 1: %w", err)
	}
	return &s, nil
}

// lookOnce is look, or what Ahead saw. That is used up: who asks again wants to know
// how it is by then.
func (p *Prober) lookOnce(id Identity) (presence, string) {
	if s, ok := p.ahead[id]; ok {
		delete(p.ahead, id)
		return s.there, s.why
	}
	return p.look(id)
}

// Ahead looks at many supervisors at once, with all processors, for the calls of Probe
// that follow. A thousand workers are a thousand times four calls of the system.
func (p *Prober) Ahead(ids []Identity) {
	const each = 32 // that are not worth another thread
	n := min(runtime.GOMAXPROCS(0), len(ids)/each)
	if n < 2 {
		return
	}
	found := make([]seen, len(ids))
	var wg sync.WaitGroup
	for first := range n {
		wg.Go(func() {
			q := NewProber() // it has buffers of its own
			for i := first; i < len(ids); i += n {
				found[i].there, found[i].why = q.look(ids[i])
			}
		})
	}
	wg.Wait()
	p.ahead = make(map[Identity]seen, len(ids))
	for i, id := range ids {
		p.ahead[id] = found[i]
	}
}

// look tells whether the number of an identity is still that process.
func (p *Prober) look(id Identity) (presence, string) {
	var (
		there presence
		why   string
	)
	for range maxLooks {
		h, err := p.world.open(id.PID)
		there, why = p.recognise(id, h, err)
		if h != nil {
			h.close()
		}
		if there != contradictory {
			return there, why
		}
	}
	return unsure, why
}

// recognise reads what the verdict on an opened number needs, and no more.
func (p *Prober) recognise(id Identity, h handle, openErr error) (presence, string) {
	start := parseFingerprint(id.Fingerprint).start
	s := sighting{openErr: openErr}
	s.stat, s.statErr = p.readStat(id.PID)
	if h != nil {
		s.exited, s.exitErr = h.exited()
	}
	if h != nil && id.Token != "" && s.statErr == nil && (start == "" || s.stat.start == start) {
		s.token = p.findToken(id.PID, id.Token)
		// Who claims and supervises in one process got its token after it was
		// started: /proc does not show it, its lock does.
		if s.token != yes {
			s.lock = p.findLock(id.PID, id.OutputInode)
		}
	}
	return recognise(s, start, id.Token != "")
}

func (p *Prober) readStat(pid int) (stat, error) {
	line, err := p.world.stat(pid)
	if err != nil {
		return stat{}, err
	}
	return parseStat(line)
}

// findToken looks for a token in an environment. An empty one is no answer:
// that is how a process looks which is just ending.
func (p *Prober) findToken(pid int, token string) finding {
	env, err := p.world.environ(pid)
	if err != nil || len(env) == 0 {
		return unasked
	}
	if tokenOf(env) == token {
		return yes
	}
	return no
}

func tokenOf(env []byte) string {
	const name = TokenVariable + "="
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.HasPrefix(v, []byte(name)) {
			return string(v[len(name):])
		}
	}
	return ""
}

// findLock tells whether a process holds the run lock on the file with that
// inode.
func (p *Prober) findLock(pid int, inode string) finding {
	if inode == "" {
		return no
	}
	files, err := p.world.files(pid)
	if err != nil {
		return unasked
	}
	for _, f := range files {
		if f.inode != inode {
			continue
		}
		switch held, err := p.world.holdsShared(pid, f.fd); {
		case err != nil && !isGone(err):
			return unasked
		case held:
			return yes
		}
	}
	return no
}

func (p *Prober) askLock(id Identity) (lockState, error) {
	if id.OutputPath == "" || id.OutputInode == "" {
		return lockUnknown, nil
	}
	return p.world.askLock(id.OutputPath, id.OutputInode)
}

// exclude returns ourselves and our ancestors: they are never counted among
// the processes of a run and never signalled. PID 1 is nobody's worker.
func (p *Prober) exclude() (map[int]bool, error) {
	if p.excluded != nil {
		return p.excluded, nil
	}
	set := map[int]bool{0: true, 1: true}
	for pid := p.world.self(); !set[pid]; {
		set[pid] = true
		s, err := p.readStat(pid)
		if isHidden(err) && pid != p.world.self() {
			break // an ancestor of another user; what is above is not ours to see
		}
		if err != nil {
			return nil, fmt.Errorf("our ancestors cannot be told: %w", err)
		}
		pid = s.parent
	}
	p.excluded = set
	return set, nil
}

// ErrUnproven is returned when a signal was refused because the identity of
// its target is not proven at this moment: nothing was signalled.
var ErrUnproven = errors.New("identity not proven; nothing was signalled")
