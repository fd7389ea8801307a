package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"holdfast/internal/chromium"
)

// browser is one tab of a real Chromium, as an operator looks through it.
type browser struct {
	tab  context.Context
	look chromium.Tab
}

// openBrowser starts a Chromium that sees this machine and nothing else.
func openBrowser(t *testing.T) browser {
	t.Helper()
	tab := chromium.Open(t, 1280, 900)
	return browser{tab.Context, tab}
}

// do runs actions, and fails when they take longer than a story waits.
func (b browser) do(actions ...chromedp.Action) error { return b.look.Do(actions...) }

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
	var png []byte
	require.NoError(t, b.do(chromedp.CaptureScreenshot(&png)))
	chromium.Store(t, name, png)
}

func utc(at time.Time) string { return at.UTC().Format(time.RFC3339) }
