// Package docs holds the documents, and tests that they name what there is.
package docs

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update-cases", false, "write the tests of each case into cases.md")

var (
	caseRow  = regexp.MustCompile(`(?m)^\| (B[0-9]+) \| ([^|]+) \| ([^|]*) \|$`)
	caseName = regexp.MustCompile(`\bB[0-9]+\b`)
)

// eachTest calls see with every function of the tree's tests, by the name of its
// package's folder, a dot and its own.
func eachTest(t *testing.T, see func(test string, file *ast.File, f *ast.FuncDecl)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == filepath.Join("..", "docs") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				see(strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")+"."+f.Name.Name, file, f)
			}
		}
		return nil
	}))
}

func testsOfTheTree(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	eachTest(t, func(test string, _ *ast.File, f *ast.FuncDecl) {
		if f.Recv == nil {
			tests[test] = true
		}
	})
	return tests
}

// casesOfTests are the tests whose comments, on them or within them, name a case.
func casesOfTests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	eachTest(t, func(test string, file *ast.File, f *ast.FuncDecl) {
		from := f.Pos()
		if f.Doc != nil {
			from = f.Doc.Pos()
		}
		for _, group := range file.Comments {
			if group.Pos() < from || group.End() > f.End() {
				continue
			}
			for _, name := range caseName.FindAllString(group.Text(), -1) {
				if !slices.Contains(found[name], test) {
					found[name] = append(found[name], test)
				}
			}
		}
	})
	return found
}

// Each case has a test, each test that names a case stands in its row, and none is
// named that is gone. `go test ./docs -update-cases` writes the rows.
func TestEachCaseNamesItsTests(t *testing.T) {
	raw, err := os.ReadFile("cases.md")
	require.NoError(t, err)
	found := casesOfTests(t)
	seen := map[string]bool{}
	text := caseRow.ReplaceAllStringFunc(string(raw), func(row string) string {
		m := caseRow.FindStringSubmatch(row)
		tests := found[m[1]]
		slices.Sort(tests)
		require.NotEmpty(t, tests, "%s has no test", m[1])
		require.False(t, seen[m[1]], "%s has two rows", m[1])
		seen[m[1]] = true
		return fmt.Sprintf("| %s | %s | `%s` |", m[1], m[2], strings.Join(tests, "` `"))
	})
	for name := range found {
		require.True(t, seen[name], "%s is named by %v and has no row", name, found[name])
	}
	if *update {
		require.NoError(t, os.WriteFile("cases.md", []byte(text), 0o644))
		return
	}
	require.Equal(t, text, string(raw), "run: go test ./docs -update-cases")
}
