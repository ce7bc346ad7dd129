package projection

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// One test for all packages: what each may import, what the pure files may not
// call, and that no transaction is opened inside another.

// pure are the files that take values and return values. All of projection, the
// files of tick named here, and eventlog but for diskFiles.
var pureOfTick = []string{"admit.go", "judge.go", "policy.go", "report.go"}

// diskFiles are the files of eventlog that may touch the disk or a lock. A new
// file is pure until it is named here.
var diskFiles = []string{
	"check.go", "copy.go", "create.go", "file.go", "fill.go", "fs_linux.go", "fs_other.go", "guard.go", "holder_linux.go", "holder_other.go",
	"lock.go", "move.go", "open_unix.go", "pages.go", "poison.go", "rebuild.go", "restore.go", "session.go", "stamp.go", "tx.go",
}

// pureImports are all that a pure file may import, in the package named ("" for
// every package).
var pureImports = map[string][]string{
	"": {
		"bytes", "cmp", "crypto/sha256", "encoding/binary", "encoding/hex", "encoding/json", "errors", "fmt", "hash/fnv", "io",
		"reflect", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
		"github.com/vmihailenco/msgpack/v5", "github.com/vmihailenco/msgpack/v5/msgpcode",
	},
	"eventlog":   {"sync", "github.com/tidwall/btree"},
	"projection": {"path/filepath", "kanlog/eventlog", "github.com/tidwall/btree"},
	"tick":       {"kanlog/eventlog", "kanlog/projection"},
}

