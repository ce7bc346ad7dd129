package eventlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// checkEvents says why events cannot be recorded, nil if they can.
func checkEvents(events []Event) error {
	if len(events) == 0 {
		return errors.New("a commit needs at least one event")
	}
	for i, e := range events {
		v := reflect.ValueOf(e.Data)
		if !v.IsValid() || v.Kind() != reflect.Pointer || v.IsNil() {
			return fmt.Errorf("event %d has no payload", i)
		}
		if want := newPayload(e.Kind()); reflect.TypeOf(want) != v.Type() {
			return fmt.Errorf("event %d: %T is not the payload of kind %q", i, e.Data, e.Kind())
		}
	}
	return nil
}

// encodeBody is deterministic: the same commit gives the same bytes in every
// process and for ever, since the chain is over them.
func encodeBody(c Commit) ([]byte, error) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	err := errors.Join(
		enc.EncodeArrayLen(5),
		enc.EncodeUint(c.Number),
		enc.EncodeUint(c.Seq),
		enc.EncodeInt(int64(c.At)),
		enc.EncodeString(c.Actor),
		enc.EncodeArrayLen(len(c.Events)),
	)
	for _, e := range c.Events {
		err = errors.Join(err,
			enc.EncodeArrayLen(4),
			enc.EncodeString(e.Task),
			enc.EncodeUint(e.Run),
			enc.EncodeString(string(e.Kind())),
			enc.Encode(e.Data),
		)
	}
	if err != nil {
		return nil, fmt.Errorf("encode commit %d: %w", c.Number, err)
	}
	return buf.Bytes(), nil
}

// decodeBody reads what encodeBody wrote and nothing else. The result shares no
// memory with b.
func decodeBody(b []byte) (Commit, error) {
	r := bytes.NewReader(b)
	d := strict{msgpack.NewDecoder(r)}
	d.DisallowUnknownFields(true)
	c, err := d.commit()
	if err != nil {
		return Commit{}, err
	}
	if r.Len() > 0 {
		return Commit{}, fmt.Errorf("%d bytes behind the commit", r.Len())
	}
	return c, nil
}

// strict refuses what the msgpack decoder would bend into shape: nil for a
// number, bytes for a string, an array for a map.
type strict struct{ *msgpack.Decoder }

func (d strict) commit() (c Commit, err error) {
	if err := d.array(5); err != nil {
		return c, err
	}
	if c.Number, err = d.uint(); err != nil {
		return c, fmt.Errorf("number: %w", err)
	}
	if c.Seq, err = d.uint(); err != nil {
		return c, fmt.Errorf("seq: %w", err)
	}
	at, err := d.int()
	if err != nil {
		return c, fmt.Errorf("at: %w", err)
	}
	c.At = Time(at)
	if c.Actor, err = d.text(); err != nil {
		return c, fmt.Errorf("actor: %w", err)
	}
	n, err := d.arrayLen()
	if err != nil {
		return c, err
	}
	if n < 1 {
		return c, errors.New("no events")
	}
	// Not sized by n: the number may be a lie of a damaged byte.
	for i := range n {
		e, err := d.event()
		if err != nil {
			return c, fmt.Errorf("event %d: %w", i, err)
		}
		c.Events = append(c.Events, e)
	}
	return c, nil
}

func (d strict) event() (e Event, err error) {
	if err := d.array(4); err != nil {
		return e, err
	}
	if e.Task, err = d.text(); err != nil {
		return e, fmt.Errorf("task: %w", err)
	}
	if e.Run, err = d.uint(); err != nil {
		return e, fmt.Errorf("run: %w", err)
	}
	kind, err := d.text()
	if err != nil {
		return e, fmt.Errorf("kind: %w", err)
	}
	if e.Data = newPayload(Kind(kind)); e.Data == nil {
		return e, fmt.Errorf("unknown kind %q", kind)
	}
	code, err := d.PeekCode()
	if err != nil {
		return e, err
	}
	if !msgpcode.IsFixedMap(code) && code != msgpcode.Map16 && code != msgpcode.Map32 {
		return e, fmt.Errorf("payload of %s is not a map (%#x)", kind, code)
	}
	if err := d.Decode(e.Data); err != nil {
		return e, fmt.Errorf("payload of %s: %w", kind, err)
	}
	return e, nil
}

func (d strict) arrayLen() (int, error) {
	code, err := d.PeekCode()
	if err != nil {
		return 0, err
	}
	if !msgpcode.IsFixedArray(code) && code != msgpcode.Array16 && code != msgpcode.Array32 {
		return 0, fmt.Errorf("not an array (%#x)", code)
	}
	return d.DecodeArrayLen()
}

