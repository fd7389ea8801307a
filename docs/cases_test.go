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

// casesOfTests are the tests whose comments, on them or within them, name a case.
func casesOfTests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || path == filepath.Join("..", "docs", "cases_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from := f.Pos()
			if f.Doc != nil {
				from = f.Doc.Pos()
			}
			test := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../") + "." + f.Name.Name
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
		}
		return nil
	}))
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
