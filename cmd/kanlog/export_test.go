package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"html"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"kanlog/projection"
)

func TestHarmlessCells(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "": "", "a=b": "a=b", "1-2": "1-2", "'=x": "'=x",
		"=1+1": "'=1+1", "+1": "'+1", "-x": "'-x", "@SUM(A1)": "'@SUM(A1)",
		"\t=x": "'\t=x", " =x": "' =x", "\n\u00a0=x": "'\n\u00a0=x", "\u200b=x": "'\u200b=x", "＝x": "'＝x", "\uff0bx": "'\uff0bx",
	} {
		if got := harmless(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestMermaidWords(t *testing.T) {
	for in, want := range map[string]string{
		"plain words, a-b_c. 1/2": "plain words, a-b_c. 1/2",
		`"]`:                      "#34;#93;",
		"<b>&amp;</b>":            "#60;b#62;#38;amp#59;#60;/b#62;",
		"#quot;":                  "#35;quot#59;",
		"%%{init: {}}%%":          "#37;#37;#123;init#58; #123;#125;#125;#37;#37;",
		"`md` **x**":              "#96;md#96; #42;#42;x#42;#42;",
		"a\nb\tc":                 "a b c",
		"日本語 🚀 عربي":              "日本語 🚀 عربي",
		"a\u202eb\x1bc":           "a\ufffdb\ufffdc",
		"$$x$$":                   "#36;\u2060#36;x#36;\u2060#36;",
	} {
		if got := mermaidSafe(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestDotWords(t *testing.T) {
	for in, want := range map[string]string{
		"plain {words} [x] -> y;": "plain {words} [x] -&#62; y;",
		`"`:                       `\"`,
		`\`:                       `\\`,
		`\"`:                      `\\\"`,
		`\N\n`:                    `\\N\\n`,
		"<b>&quot;":               "&#60;b&#62;&#38;quot;",
		"a\nb":                    "a b",
		"a\u202eb\x1bc":           "a\ufffdb\ufffdc",
	} {
		if got := dotSafe(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// hostile is a title of pieces that mean something somewhere, and of anything.
func hostile(r *rand.Rand) string {
	pieces := []string{
		`"`, `\`, "]", "[", "<", ">", "&", "#", ";", ":", "%%{", "}%%", "`", "$$", "--", "-->", "\n", "\t", "\r", ",", "'", "=", "+", "@", "|", "(", "{",
		"</script>", "<script>", "<!--", "-->", "]]>", "style x:#f;", "classDef", "end", "subgraph", "javascript:", "&#34;", "&quot;", "\\n", "\\\"",
		"\u2028", "\u202e", "\u0000", "\x1b[31m", "\ufeff", "é", "日", "🚀", " ", "a",
	}
	var b strings.Builder
	for range 1 + r.IntN(12) {
		if r.IntN(5) == 0 {
			b.WriteRune(rune(r.IntN(0x3000)))
		} else {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
	}
	return b.String()
}

// Whatever a title is, it is one cell, one label, one piece of text: nothing of it
// ends what it stands in, and what comes out is what went in.
func TestHostileTitlesStayText(t *testing.T) {
	const seed = 20261130
	r := rand.New(rand.NewPCG(seed, 0))
	node := regexp.MustCompile(`^  t_1\["t_1<br/>([^"<>&\[\]{}%\n]*)<br/>ready"\]:::ready$`)
	code := regexp.MustCompile(`#(\d+);`)
	shown := func(s string) string { // as a graph shows it
		if runes := []rune(s); len(runes) > graphTitle {
			s = string(runes[:graphTitle]) + "..."
		}
		return strings.Map(func(r rune) rune {
			switch {
			case r == '\n' || r == '\t':
				return ' '
			case harmful(r):
				return utf8.RuneError
			}
			return r
		}, s)
	}
	for range 20_000 {
		title := hostile(r)
		task := &exportedTask{Type: "task", taskJSON: &taskJSON{ID: "t_1", Title: title, Status: projection.Ready}}
		g := graph{nodes: []*exportedTask{task}}

		var line string
		for _, l := range strings.Split(g.mermaid(), "\n") {
			if strings.HasPrefix(l, "  t_1") {
				line = l
			}
		}
		m := node.FindStringSubmatch(line)
		if m == nil || strings.Contains(m[1], "style:") {
			t.Fatalf("%q: Mermaid would read more than text in %q (seed %d)", title, line, seed)
		}
		back := code.ReplaceAllStringFunc(m[1], func(s string) string {
			n, _ := strconv.Atoi(strings.Trim(s, "#;"))
			return string(rune(n))
		})
		if back = strings.ReplaceAll(back, "$\u2060$", "$$"); back != strings.ReplaceAll(shown(title), "$\u2060$", "$$") {
			t.Fatalf("%q: Mermaid shows %q (seed %d)", title, back, seed)
		}

		label := dotString(t, g.dot(), `  "t_1" [label="`)
		if back := html.UnescapeString(strings.TrimSuffix(strings.TrimPrefix(label, "t_1\n"), "\nready")); back != shown(title) {
			t.Fatalf("%q: Graphviz shows %q (seed %d)", title, back, seed)
		}

		text, err := inScript(newPageCard(&exportedCard{task: task}))
		var card struct{ Title string }
		if err != nil || bytes.ContainsAny(text, "<>&\n\u2028\u2029") || json.Unmarshal(text, &card) != nil || card.Title != title {
			t.Fatalf("%q: in the page it is %q, %s (seed %d)", title, card.Title, text, seed)
		}

		cells, err := csvCells(*task.taskJSON)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.Write(cells)
		w.Flush()
		row, err := csv.NewReader(&b).Read()
		// The reader makes a line break of the two characters that are one elsewhere.
		if err != nil || strings.TrimPrefix(row[1], "'") != strings.TrimPrefix(strings.ReplaceAll(title, "\r\n", "\n"), "'") || strings.ContainsAny(row[1][:1], "=+-@") {
			t.Fatalf("%q: the cell is %q, %v (seed %d)", title, row, err, seed)
		}
	}
}

// dotString reads the quoted string that begins behind start as Graphviz does.
func dotString(t *testing.T, text, start string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, start)
	if !ok {
		t.Fatalf("no %q in %s", start, text)
	}
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == '"':
			if !strings.HasPrefix(rest[i:], `", fillcolor=`) {
				t.Fatalf("the string ends too early: %s", rest)
			}
			return b.String()
		case rest[i] == '\\':
			i++
			if rest[i] == 'n' {
				b.WriteByte('\n')
			} else {
				b.WriteByte(rest[i])
			}
		default:
			b.WriteByte(rest[i])
		}
	}
	t.Fatalf("the string does not end: %s", rest)
	return ""
}

// The page's parts are as the policy names them, and its script puts nothing in as
// HTML and calls nobody.
func TestThePageLoadsNothing(t *testing.T) {
	for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "fetch(", "XMLHttpRequest", "import(", "localStorage"} {
		if strings.Contains(pageJS, word) {
			t.Errorf("page.js has %s", word)
		}
	}
	for _, part := range []string{pageJS, pageCSS, pageHTML} {
		for _, word := range []string{"url(", "@import", "https:", "src="} {
			if strings.Contains(part, word) {
				t.Errorf("a part of the page has %s", word)
			}
		}
	}
	if strings.Contains(strings.ToLower(pageJS), "</script") || strings.Contains(strings.ToLower(pageCSS), "</style") {
		t.Error("a part of the page ends its own element")
	}
}

// Each column has a name, and each key of the contract is a column.
func TestCSVHasEveryKey(t *testing.T) {
	for _, v := range []any{taskJSON{}, runJSON{}, eventJSON{}} {
		cells, err := csvCells(v)
		if heads := csvHeads(v); err != nil || len(heads) != len(cells) || len(heads) < 9 {
			t.Errorf("%T: %d heads, %d cells, %v", v, len(heads), len(cells), err)
		}
	}
}
