package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/itchyny/gojq"
)

// Query runs a jq expression and returns its results, one a line, strings raw.
func Query(expr string, input []byte) (string, error) {
	q, err := gojq.Parse(expr)
	if err != nil {
		return "", fmt.Errorf("jq %s: %w", expr, err)
	}
	var values []any
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	for dec.More() {
		var v any
		if err := dec.Decode(&v); err != nil {
			return "", fmt.Errorf("not JSON: %w in %q", err, input)
		}
		values = append(values, plain(v))
	}
	// Several values, as events --json prints them, are queried as one array.
	var in any
	if len(values) == 1 {
		in = values[0]
	} else {
		in = values
	}
	var lines []string
	it := q.Run(in)
	for {
		v, ok := it.Next()
		if !ok {
			return strings.Join(lines, "\n"), nil
		}
		if err, bad := v.(error); bad {
			return "", fmt.Errorf("jq %s: %w", expr, err)
		}
		if s, ok := v.(string); ok {
			lines = append(lines, s)
			continue
		}
		b, err := gojq.Marshal(v)
		if err != nil {
			return "", err
		}
		lines = append(lines, string(b))
	}
}

// plain turns json.Number into what gojq takes.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n)
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}

// Truthy tells whether jq would take a result for true.
func Truthy(s string) bool { return s != "" && s != "false" && s != "null" }
