package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"kanlog/eventlog"
)

// clean makes text harmless for a terminal: control characters and bytes that
// are no UTF-8 are shown, not sent. keepLines leaves line breaks and tabs.
func clean(s string, keepLines bool) string {
	var b strings.Builder
	for i, w := 0, 0; i < len(s); i += w {
		var r rune
		r, w = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && w == 1:
			fmt.Fprintf(&b, "\\x%02x", s[i])
		case keepLines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case harmful(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// harmful tells whether a character makes a terminal do something, or shows what
// is around it in another order than it is in.
func harmful(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// rawJSON is JSON that is printed byte for byte, unlike json.RawMessage, which
// the encoder compacts.
type rawJSON []byte

// rawMark begins the number that stands for raw JSON while a value is encoded:
// its bytes, three digits each, as an exponent. Text stands in quotes and cannot
// look like it; a number in somebody's metadata could, so it begins with digits
// that nobody can know before this call of the program.
var rawMark = sync.OnceValue(func() string {
	b := []byte("0e")
	for _, c := range randomID() {
		b = fmt.Appendf(b, "%03d", c)
	}
	return string(b)
})

func (r rawJSON) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	b := []byte(rawMark())
	for _, c := range r {
		b = fmt.Appendf(b, "%03d", c)
	}
	return b, nil
}

// encodeJSON encodes v; indent is "" for one line. In one line raw JSON is
// compacted, since a line break would end the line. In text what a terminal would
// act on is written as an escape, which means the same: the encoder leaves some.
func encodeJSON(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	out := buf.Bytes()
	var whole bytes.Buffer
	quoted := false
	for i := 0; i < len(out); i++ {
		switch {
		case quoted && out[i] == '\\':
			whole.WriteByte(out[i])
			i++
		case out[i] == '"':
			quoted = !quoted
		case quoted && (out[i] == 0x7f || out[i] >= utf8.RuneSelf):
			r, w := utf8.DecodeRune(out[i:])
			if harmful(r) {
				fmt.Fprintf(&whole, "\\u%04x", r)
			} else {
				whole.Write(out[i : i+w])
			}
			i += w - 1
			continue
		case !quoted && out[i] == rawMark()[0]:
			raw, end := rawAt(out, i)
			if raw == nil {
				break
			}
			if indent != "" {
				whole.Write(raw)
			} else if err := json.Compact(&whole, raw); err != nil {
				return nil, err
			}
			i = end - 1
			continue
		}
		whole.WriteByte(out[i])
	}
	return whole.Bytes(), nil
}

// rawAt returns the raw JSON whose mark stands at i, and where it ends; nil if
// there is none.
func rawAt(out []byte, i int) (raw []byte, end int) {
	if !bytes.HasPrefix(out[i:], []byte(rawMark())) {
		return nil, 0
	}
	digit := func(n int) bool { return n < len(out) && out[n] >= '0' && out[n] <= '9' }
	for end = i + len(rawMark()); digit(end) && digit(end+1) && digit(end+2); end += 3 {
		raw = append(raw, 100*(out[end]-'0')+10*(out[end+1]-'0')+out[end+2]-'0')
	}
	return raw, end
}

// json prints one value.
func (a *app) json(v any) error {
	b, err := encodeJSON(v, "  ")
	if err != nil {
		return err
	}
	return a.write(b)
}

// jsonLine prints one value of a stream.
func (a *app) jsonLine(v any) error {
	b, err := encodeJSON(v, "")
	if err != nil {
		return err
	}
	return a.write(b)
}

func (a *app) write(b []byte) error {
	if _, err := a.out.Write(b); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// printf prints text for people. Whatever it was made of, it is harmless.
func (a *app) printf(format string, args ...any) error {
	return a.write([]byte(clean(fmt.Sprintf(format, args...), true)))
}

// warn tells something beside the result.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.errw, "kanlog: %s\n", clean(fmt.Sprintf(format, args...), true))
}

// cell is text in one column: one line, harmless, never empty.
func cell(s string) string {
	if s == "" {
		return "-"
	}
	return clean(s, false)
}

// age says how long ago something was. What a clock that went back since says of
// it is just now.
func (a *app) age(t eventlog.Time) string {
	if t == 0 {
		return "-"
	}
	return brief(a.now.Since(t)) + " ago"
}

// due says when something that was set for a moment comes, or came.
func (a *app) due(t eventlog.Time) string {
	if t > a.now {
		// A duration ends after 292 years, and people write 9999 for never.
		if days := time.Duration(t-a.now) / (24 * time.Hour / time.Microsecond); days >= 2 {
			return fmt.Sprintf("in %dd", days)
		}
		return "in " + brief(t.Since(a.now))
	}
	return a.age(t)
}

func brief(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func orDash(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return "-"
}
