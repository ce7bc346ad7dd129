package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"

	"kanlog/eventlog"
	"kanlog/projection"
)

// graphFile is a graph of cards as it was read, with the line of each card.
type graphFile struct {
	path  string
	cards []projection.Planned
	lines []int
}

// refused says where in the file the card stands that a decision refused.
func (g *graphFile) refused(err error) error {
	var p *projection.PlanError
	if !errors.As(err, &p) {
		return err
	}
	return fmt.Errorf("%s:%d: %w", g.path, g.lines[p.Index], err)
}

// readGraph reads a graph of cards, YAML or JSON (which is YAML). It walks the
// syntax tree itself instead of decoding into structs: a decoder turns 1.50 into
// 1.5 and 010 into 8 before we see them, and says of a bad value neither the field
// nor what would be right.
func (a *app) readGraph(path string) (*graphFile, error) {
	text, err := graphText(path)
	if err != nil {
		return nil, err
	}
	if path == "-" {
		path = "stdin"
	}
	r := graphReader{app: a, graphFile: &graphFile{path: path}}
	tokens, err := graphTokens(path, string(text))
	if err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			return nil, usage("%s:%d: %s", path, at.GetToken().Position.Line, at.GetMessage())
		}
		return nil, usage("%s: %v", path, err)
	}
	var whole ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case whole != nil:
			return nil, r.wrong(doc.Body, "a second document begins; a graph is one document")
		default:
			whole = doc.Body
		}
	}
	if whole == nil {
		return nil, usage("%s: it is empty; a graph begins with cards:", path)
	}
	return r.graphFile, r.graph(whole)
}

// graphTokens cuts a file into tokens. What the parser would take minutes for it refuses
// before: that goes over the rest of the file once more for each level. The tokens of a
// large file are dear too, so its beginning is looked at first, and ever more of it.
func graphTokens(path, text string) (token.Tokens, error) {
	for size := 64 << 10; size < len(text); size *= 4 {
		if _, err := scanGraph(path, text[:size], true); err != nil {
			return nil, err
		}
	}
	return scanGraph(path, text, false)
}

// scanGraph cuts a text into tokens and counts what stands in one another. Where it is the
// beginning of one, what is wrong there may be the cut, and nothing behind it counts.
func scanGraph(path, text string, cut bool) (all token.Tokens, err error) {
	var s scanner.Scanner
	s.Init(text)
	var n nesting
	for {
		some, err := s.Scan()
		if err == io.EOF { // anything else is among the tokens
			return all, nil
		}
		for _, t := range some {
			if cut && t.Type == token.InvalidType {
				return nil, nil
			}
			if wrong := n.add(t); wrong != "" {
				return nil, usage("%s:%d: %s", path, t.Position.Line, wrong)
			}
		}
		all.Add(some...)
	}
}

// maxNesting bounds what stands within one another; a graph needs four.
const maxNesting = 64

// nesting counts how deep the token at hand stands.
type nesting struct {
	open  int // brackets
	marks int // anchors, aliases and tags, none of which is read
	line  int
	begun int // lists and mappings without brackets that begin in this line
}

// add takes the next token, and says what is too much, "" if nothing is.
func (n *nesting) add(t *token.Token) string {
	if t.Position.Line != n.line {
		n.line, n.begun = t.Position.Line, 0
	}
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		n.open++
	case token.SequenceEndType, token.MappingEndType:
		n.open--
	case token.AnchorType, token.AliasType, token.TagType:
		n.marks++
	case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
		if n.open == 0 {
			n.begun++
		}
	}
	switch {
	case n.open > maxNesting:
		return fmt.Sprintf("more than %d brackets stand in one another; a graph is cards: [{name: a, parents: [b]}]", maxNesting)
	case n.open < 0:
		return fmt.Sprintf("%q closes no bracket; one before it is missing, or this one is too much", t.Value)
	case n.marks > maxNesting:
		return noMarks
	case n.begun > maxNesting:
		return fmt.Sprintf("more than %d lists or mappings begin in one line; a graph is cards: [{name: a, parents: [b]}]", maxNesting)
	}
	return ""
}

// noMarks is said of what stands for something else.
const noMarks = "anchors, aliases and tags are not read here; write it out"

func graphText(path string) ([]byte, error) {
	in := io.Reader(os.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, usage("%v", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, projection.MaxApplyBytes+1))
	switch {
	case err != nil:
		return nil, usage("reading the graph: %v", err)
	case len(text) > projection.MaxApplyBytes:
		return nil, usage("%s has more than %d bytes; apply it in parts", path, projection.MaxApplyBytes)
	}
	return text, nil
}

type graphReader struct {
	*app
	*graphFile
	card string // how the card at hand is called, "" before the first one
}

// wrong names the place, the card and what is wrong with it.
func (r *graphReader) wrong(at ast.Node, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if r.card != "" {
		what = "card " + r.card + ": " + what
	}
	return usage("%s:%d: %s", r.path, at.GetToken().Position.Line, what)
}

