package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"

	"kanlog/eventlog"
)

// exportCSV writes one table, its columns the keys of the JSON form.
func (a *app) exportCSV(w io.Writer, x *exporting) error {
	b, err := a.exportedOf(x.task, false)
	if err != nil {
		return err
	}
	out := csv.NewWriter(w)
	row := func(v any) error {
		cells, err := csvCells(v)
		if err == nil {
			err = out.Write(cells)
		}
		return err
	}
	switch x.table {
	case "cards":
		if err = out.Write(csvHeads(taskJSON{})); err == nil {
			err = b.cards(func(c *exportedCard) error { return row(*c.task.taskJSON) })
		}
	case "runs":
		if err = out.Write(csvHeads(runJSON{})); err == nil {
			err = b.cards(func(c *exportedCard) error {
				for _, r := range c.runs {
					if err := row(*r); err != nil {
						return err
					}
				}
				return nil
			})
		}
	case "events":
		if err = out.Write(csvHeads(eventJSON{})); err == nil {
			err = b.events(func(c eventlog.Commit, i int) error { return row(*newEventJSON(c, i)) })
		}
	}
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// csvFields calls fn for each field that is a column: a key that only some have
// is none.
func csvFields(v any, fn func(name string, value reflect.Value)) {
	of := reflect.ValueOf(v)
	for i := range of.NumField() {
		name, option, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
		if option != "omitempty" {
			fn(name, of.Field(i))
		}
	}
}

func csvHeads(v any) (heads []string) {
	csvFields(v, func(name string, _ reflect.Value) { heads = append(heads, name) })
	return heads
}

// csvCells are the values of a row: absent ones empty, several words with a blank
// between them, what is more than that as JSON.
func csvCells(v any) (cells []string, err error) {
	csvFields(v, func(_ string, value reflect.Value) {
		var s string
		switch v := value.Interface().(type) {
		case nil:
		case string:
			s = harmless(v)
		case []string:
			s = harmless(strings.Join(v, " "))
		case eventlog.Time:
			s = v.String()
		case eventlog.Kind:
			s = string(v)
		case int, int64, uint64, float64:
			s = fmt.Sprint(v)
		case *int64:
			if v != nil {
				s = fmt.Sprint(*v)
			}
		case rawJSON:
			s = harmless(string(v))
		default:
			var b []byte
			if b, err = json.Marshal(v); err == nil {
				s = harmless(string(b))
			}
		}
		cells = append(cells, s)
	})
	return cells, err
}

// harmless is a text cell that no spreadsheet takes for a formula: whoever writes
// a title must not execute anything where the table is opened. Blanks and what is
// not seen are passed over as a spreadsheet may do, and so are the wide forms of
// the signs.
func harmless(s string) string {
	first := strings.TrimLeftFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
	if first != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(first)[0]) {
		return "'" + s
	}
	return s
}