func (d strict) array(want int) error {
	n, err := d.arrayLen()
	if err == nil && n != want {
		err = fmt.Errorf("array of %d, want %d", n, want)
	}
	return err
}

func (d strict) uint() (uint64, error) {
	code, err := d.PeekCode()
	if err != nil {
		return 0, err
	}
	if code > msgpcode.PosFixedNumHigh && (code < msgpcode.Uint8 || code > msgpcode.Uint64) {
		return 0, fmt.Errorf("not an unsigned number (%#x)", code)
	}
	return d.DecodeUint64()
}

func (d strict) int() (int64, error) {
	code, err := d.PeekCode()
	if err != nil {
		return 0, err
	}
	if !msgpcode.IsFixedNum(code) && (code < msgpcode.Uint8 || code > msgpcode.Int64) {
		return 0, fmt.Errorf("not a number (%#x)", code)
	}
	return d.DecodeInt64()
}

func (d strict) text() (string, error) {
	code, err := d.PeekCode()
	if err != nil {
		return "", err
	}
	if !msgpcode.IsString(code) {
		return "", fmt.Errorf("not a string (%#x)", code)
	}
	return d.DecodeString()
}

// entryHead starts every value of bucket log: an array of two whose first is 32
// bytes.
var entryHead = []byte{msgpcode.FixedArrayLow | 2, msgpcode.Bin8, 32}

func encodeEntry(hash [32]byte, body []byte) []byte {
	b := append(make([]byte, 0, len(body)+40), entryHead...)
	b = append(b, hash[:]...)
	switch n := len(body); {
	case n <= 0xff:
		b = append(b, msgpcode.Bin8, byte(n))
	case n <= 0xffff:
		b = binary.BigEndian.AppendUint16(append(b, msgpcode.Bin16), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, msgpcode.Bin32), uint32(n))
	}
	return append(b, body...)
}

// decodeEntry accepts exactly what encodeEntry makes; body points into b.
func decodeEntry(b []byte) (hash [32]byte, body []byte, err error) {
	head := len(entryHead)
	if len(b) < head+32+2 || !bytes.Equal(b[:head], entryHead) {
		return hash, nil, errors.New("not an entry of the log")
	}
	hash = [32]byte(b[head : head+32])
	rest := b[head+32:]
	switch code := rest[0]; {
	case code == msgpcode.Bin8:
		body = rest[2:]
	case code == msgpcode.Bin16 && len(rest) >= 3:
		body = rest[3:]
	case code == msgpcode.Bin32 && len(rest) >= 5:
		body = rest[5:]
	}
	if !bytes.Equal(encodeEntry(hash, body), b) {
		return hash, nil, errors.New("an entry of the log with a wrong length")
	}
	return hash, body, nil
}

// openEntry checks an entry against its place in the log and the hash before it.
func openEntry(value []byte, n uint64, prev [32]byte) (Commit, error) {
	hash, body, err := decodeEntry(value)
	if err != nil {
		return Commit{}, err
	}
	if chain(prev, body) != hash {
		return Commit{}, errors.New("its hash does not match its bytes and the commit before it")
	}
	c, err := decodeBody(body)
	if err != nil {
		return Commit{}, err
	}
	if c.Number != n {
		return Commit{}, fmt.Errorf("it calls itself number %d", c.Number)
	}
	c.Hash = hash
	return c, nil
}

// timeOfEntry reads when a commit was made, and nothing behind that.
func timeOfEntry(value []byte) (Time, error) {
	_, body, err := decodeEntry(value)
	if err != nil {
		return 0, err
	}
	d := strict{msgpack.NewDecoder(bytes.NewReader(body))}
	err = d.array(5)
	for range 2 { // number and seq
		if err == nil {
			_, err = d.uint()
		}
	}
	if err != nil {
		return 0, err
	}
	at, err := d.int()
	return Time(at), err
}

// sealEntry gives c its place behind head and returns it with its entry.
func sealEntry(head Head, c Commit) (Commit, []byte, error) {
	if err := checkEvents(c.Events); err != nil {
		return Commit{}, nil, err
	}
	c.Number, c.Seq = head.Commit+1, head.Seq+1
	body, err := encodeBody(c)
	if err != nil {
		return Commit{}, nil, err
	}
	c.Hash = chain(head.Hash, body)
	return c, encodeEntry(c.Hash, body), nil
}

// headOf is the end of a log whose last commit is c.
func headOf(c Commit) Head {
	return Head{Commit: c.Number, Seq: c.Seq + uint64(len(c.Events)) - 1, Hash: c.Hash}
}
