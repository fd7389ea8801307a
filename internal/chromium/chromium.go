// Package chromium opens a real Chromium for tests.
package chromium

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const patience = time.Minute // of a step in a browser

// Tab is one tab of a Chromium of its own.
type Tab struct{ Context context.Context }

// Open starts a Chromium that sees this machine and nothing else, and ends it
// with the test.
func Open(t testing.TB, width, height int) Tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "pages are read with Chromium (Debian: apt-get install chromium)")
	options := append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.WindowSize(width, height),
		chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which root cannot have
	}
	process, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(end)
	tab, closeTab := chromedp.NewContext(process, chromedp.WithErrorf(func(string, ...any) {})) // of events that it does not know
	t.Cleanup(closeTab)
	require.NoError(t, chromedp.Run(tab), "Chromium starts")
	return Tab{tab}
}

// Do runs actions, and fails when they take long.
func (b Tab) Do(actions ...chromedp.Action) error {
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	return chromedp.Run(ctx, actions...)
}

// Must is Do, or the end of the test.
func (b Tab) Must(t testing.TB, actions ...chromedp.Action) {
	t.Helper()
	require.NoError(t, b.Do(actions...))
}

// Eval evaluates an expression in the page, and what it promises.
func (b Tab) Eval(t testing.TB, expression string, out any) {
	t.Helper()
	b.Must(t, chromedp.Evaluate(expression, out, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
}

// Store writes what a picture shows to a file of the folder that SCREENSHOTS
// names; without one it does nothing.
func Store(t testing.TB, name string, png []byte) {
	t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), png, 0o644))
}

//go:embed axe/package.json axe/package-lock.json
var axePackage embed.FS

// axeSource is axe-core as npm gives it, checked against its lock file.
var axeSource = sync.OnceValues(func() (source string, err error) {
	folder, err := os.MkdirTemp("", "axe-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }() // a temporary folder that stays does no harm
	for _, name := range []string{"package.json", "package-lock.json"} {
		raw, err := axePackage.ReadFile("axe/" + name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, name), raw, 0o600); err != nil {
			return "", err
		}
	}
	var complaints bytes.Buffer
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir, cmd.Stderr = folder, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("npm ci of axe-core (Debian: apt-get install nodejs npm): %w: %s", err, &complaints)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	return string(raw), err
})

// Axe answers what axe-core finds wrong with the page, all rules asked, one line a
// finding.
func (b Tab) Axe(t testing.TB) string {
	t.Helper()
	source, err := axeSource()
	require.NoError(t, err)
	b.Must(t, chromedp.Evaluate(source+"; true", nil))
	var raw string
	b.Eval(t, `axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify({passes: r.passes.length, violations: r.violations}))`, &raw)
	var result struct {
		Passes     int
		Violations []struct {
			ID, Impact, Help string
			Nodes            []struct{ HTML, FailureSummary string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(raw), &result))
	require.NotZero(t, result.Passes, "axe has looked at something")
	var out strings.Builder
	for _, v := range result.Violations {
		for _, n := range v.Nodes {
			fmt.Fprintf(&out, "%s (%s): %s: %s %s\n", v.ID, v.Impact, v.Help, n.HTML, n.FailureSummary)
		}
	}
	return out.String()
}
