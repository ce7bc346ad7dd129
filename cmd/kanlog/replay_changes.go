package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"kanlog/eventlog"
	"kanlog/projection"
)

// What an event, or all of them between two moments, changed on a card: the JSON form
// of the contract before and after.

type changeJSON struct {
	Field string `json:"field"`
	Was   any    `json:"was"`
	Now   any    `json:"now"`
}

// formOf is a card's JSON form, nil if there is none.
func formOf(v projection.View, id string) (*taskJSON, error) {
	t, err := v.Task(id)
	if err != nil || t == nil {
		return nil, err
	}
	return newTaskJSON(v, t)
}

// changes compares two forms field by field; was is nil for a card that is new.
func changes(was, now *taskJSON) []changeJSON {
	list := []changeJSON{}
	if now == nil {
		return list
	}
	if was == nil {
		was = &taskJSON{Tags: []string{}, Parents: []string{}, Children: []string{}}
	}
	a, b := reflect.ValueOf(was).Elem(), reflect.ValueOf(now).Elem()
	for i := range a.NumField() {
		x, y := a.Field(i).Interface(), b.Field(i).Interface()
		if !reflect.DeepEqual(x, y) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			list = append(list, changeJSON{name, x, y})
		}
	}
	return list
}

// inWords is a change for people.
func (c changeJSON) inWords() string {
	return fmt.Sprintf("%s %s -> %s", c.Field, valueInWords(c.Was), valueInWords(c.Now))
}

func valueInWords(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		if v == "" {
			return "-"
		}
		return brieflySaid(v)
	case []string:
		if len(v) == 0 {
			return "-"
		}
		return brieflySaid(strings.Join(v, " "))
	case eventlog.Time:
		if v == 0 {
			return "-"
		}
		return v.Std().Format("2006-01-02 15:04:05")
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return brieflySaid(string(b))
}

// brieflySaid is the beginning of the first line of a value.
func brieflySaid(s string) string {
	const most = 60
	first, _, more := strings.Cut(s, "\n")
	if shown, missing := cutAt(first, most); missing > 0 {
		first, more = shown, true
	}
	if more {
		first += "..."
	}
	return first
}
