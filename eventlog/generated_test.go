package eventlog

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// draw sets every field of a payload to a drawn value; a new type of field has
// to be named here.
func draw(t *rapid.T, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			draw(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case reflect.String:
		v.SetString(rapid.StringN(0, 40, 300).Draw(t, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, name))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, name+" is set") {
			v.Set(reflect.New(v.Type().Elem()))
			draw(t, v.Elem(), name)
		}
	case reflect.Slice:
		switch n := rapid.IntRange(0, 3).Draw(t, name+" has"); {
		case n == 0: // absent and empty are one thing on record
		case v.Type() == reflect.TypeFor[json.RawMessage]():
			v.SetBytes(rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, name))
		default:
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				draw(t, v.Index(i), name)
			}
		}
	default:
		t.Fatalf("no values for %s of type %s", name, v.Type())
	}
}

// drawLog makes entries that follow one another, as the store keeps them.
func drawLog(t *rapid.T, n int) (commits []Commit, entries [][]byte) {
	var head Head
	for range n {
		c := Commit{At: Time(rapid.Int64().Draw(t, "at")), Actor: rapid.StringN(1, 20, 80).Draw(t, "actor")}
		for range rapid.IntRange(1, 3).Draw(t, "events") {
			p := newPayload(rapid.SampledFrom(Kinds()).Draw(t, "kind"))
			draw(t, reflect.ValueOf(p).Elem(), string(p.Kind()))
			c.Events = append(c.Events, Event{
				Task: rapid.StringN(0, 10, 40).Draw(t, "task"), Run: rapid.Uint64().Draw(t, "run"), Data: p,
			})
		}
		c, entry, err := sealEntry(head, c)
		if err != nil {
			t.Fatal(err)
		}
		commits, entries, head = append(commits, c), append(entries, entry), headOf(c)
	}
	return commits, entries
}

// Whatever the fields hold, what is read is what was written, and no byte of an
// entry, no entry left out and no two entries exchanged pass the chain.
func checkGenerated(t *rapid.T) {
	commits, entries := drawLog(t, rapid.IntRange(1, 3).Draw(t, "commits"))
	var prev [32]byte
	for i, e := range entries {
		got, err := openEntry(e, uint64(i)+1, prev)
		if err != nil {
			t.Fatalf("commit %d: %v", i+1, err)
		}
		if !reflect.DeepEqual(got, commits[i]) {
			t.Fatalf("commit %d was written as\n%+v\nand is read as\n%+v", i+1, commits[i], got)
		}
		if body, err := encodeBody(got); err != nil || !bytes.Equal(encodeEntry(got.Hash, body), e) {
			t.Fatalf("commit %d has two forms (%v)", i+1, err)
		}
		bad := bytes.Clone(e)
		bad[rapid.IntRange(0, len(e)-1).Draw(t, "byte")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		if c, err := openEntry(bad, uint64(i)+1, prev); err == nil {
			t.Fatalf("commit %d with a changed byte is accepted: %+v", i+1, c)
		}
		if i > 0 {
			if _, err := openEntry(e, uint64(i), [32]byte{}); err == nil {
				t.Fatalf("commit %d is accepted as the first", i+1)
			}
		}
		prev = got.Hash
	}
}

func TestGenerated(t *testing.T) { rapid.Check(t, checkGenerated) }

// The same with draws that a fuzzer chooses.
func FuzzGenerated(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkGenerated)) }
