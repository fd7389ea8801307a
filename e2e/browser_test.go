package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browser is one tab of a real Chromium, as an operator looks through it.
type browser struct{ tab context.Context }

// openBrowser starts a Chromium that sees this machine and nothing else.
func openBrowser(t *testing.T) browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "the UI is read with Chromium (Debian: apt-get install chromium)")
	options := append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.WindowSize(1280, 900),
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
	return browser{tab}
}

// do runs actions, and fails when they take longer than a story waits.
func (b browser) do(actions ...chromedp.Action) error {
	ctx, cancel := context.WithTimeout(b.tab, patience)
	defer cancel()
	return chromedp.Run(ctx, actions...)
}

// poll waits until an expression is true in the page.
func (b browser) poll(expression string) error {
	err := b.do(chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(patience)))
	if err == nil {
		return nil
	}
	text, rerr := b.text()
	return errors.Join(fmt.Errorf("waited in vain until %s: %w; the page says:\n%s", expression, err, text), rerr)
}

// text is all that the page shows, that of its frames included.
func (b browser) text() (string, error) {
	var text string
	err := b.do(chromedp.Evaluate(`[document, ...[...document.querySelectorAll('iframe')].map(f => f.contentDocument)]
		.map(d => d && d.body ? d.body.innerText : '').join('\n')`, &text))
	return text, err
}

// page opens one tab of a workflow's page, once there is such a workflow.
func (b browser) page(h *house, id, tab string) error {
	var run string
	err := until(b.tab, id+" has started", func() error {
		described, err := h.temporal.DescribeWorkflow(b.tab, id, "")
		if err == nil {
			run = described.WorkflowExecution.RunID
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.do(chromedp.Navigate(h.UIURL() + "/namespaces/default/workflows/" + id + "/" + run + "/" + tab))
}

// The UI shows Markdown in a frame of its own.
const detailsLines = `[...(document.getElementById('user-metadata-current-details')?.contentDocument?.querySelectorAll('li') ?? [])]
	.map(li => li.textContent.replace(/\s+/g, ' ').trim())`

// reads waits until the current details of a workflow are these lines. The page
// asks for them once: what changes after that needs a fresh look.
func (b browser) reads(t *testing.T, h *house, id string, want ...string) {
	t.Helper()
	require.NoError(t, b.page(h, id, "user-metadata"))
	require.NoError(t, until(t.Context(), "the UI shows the details of "+id, func() error {
		var got []string
		err := b.do(chromedp.Evaluate(detailsLines, &got))
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("it shows\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			if len(got) > 0 {
				err = errors.Join(err, b.page(h, id, "user-metadata"))
			}
		}
		return err
	}))
}

// picture stores what the window shows, when SCREENSHOTS names a folder.
func (b browser) picture(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	require.NoError(t, b.do(chromedp.CaptureScreenshot(&png)))
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), png, 0o644))
}

func utc(at time.Time) string { return at.UTC().Format(time.RFC3339) }
