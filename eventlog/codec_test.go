package eventlog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// kinds reads the constants of kinds.go, so that a kind which was forgotten in
// newPayload is found.
func kinds(t testing.TB) (all []Kind) {
	file, err := parser.ParseFile(token.NewFileSet(), "kinds.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.ValueSpec); ok && len(s.Values) == 1 {
			if lit, ok := s.Values[0].(*ast.BasicLit); ok {
				k, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, Kind(k))
			}
		}
		return true
	})
	return all
}

// fill sets every field of a payload to something of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.String:
		v.SetString("text " + strconv.Itoa(*n))
	case reflect.Int, reflect.Int64:
		v.SetInt(-int64(*n) << 33)
	case reflect.Uint64:
		v.SetUint(1 << 63)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{ "z":1e3, "a" : [ "\u00fc" ] }`))
		} else {
			v.Set(reflect.ValueOf([]string{"a", "", "b"}))
		}
	default:
		panic("no value for " + v.Type().String())
	}
}

func samples(t testing.TB) (all []Commit) {
	for i, k := range kinds(t) {
		p := newPayload(k)
		if p == nil {
			t.Fatalf("kind %q has no payload", k)
		}
		if p.Kind() != k {
			t.Errorf("payload of %q says it is of %q", k, p.Kind())
		}
		n := i
		fill(reflect.ValueOf(p).Elem(), &n)
		all = append(all, Commit{Number: uint64(i) + 1, Seq: uint64(i)<<40 + 1, At: Time(i) << 50, Actor: "operator:ann", Events: []Event{
			{Task: "t_1", Run: uint64(i), Data: p},
			{Data: newPayload(k)},
		}})
	}
	return all
}

func TestRoundTrip(t *testing.T) {
	if n := len(kinds(t)); n < 20 {
		t.Fatalf("%d kinds were found in kinds.go", n)
	}
	for _, c := range samples(t) {
		b, err := encodeBody(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeBody(b)
		if err != nil {
			t.Errorf("%s: %v", c.Events[0].Kind(), err)
			continue
		}
		if !reflect.DeepEqual(got, c) {
			t.Errorf("%s: got %+v\nwant %+v", c.Events[0].Kind(), got.Events[0].Data, c.Events[0].Data)
		}
		again, err := encodeBody(got)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: encoded again it differs, %v", c.Events[0].Kind(), err)
		}
		for i := range b {
			if _, err := decodeBody(b[:i]); err == nil {
				t.Errorf("%s: cut at %d of %d bytes it is accepted", c.Events[0].Kind(), i, len(b))
			}
		}
	}
}

// An exit code of 0 is not an unknown one, in either way of embedding.
func TestExitCodes(t *testing.T) {
	zero, nine := int64(0), int64(9)
	for _, code := range []*int64{nil, &zero, &nine} {
		c := Commit{Number: 1, Seq: 1, Actor: "a", Events: []Event{
			{Data: &Exited{ExitCode: code, Evidence: "record"}},
			{Data: &Crashed{End: End{ExitCode: code, To: "ready"}}},
			{Data: &Completed{ExitCode: code}},
		}}
		b, err := encodeBody(c)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeBody(b); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("exit code %v: %+v, %v", code, got, err)
		}
	}
}

// The bytes of form 1, for ever: the chain of every board is over them.
func TestGoldenBytes(t *testing.T) {
	zero := int64(0)
	c := Commit{Number: 2, Seq: 300, At: 1_700_000_000_000_000, Actor: "operator:ann", Events: []Event{
		{Task: "t_1", Run: 7, Data: &Crashed{End: End{ExitCode: &zero, To: "ready", RetryAt: 5}, Final: true}},
		{Data: &Commented{Author: "ann", Text: "ü"}},
	}}
	const want = "9502cd012ccf00060a24181e4000ac6f70657261746f723a616e6e92" +
		"94a3745f3107a76372617368656484a9657869745f636f646500a2746fa57265616479a872657472795f617405a566696e616cc3" +
		"94a000a9636f6d6d656e74656482a6617574686f72a3616e6ea474657874a2c3bc"
	b, err := encodeBody(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("body\n%s\nwant\n%s", got, want)
	}
	if got := hex.EncodeToString(encodeEntry([32]byte{1}, []byte{2, 3})); got != "92c42001"+zeros(62)+"c4020203" {
		t.Errorf("entry %s", got)
	}
	g := genesis(testUUID)
	if got := hex.EncodeToString(g[:]); got != goldenGenesis {
		t.Errorf("genesis %s", got)
	}
}

const goldenGenesis = "60e80d47100c36afd1d6bb98d71e69504b575822339054b307d9aecf2d0d3eda" // sha256sum of "kanlog board " and the 16 bytes

func zeros(n int) string { return string(bytes.Repeat([]byte{'0'}, n)) }

func TestStrict(t *testing.T) {
	m := func(v ...any) []any { return v }
	event := m("t_1", 0, "commented", map[string]any{"author": "a", "text": "b"})
	for name, v := range map[string]any{
		"not an array":        map[string]any{"number": 1},
		"four elements":       m(1, 1, 1, "a"),
		"six elements":        m(1, 1, 1, "a", m(event), 1),
		"no events":           m(1, 1, 1, "a", m()),
		"nil events":          m(1, 1, 1, "a", nil),
		"number a string":     m("1", 1, 1, "a", m(event)),
		"number negative":     m(-1, 1, 1, "a", m(event)),
		"number a float":      m(1.0, 1, 1, "a", m(event)),
		"seq nil":             m(1, nil, 1, "a", m(event)),
		"at a string":         m(1, 1, "1", "a", m(event)),
		"actor bytes":         m(1, 1, 1, []byte("a"), m(event)),
		"event too short":     m(1, 1, 1, "a", m(event[:3])),
		"event a string":      m(1, 1, 1, "a", m("commented")),
		"task nil":            m(1, 1, 1, "a", m(m(nil, 0, "commented", event[3]))),
		"run negative":        m(1, 1, 1, "a", m(m("t", -1, "commented", event[3]))),
		"unknown kind":        m(1, 1, 1, "a", m(m("t", 0, "exploded", event[3]))),
		"no kind":             m(1, 1, 1, "a", m(m("t", 0, "", event[3]))),
		"payload nil":         m(1, 1, 1, "a", m(m("t", 0, "commented", nil))),
		"payload an array":    m(1, 1, 1, "a", m(m("t", 0, "commented", m("a", "b")))),
		"unknown field":       m(1, 1, 1, "a", m(m("t", 0, "commented", map[string]any{"autor": "a"}))),
		"field of wrong type": m(1, 1, 1, "a", m(m("t", 0, "commented", map[string]any{"author": 1}))),
		"number in a bool":    m(1, 1, 1, "a", m(m("t", 0, "fenced", map[string]any{"presented": true}))),
	} {
		b, err := msgpack.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := decodeBody(b); err == nil {
			t.Errorf("%s is accepted: %+v", name, c)
		}
	}
	good, err := msgpack.Marshal(m(1, 1, 1, "a", m(event)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeBody(good); err != nil {
		t.Errorf("the good one: %v", err)
	}
	if _, err := decodeBody(append(good, 0xc0)); err == nil {
		t.Error("a byte behind the commit is accepted")
	}
}

func TestEntry(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 65535, 65536, 1 << 20} {
		body := bytes.Repeat([]byte{7}, n)
		e := encodeEntry([32]byte{5}, body)
		hash, got, err := decodeEntry(e)
		if err != nil || hash != [32]byte{5} || !bytes.Equal(got, body) {
			t.Errorf("%d bytes: %v", n, err)
		}
		var std []any
		if err := msgpack.Unmarshal(e, &std); err != nil || len(std) != 2 || !bytes.Equal(std[1].([]byte), body) {
			t.Errorf("%d bytes: not msgpack to others: %v", n, err)
		}
		for _, bad := range [][]byte{e[:len(e)-1], append(bytes.Clone(e), 0), e[:35], e[:36], e[1:], nil} {
			if _, _, err := decodeEntry(bad); err == nil {
				t.Errorf("%d bytes: %d of %d are accepted", n, len(bad), len(e))
			}
		}
	}
}

func FuzzDecodeBody(f *testing.F) {
	for _, c := range samples(f) {
		b, err := encodeBody(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0x95, 1, 1, 1, 0xa1, 'a', 0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeBody(b)
		if err != nil {
			return
		}
		again, err := encodeBody(c)
		if err != nil {
			t.Fatalf("decoded, but cannot be encoded: %v", err)
		}
		if c2, err := decodeBody(again); err != nil || !reflect.DeepEqual(c, c2) {
			t.Fatalf("%+v\nbecame\n%+v, %v", c, c2, err)
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(encodeEntry([32]byte{}, []byte("x")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if hash, body, err := decodeEntry(b); err == nil && !bytes.Equal(encodeEntry(hash, body), b) {
			t.Fatal("accepted in two forms")
		}
	})
}
