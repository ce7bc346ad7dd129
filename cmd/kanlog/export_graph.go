package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kanlog/projection"
)

// graphTitle is how much of a title a node shows, in characters.
const graphTitle = 60

// Mermaid draws no graph beyond these unless it is told to, and says so in the
// reader's page only.
const (
	mermaidText  = 50_000 // characters
	mermaidEdges = 500
)

// statusColours are those of the page too: what is done is green, what needs
// somebody red, what waits yellow.
var statusColours = map[string]string{
	projection.Triage: "#f3d9fa", projection.Todo: "#f1f3f5", projection.Scheduled: "#e7f5ff", projection.Ready: "#d0ebff",
	projection.Running: "#a5d8ff", projection.Blocked: "#ffc9c9", projection.Review: "#ffec99", projection.Done: "#d3f9d8",
	projection.Archived: "#dee2e6",
}

// graph is the cards as nodes, in the order of their age, and who waits for whom.
type graph struct {
	board boardLine
	nodes []*exportedTask
	edges [][2]string // parent, child
}

func (a *app) exportGraph(w io.Writer, x *exporting) error {
	b, err := a.exportedOf(x.task, true)
	if err != nil {
		return err
	}
	g := graph{board: b.board}
	err = b.cards(func(c *exportedCard) error {
		g.nodes = append(g.nodes, c.task)
		for _, p := range c.task.Parents {
			g.edges = append(g.edges, [2]string{p, c.task.ID})
		}
		return nil
	})
	if err != nil {
		return err
	}
	text := g.dot()
	if x.format == "mermaid" {
		text = g.mermaid()
		if n := utf8.RuneCountInString(text); n > mermaidText || len(g.edges) > mermaidEdges {
			a.warn("the graph has %d characters and %d edges; Mermaid draws up to %d and %d unless its maxTextSize and maxEdges say more. --task ID shows the part around one card, --format dot has no such bound", n, len(g.edges), mermaidText, mermaidEdges)
		}
	}
	_, err = io.WriteString(w, text)
	return err
}

// label is what a node shows, a line each, made harmless by escape.
func label(t *exportedTask, lineBreak string, escape func(string) string) string {
	title := t.Title
	if runes := []rune(title); len(runes) > graphTitle {
		title = string(runes[:graphTitle]) + "..."
	}
	return strings.Join([]string{escape(t.ID), escape(title), escape(t.Status)}, lineBreak)
}

// mermaid is a flowchart. The comment comes behind the first line: some readers
// look there for what kind of graph it is.
func (g *graph) mermaid() string {
	var b strings.Builder
	fmt.Fprintf(&b, "flowchart TD\n%%%% %s\n", g.board.where())
	for _, status := range projection.Statuses {
		in := func(t *exportedTask) bool { return t.Status == status }
		if !slices.ContainsFunc(g.nodes, in) {
			continue
		}
		fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:#495057,color:#212529\n", status, statusColours[status])
	}
	for _, t := range g.nodes {
		fmt.Fprintf(&b, "  %s[\"%s\"]:::%s\n", nodeName(t.ID), label(t, "<br/>", mermaidSafe), t.Status)
	}
	for _, e := range g.edges {
		fmt.Fprintf(&b, "  %s --> %s\n", nodeName(e[0]), nodeName(e[1]))
	}
	return b.String()
}

// dot is a graph for Graphviz.
func (g *graph) dot() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph board {\n  label=\"%s\"; labelloc=t; rankdir=TB;\n", dotSafe(g.board.where()))
	b.WriteString("  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\", fontsize=11];\n")
	for _, t := range g.nodes {
		fmt.Fprintf(&b, "  \"%s\" [label=\"%s\", fillcolor=\"%s\"];\n", dotSafe(t.ID), label(t, `\n`, dotSafe), statusColours[t.Status])
	}
	for _, e := range g.edges {
		fmt.Fprintf(&b, "  \"%s\" -> \"%s\";\n", dotSafe(e[0]), dotSafe(e[1]))
	}
	b.WriteString("}\n")
	return b.String()
}

// nodeName is an id as the name of a node. Ids are letters, digits and _; if a
// forged one is not, it must not end the name.
func nodeName(id string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, id)
}

// mermaidSafe is text that means nothing to Mermaid, nor to the HTML that it
// makes: of ASCII only letters, digits and a few marks stay, everything else is a
// character code. A colon goes too: Mermaid takes the ; off codes in a line that
// holds "style" and a colon before them. Two $ begin a formula even as codes, so
// something that is not seen comes between.
func mermaidSafe(s string) string {
	var b strings.Builder
	s = strings.ReplaceAll(s, "$$", "$\u2060$")
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case harmful(r) || r == utf8.RuneError:
			b.WriteRune('\uFFFD')
		case r >= utf8.RuneSelf, unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune(" _-.,/", r):
			b.WriteRune(r)
		default:
			b.WriteString("#" + strconv.Itoa(int(r)) + ";")
		}
	}
	return b.String()
}

// dotSafe is the inside of a quoted string, in which Graphviz knows escapes with a
// backslash and HTML's character codes.
func dotSafe(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case harmful(r) || r == utf8.RuneError:
			b.WriteRune('\uFFFD')
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '&' || r == '<' || r == '>':
			b.WriteString("&#" + strconv.Itoa(int(r)) + ";")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