// impure are the members of otherwise harmless packages that read a clock, wait
// or look at the disk. Of path/filepath one function is allowed and no other.
var impure = map[string][]string{
	"time":     {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"},
	"filepath": {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"fmt":      {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// mayImport is the one direction of dependencies; the key is the first folder.
var mayImport = map[string][]string{
	"cmd":        {"kanlog/tick", "kanlog/projection", "kanlog/eventlog", "kanlog/proc", "kanlog/cmd/internal/prefault", "kanlog/cmd/internal/scenario", "kanlog/cmd/internal/scenario/script"},
	"tick":       {"kanlog/projection", "kanlog/eventlog"},
	"projection": {"kanlog/eventlog"},
	"eventlog":   {"kanlog/eventlog"}, // its contract test, in a folder below
	"proc":       {},
}

type source struct {
	path string // from the root of the repository
	file *ast.File
	fset *token.FileSet
}

func (s source) pkg() string  { return strings.Split(s.path, "/")[0] }
func (s source) base() string { return path.Base(s.path) }

func (s source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

func (s source) pure() bool {
	switch s.pkg() {
	case "projection":
		return true
	case "eventlog":
		return path.Dir(s.path) == "eventlog" && !slices.Contains(diskFiles, s.base())
	case "tick":
		return slices.Contains(pureOfTick, s.base())
	}
	return false
}

func (s source) imports() (list []string) {
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		list = append(list, p)
	}
	return list
}

// sources parses every Go file of the program that is not a test.
func sources(t *testing.T) (list []source) {
	t.Helper()
	const root = ".."
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); p != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "docs") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		rel, _ := filepath.Rel(root, p)
		list = append(list, source{filepath.ToSlash(rel), f, fset})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"cmd", "eventlog", "proc", "projection", "tick"} {
		if !slices.ContainsFunc(list, func(s source) bool { return s.pkg() == pkg }) {
			t.Fatalf("no source of %s: this test looks in the wrong place", pkg)
		}
	}
	return list
}

// The lists above name files that are there: a renamed file must not slip out.
func TestPurityListsAreCurrent(t *testing.T) {
	for dir, names := range map[string][]string{"eventlog": diskFiles, "tick": pureOfTick} {
		for _, name := range names {
			if _, err := os.Stat(filepath.Join("..", dir, name)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestPureFilesStayPure(t *testing.T) {
	for _, s := range sources(t) {
		if !s.pure() {
			continue
		}
		allowed := append(slices.Clone(pureImports[""]), pureImports[s.pkg()]...)
		for _, p := range s.imports() {
			if !slices.Contains(allowed, p) {
				t.Errorf("%s imports %q; the core takes values and returns values", s.path, p)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(impure[x.Name], sel.Sel.Name) {
					t.Errorf("%s: %s.%s; time and the outside world come in as values", s.at(n), x.Name, sel.Sel.Name)
				}
			}
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: a goroutine in the core", s.at(g))
			}
			return true
		})
		for _, i := range s.file.Imports {
			if i.Name != nil {
				t.Errorf("%s: an import under another name would hide calls from this test", s.at(i))
			}
		}
	}
}

func TestImportDirection(t *testing.T) {
	for _, s := range sources(t) {
		allowed, known := mayImport[s.pkg()]
		if !known {
			t.Errorf("%s is in a folder that the design does not know", s.path)
		}
		for _, p := range s.imports() {
			if (p == "kanlog" || strings.HasPrefix(p, "kanlog/")) && !slices.Contains(allowed, p) {
				t.Errorf("%s imports %s, against cmd -> tick -> projection -> eventlog", s.path, p)
			}
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	comments := map[string][]string{}
	for _, s := range sources(t) {
		dir := path.Dir(s.path)
		if s.file.Doc != nil {
			comments[dir] = append(comments[dir], s.base())
		} else if comments[dir] == nil {
			comments[dir] = []string{}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(comments)) {
		if len(comments[dir]) != 1 {
			t.Errorf("package %s has %d package comments, want one: %v", dir, len(comments[dir]), comments[dir])
		}
	}
}

// A regular expression at package level is compiled at each start of the program,
// whatever the call is for: four of them were a sixth of a call that does nothing.
func TestNoExpressionIsCompiledAtTheStart(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				ast.Inspect(g, func(n ast.Node) bool {
					if sel, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := sel.X.(*ast.Ident); ok && x.Name == "regexp" && strings.HasPrefix(sel.Sel.Name, "MustCompile") {
							t.Errorf("%s: compiled at each start; a function that needs it may", s.at(n))
						}
					}
					_, later := n.(*ast.FuncLit)
					return !later
				})
			}
		}
	}
}

// opensTransaction are the methods that take the store's lock. bbolt hangs, or
// waits for itself until the lock times out, when one is opened inside another.
var opensTransaction = map[string]bool{
	method + "Update": true, method + "View": true, method + "update": true, method + "view": true,
}

// method marks the name of a method, to tell it from a function's.
const method = "."

// twoStores may hold a transaction of one file while it writes another.
var twoStores = map[string]string{
	"eventlog copyLog": "copies the old store's log into the new one",
}

// insideTransaction tells whether a function is handed a transaction: then it
// runs inside of it, and its caller holds the lock.
func insideTransaction(lists ...*ast.FieldList) bool {
	for _, l := range lists {
		if l == nil {
			continue
		}
		for _, f := range l.List {
			e := f.Type
			if p, ok := e.(*ast.StarExpr); ok {
				e = p.X
			}
			name := ""
			switch x := e.(type) {
			case *ast.Ident:
				name = x.Name
			case *ast.SelectorExpr:
				name = x.Sel.Name
			}
			if name == "Tx" || name == "View" || name == "logTables" {
				return true
			}
		}
	}
	return false
}

// TestNoTransactionInsideAnother looks at every function that is handed a
// transaction, and at every function written into a call of Update or View, and
// follows calls by name within the package.
func TestNoTransactionInsideAnother(t *testing.T) {
	all := sources(t)
	// openers, by package: functions whose body opens a transaction, directly or
	// by a call of another opener of the package.
	openers := map[string]map[string]bool{}
	bodies := map[string]map[string]*ast.FuncDecl{}
	for _, s := range all {
		dir := path.Dir(s.path)
		if bodies[dir] == nil {
			bodies[dir], openers[dir] = map[string]*ast.FuncDecl{}, map[string]bool{}
		}
		for _, d := range s.file.Decls {
			// A name that several types share cannot be followed; those of
			// View are reads inside a transaction, so a function without one
			// wins.
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && !insideTransaction(f.Recv) {
				name := f.Name.Name
				if f.Recv != nil {
					name = method + name
				}
				bodies[dir][name] = f
			}
		}
	}
	opens := func(dir string, body ast.Node) (found *ast.CallExpr) {
		ast.Inspect(body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && found == nil {
				name, onView := callee(call)
				if !onView && (opensTransaction[name] || openers[dir][name]) {
					found = call
				}
			}
			return found == nil
		})
		return found
	}
	for changed := true; changed; {
		changed = false
		for dir, funcs := range bodies {
			for name, f := range funcs {
				if !openers[dir][name] && !insideTransaction(f.Type.Params) && opens(dir, f.Body) != nil {
					openers[dir][name], changed = true, true
				}
			}
		}
	}
	looked := 0
	for _, s := range all {
		dir := path.Dir(s.path)
		check := func(name string, body ast.Node) {
			looked++
			if call := opens(dir, body); call != nil && twoStores[dir+" "+name] == "" {
				called, _ := callee(call)
				t.Errorf("%s: %s opens a transaction inside another", s.at(call), called)
			}
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if insideTransaction(f.Recv, f.Type.Params) {
				check(f.Name.Name, f.Body)
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.FuncLit:
					if insideTransaction(x.Type.Params) {
						check(f.Name.Name, x.Body)
						return false
					}
				case *ast.CallExpr:
					if name, onView := callee(x); !onView && opensTransaction[name] {
						for _, arg := range x.Args {
							if lit, ok := arg.(*ast.FuncLit); ok && !insideTransaction(lit.Type.Params) {
								check(f.Name.Name, lit.Body)
							}
						}
					}
				}
				return true
			})
		}
	}
	if looked < 50 {
		t.Errorf("looked at %d functions only: this test does not see what it should", looked)
	}
}

// callee is the name that is called, and whether it is asked of a View, which
// is a transaction already.
func callee(call *ast.CallExpr) (name string, onView bool) {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		if f.Obj != nil && f.Obj.Kind == ast.Var {
			return "", false // a local function: its body stands in the same function
		}
		return f.Name, false
	case *ast.SelectorExpr:
		switch x := f.X.(type) {
		case *ast.Ident:
			onView = x.Name == "v" || x.Name == "tx"
		case *ast.CompositeLit:
			onView = true
		}
		return method + f.Sel.Name, onView
	}
	return "", false
}
