package proc

import (
	"errors"
	"fmt"
	"syscall"
)

// SignalSupervisor signals the supervisor with this identity, if it is proven
// to be that at this very moment: its pidfd is opened first, the identity is
// proven again after it, and the signal goes to the pidfd. ErrUnproven (and no
// signal) for anything less, for PID 1, ourselves and our ancestors.
func (p *Prober) SignalSupervisor(id Identity, sig syscall.Signal) error {
	if err := p.maySignal(id, id.PID); err != nil {
		return err
	}
	if !parseFingerprint(id.Fingerprint).known {
		return fmt.Errorf("supervisor %d: no fingerprint on record: %w", id.PID, ErrUnproven)
	}
	h, err := p.world.open(id.PID)
	if err != nil {
		return fmt.Errorf("supervisor %d: %w: %w", id.PID, err, ErrUnproven)
	}
	defer h.close()
	if there, why := p.recognise(id, h, nil); there != proven {
		return fmt.Errorf("supervisor %d: %s: %w", id.PID, why, ErrUnproven)
	}
	if err := h.signal(sig); err != nil {
		return fmt.Errorf("signal supervisor %d: %w", id.PID, err)
	}
	return nil
}

// SignalMembers signals what [Prober.Probe] found of an orphaned run, each one
// after the same proof: start tick, and token, run lock or session. One that
// is gone or no longer proven is passed over. It returns how many were
// signalled, and what went wrong with the others. A process that is stopped
// gets SIGCONT after SIGTERM, or it could not obey.
func (p *Prober) SignalMembers(id Identity, ms []Member, sig syscall.Signal) (sent int, err error) {
	var failed []error
	for _, m := range ms {
		if err := p.maySignal(id, m.PID); err != nil {
			failed = append(failed, err)
			continue
		}
		ok, err := p.signalMember(id, m, sig)
		if err != nil {
			failed = append(failed, err)
		}
		if ok {
			sent++
		}
	}
	return sent, errors.Join(failed...)
}

func (p *Prober) signalMember(id Identity, m Member, sig syscall.Signal) (bool, error) {
	h, err := p.world.open(m.PID)
	if isNoProcess(err) || errors.Is(err, errNoLeader) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("process %d: %w", m.PID, err)
	}
	defer h.close()
	s, err := p.readStat(m.PID)
	if isGone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("process %d: %w", m.PID, err)
	}
	if m.Start == "" || s.start != m.Start || s.ended() || !p.stillOfRun(id, m, s) {
		return false, nil
	}
	err = h.signal(sig)
	if err == nil && sig == syscall.SIGTERM {
		err = h.signal(syscall.SIGCONT)
	}
	if isNoProcess(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("signal process %d: %w", m.PID, err)
	}
	return true, nil
}

// stillOfRun asks the witness that named a member again. The session is asked
// only of those it named: see sessionOf for what made it credible.
func (p *Prober) stillOfRun(id Identity, m Member, s stat) bool {
	switch m.By {
	case byToken:
		return id.Token != "" && p.findToken(m.PID, id.Token) == yes
	case byLock:
		return p.findLock(m.PID, id.OutputInode) == yes
	case bySession:
		return id.PID > 1 && s.session == id.PID && m.PID != id.PID
	}
	return false
}

// maySignal refuses targets that no proof can make right.
func (p *Prober) maySignal(id Identity, pid int) error {
	if pid <= 1 {
		return fmt.Errorf("process %d is nobody's worker: %w", pid, ErrUnproven)
	}
	excluded, err := p.exclude()
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrUnproven)
	}
	if excluded[pid] {
		return fmt.Errorf("process %d is this one or an ancestor of it: %w", pid, ErrUnproven)
	}
	at, where, err := p.locate(id)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrUnproven)
	}
	if at != local {
		return fmt.Errorf("process %d: %s: %w", pid, where, ErrUnproven)
	}
	return nil
}