func (r *graphReader) graph(whole ast.Node) error {
	fields, err := r.mapping(whole, "a graph", "cards: [...]")
	if err != nil {
		return err
	}
	for _, f := range fields {
		if key, err := r.text(f.Key); err != nil {
			return err
		} else if key != "cards" {
			return r.wrong(f.Key, "unknown field %q; a graph has cards and nothing else", key)
		}
		list, ok := f.Value.(*ast.SequenceNode)
		if !ok {
			return r.wrong(f.Key, "cards is no list; each card is one element of it (- name: ...)")
		}
		for i, node := range list.Values {
			if err := r.readCard(node, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *graphReader) readCard(node ast.Node, i int) error {
	r.card = fmt.Sprint(i + 1)
	fields, err := r.mapping(node, "it", "name: ..., title: ...")
	if err != nil {
		return err
	}
	c := projection.Planned{Draft: projection.Draft{ID: randomID(), WorkspaceKind: projection.Scratch}}
	for _, f := range fields {
		// The name first: what is wrong with another field is said with it.
		if key, _ := r.text(f.Key); key == "name" {
			if c.Name, err = r.text(f.Value); err != nil {
				return err
			}
			r.card = fmt.Sprintf("%q", c.Name)
		}
	}
	for _, f := range fields {
		if err := r.field(&c, f); err != nil {
			return err
		}
	}
	r.cards = append(r.cards, c)
	r.lines = append(r.lines, fields[0].Key.GetToken().Position.Line)
	return nil
}

// cardFields are the fields of a card: what create takes as flags.
var cardFields = []string{
	"name", "title", "body", "assignee", "parents", "priority", "key", "tenant", "tags", "max_runtime", "max_retries",
	"workspace", "branch", "not_before", "triage", "blocked", "reviewer",
}

func (r *graphReader) field(c *projection.Planned, f *ast.MappingValueNode) error {
	key, err := r.text(f.Key)
	if err != nil {
		return err
	}
	if !slices.Contains(cardFields, key) {
		return r.wrong(f.Key, "unknown field %q; a card has %s", key, strings.Join(cardFields, ", "))
	}
	if _, null := f.Value.(*ast.NullNode); null {
		return nil // as if it were not there, which programs write so
	}
	switch key {
	case "parents", "tags":
		list, err := r.texts(key, f)
		if key == "parents" {
			c.Parents = list
		} else {
			c.Tags = list
		}
		return err
	case "triage":
		b, ok := f.Value.(*ast.BoolNode)
		if !ok {
			return r.wrong(f.Value, "triage is neither true nor false")
		}
		c.Triage = b.Value
		return nil
	case "blocked":
		if _, is := f.Value.(*ast.BoolNode); is {
			return r.wrong(f.Value, "blocked takes the reason, as text; leave it out if the card is not blocked")
		}
	}
	text, err := r.text(f.Value)
	if err != nil {
		return err
	}
	if err := r.setText(&c.Draft, key, text); err != nil {
		return r.wrong(f.Value, "%s", err)
	}
	return nil
}

// setText sets a field that is one word or text; what is wrong it says beginning
// with the field.
func (r *graphReader) setText(d *projection.Draft, key, text string) (err error) {
	words := map[string]*string{"assignee": &d.Assignee, "tenant": &d.Tenant, "key": &d.Key, "branch": &d.Branch, "reviewer": &d.Reviewer}
	if to := words[key]; to != nil {
		*to = text
		return checkGiven(key, text)
	}
	switch key {
	case "title":
		d.Title = text
	case "body":
		d.Body = text
	case "blocked":
		d.Blocked, d.BlockReason = true, text
	case "workspace":
		d.WorkspaceKind, d.WorkspacePath, err = parseWorkspace(text)
		return err
	case "priority":
		err = (&number[int64]{&d.Priority}).Set(text)
	case "max_retries":
		if err = (&number[int64]{&d.MaxRetries}).Set(text); err == nil {
			err = checkRetries(d.MaxRetries)
		}
	case "max_runtime":
		if d.MaxRuntime, err = parseDuration(text); err == nil {
			d.MaxRuntime = limitGiven(d.MaxRuntime)
		}
	case "not_before":
		var at eventlog.Time
		if at, err = r.parseMoment(text); err == nil {
			d.NotBefore = at
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func (r *graphReader) mapping(node ast.Node, what, like string) ([]*ast.MappingValueNode, error) {
	if err := r.plain(node); err != nil {
		return nil, err
	}
	m, ok := node.(*ast.MappingNode)
	if !ok || len(m.Values) == 0 {
		return nil, r.wrong(node, "%s is no mapping but %s; it would be %s", what, kindOf(node), like)
	}
	return m.Values, nil
}

func (r *graphReader) texts(key string, f *ast.MappingValueNode) ([]string, error) {
	if err := r.plain(f.Value); err != nil {
		return nil, err
	}
	list, ok := f.Value.(*ast.SequenceNode)
	if !ok {
		return nil, r.wrong(f.Key, "%s is no list but %s; it would be %s: [a, b]", key, kindOf(f.Value), key)
	}
	var words []string
	for _, node := range list.Values {
		word, err := r.text(node)
		if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
	return words, nil
}

// text is a scalar as it stands in the file: 1.50 stays 1.50.
func (r *graphReader) text(node ast.Node) (string, error) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node.GetToken().Value, nil
	}
	if err := r.plain(node); err != nil {
		return "", err
	}
	return "", r.wrong(node, "%s stands where a word or text should be", kindOf(node))
}

// plain refuses what stands for something else: aliases would let a small file grow
// without bound.
func (r *graphReader) plain(node ast.Node) error {
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode, *ast.TagNode:
		return r.wrong(node, noMarks)
	}
	return nil
}

// kindOf names a node in the words of YAML.
func kindOf(node ast.Node) string {
	switch node.(type) {
	case *ast.MappingNode:
		return "a mapping (a: b)"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing (null)"
	}
	return fmt.Sprintf("%q", node.GetToken().Value)
}
