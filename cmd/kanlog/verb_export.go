package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kanlog/eventlog"
)

// The forms of an export, the default first, and what --table takes.
var (
	exportFormats = []string{"jsonl", "csv", "mermaid", "dot", "html"}
	exportTables  = []string{"cards", "runs", "events"}
)

// exporting is one call of export.
type exporting struct {
	format, table string
	task          string
	file          string
	force         bool
}

func exportCmd(a *app) *cobra.Command {
	var x exporting
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the board, or one card, as JSON Lines, CSV, a graph or a page to read",
		Long: `export writes the board as it was at one commit, which the output names, however
long the writing takes and whatever happens on the board meanwhile. Nobody waits for it.

  jsonl    one JSON object a line: the board, then each card with its runs and
           comments, then every event. kanlog import makes a new board of it
  csv      one table (--table cards, runs or events). A cell of text that begins
           with = + - or @, or with blanks before one, gets a ' before it: a
           spreadsheet would take it for a formula and execute it
  mermaid  the cards as a graph, parents before children, for Markdown
  dot      the same for Graphviz
  html     one file to read in a browser, which loads nothing: cards, runs, a
           timeline, and the events of each card

--task restricts it to one card: its runs, comments and events; for a graph to the
cards that hang together with it. docs/export.md has the keys of each form.`,
		Example: `  kanlog export -o board.jsonl
  kanlog export --format html -o board.html
  kanlog export --format html --task t_1a2b -o card.html
  kanlog export --format csv --table runs -o runs.csv
  kanlog export --format dot | dot -Tsvg >board.svg
  kanlog export | jq -c 'select(.type == "run" and .outcome == "crashed")'`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !slices.Contains(exportFormats, x.format):
				return usage("--format %q is none of %s", x.format, strings.Join(exportFormats, ", "))
			case a.asJSON && cmd.Flags().Changed("format") && x.format != "jsonl":
				return usage("--json and --format %s: one of them", x.format)
			case x.format != "csv" && cmd.Flags().Changed("table"):
				return usage("--table goes with --format csv")
			case x.format == "csv" && x.table == "":
				return usage("which table? --table takes %s", strings.Join(exportTables, ", "))
			case x.format == "csv" && !slices.Contains(exportTables, x.table):
				return usage("--table %q is none of %s", x.table, strings.Join(exportTables, ", "))
			case x.force && x.file == "":
				return usage("--force goes with -o FILE")
			case x.file == "-":
				return usage("-o takes the name of a file; without it the export goes to stdout")
			}
			return a.export(&x)
		},
	}
	f := cmd.Flags()
	f.StringVar(&x.format, "format", "jsonl", strings.Join(exportFormats, ", "))
	f.StringVar(&x.table, "table", "", "of csv: "+strings.Join(exportTables, ", "))
	f.StringVar(&x.task, "task", "", "only this card (an id, or the beginning of one)")
	f.StringVarP(&x.file, "output", "o", "", "write this file, all of it or nothing (default: stdout)")
	f.BoolVar(&x.force, "force", false, "replace the file if it is there")
	return cmd
}

func (a *app) export(x *exporting) error {
	if x.task != "" {
		id, err := a.resolve(x.task)
		if err != nil {
			return err
		}
		x.task = id
	}
	write := func(w io.Writer) error {
		err := a.exportTo(w, x)
		if errors.Is(err, eventlog.ErrReplaced) {
			err = fmt.Errorf("export: nothing of it is to be used: %w", err)
		}
		return err
	}
	if x.file != "" {
		if err := a.outsideBoards(filepath.Dir(x.file)); err != nil {
			return err
		}
		return writeAside(x.file, x.force, write)
	}
	out := a.out
	if a.screen().width > 0 {
		out = &cleanWriter{w: a.out}
	}
	buf := bufio.NewWriterSize(out, 1<<16)
	if err := write(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return finish(out)
}

func (a *app) exportTo(w io.Writer, x *exporting) error {
	switch x.format {
	case "csv":
		return a.exportCSV(w, x)
	case "mermaid", "dot":
		return a.exportGraph(w, x)
	case "html":
		return a.exportHTML(w, x)
	}
	return a.exportLines(w, x)
}
