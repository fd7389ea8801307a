package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

// drill is the command as an operator types it.
func (h *house) drill(t *testing.T, out *bytes.Buffer, more ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t, "HOLDFAST_BIN"), append([]string{"drill", "oversell"}, more...)...)
	cmd.Env = append(os.Environ(), "HOLDFAST_URL="+h.URL(), "HOLDFAST_KEY="+stack.APIKey, "HOLDFAST_WEBHOOK_SECRET="+stack.InventorySecret)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd
}

// alarm is the data of stock.shortfall.
type alarm struct {
	State  string `json:"state"`
	Paused bool   `json:"paused"`
	Rings  []struct {
		Wire string `json:"wire"`
	} `json:"rings"`
}

func (b *inbox) alarmsOf(t *testing.T, sku string) (out []string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.taken {
		var a struct {
			SKU string `json:"sku"`
			alarm
		}
		require.NoError(t, json.Unmarshal(e.Data, &a))
		if e.Type != "stock.shortfall" || a.SKU != sku {
			continue
		}
		text := a.State
		for _, r := range a.Rings {
			text += " " + r.Wire
		}
		if a.Paused {
			text += ", paused"
		}
		out = append(out, text)
	}
	return out
}

// An operator plays an oversale: everything rings, is put away and silent again. A
// drill that is broken off puts its units away; one that is killed leaves them, and
// the next drill puts them away first.
func TestTheDrillRings(t *testing.T) {
	ctx := t.Context()
	box := newInbox(t)
	h := ownHouse(t, stack.Options{Env: box.env()}, lease)
	h.opened(t, "CHAIR", 2)
	const sku = "drill-oversell"
	putAway := func() error {
		s, err := h.shop.Stock(ctx, sku)
		if err == nil && (s.OnHand != 0 || s.Held != 0 || s.Shortfall != 0) {
			err = fmt.Errorf("%+v", s)
		}
		return err
	}

	var out bytes.Buffer
	require.NoError(t, h.drill(t, &out).Run(), out.String())
	t.Log(out.String())
	require.Equal(t, 6, strings.Count(out.String(), "rang    "), out.String())
	require.NoError(t, putAway())
	require.NoError(t, until(ctx, "the shop knows that it is over", func() error {
		if got := box.alarmsOf(t, sku); len(got) != 2 || got[0] != "ringing shortfall" || got[1] != "over" {
			return fmt.Errorf("%q", got)
		}
		return nil
	}))

	for _, ends := range []struct {
		name  string
		with  os.Signal
		leave bool
	}{{"broken off", syscall.SIGINT, false}, {"killed", syscall.SIGKILL, true}} {
		name := ends.name
		box.answers(http.StatusServiceUnavailable) // the event does not ring: the drill waits
		var out bytes.Buffer
		cmd := h.drill(t, &out)
		require.NoError(t, cmd.Start())
		require.NoError(t, until(ctx, "the drill promises too much", func() error {
			s, err := h.shop.Stock(ctx, sku)
			if err == nil && s.Shortfall != 1 {
				err = fmt.Errorf("%+v", s)
			}
			return err
		}), name)
		require.NoError(t, cmd.Process.Signal(ends.with))
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Wait(), &exit, name)
		box.answers(0)
		s, err := h.shop.Stock(ctx, sku)
		require.NoError(t, err)
		require.Equal(t, ends.leave, s.Shortfall == 1, "%s: %+v\n%s", name, s, out.String())
	}
	out.Reset()
	require.NoError(t, h.drill(t, &out).Run(), out.String())
	require.NoError(t, putAway())

	// What does not ring is named.
	box.answers(http.StatusServiceUnavailable)
	out.Reset()
	var exit *exec.ExitError
	require.ErrorAs(t, h.drill(t, &out, "--wait", "3s").Run(), &exit)
	require.Equal(t, 1, exit.ExitCode(), out.String())
	require.Contains(t, out.String(), "SILENT  event stock.shortfall")
	require.NoError(t, putAway())
	h.judge(t, "CHAIR")
}

// No call of the product sells more than was received: a hand in Redis does. Each wire
// rings in the metric and readyz of both processes, in the log, in the report and at the
// shop, once; and as it is configured here the SKU is paused, once.
func TestABrokenCounterRings(t *testing.T) {
	ctx := t.Context()
	box := newInbox(t)
	h := ownHouse(t, stack.Options{Env: box.env("HOLDFAST_TRIPWIRE_PAUSE", "true")}, lease)
	const sku = "bent"
	h.opened(t, sku, 5)
	_, err := h.shop.Hold(ctx, sku, "buyer")
	require.NoError(t, err)
	bend := func(field string, by int64) {
		require.NoError(t, h.redis.HIncrBy(ctx, "hf:{"+sku+"}:stock", field, by).Err())
	}
	told := func(want ...string) {
		t.Helper()
		require.NoError(t, until(ctx, fmt.Sprintf("the shop was told %q", want), func() error {
			if got := box.alarmsOf(t, sku); fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Errorf("%q", got)
			}
			return nil
		}))
	}

	// The units of a sale are counted twice: sold 6 of 5, and nothing in the books says so.
	bend("sold", 6)
	told("ringing oversold ledger, paused")
	require.NoError(t, until(ctx, "both metrics ring, and readyz", func() error {
		for _, url := range []string{h.URL(), h.WorkerOpsURL()} {
			if got := scrapeOf(t, url).samples["holdfast_tripwire"]; got != "1" {
				return fmt.Errorf("%s: %s", url, got)
			}
		}
		a, err := h.shop.Call(ctx, http.MethodGet, "/readyz", nil)
		if err == nil && (a.Status != http.StatusOK || !strings.Contains(string(a.Body), `"tripwire":{"bent":["oversold","ledger"]}`)) {
			err = errors.New(a.String())
		}
		return err
	}))
	for _, name := range []string{stack.Worker, stack.Door} {
		log, err := os.ReadFile(filepath.Join(h.dir, "logs", name+".log"))
		require.NoError(t, err)
		require.Contains(t, string(log), `"level":"ERROR","msg":"tripwire"`, name)
	}
	require.Contains(t, strings.Join(h.reconcile(t, "--dry-run", sku).Alarms, "\n"), "oversold: 6 units are sold, and only 5 have ever been there")
	a, err := h.shop.AskHold(ctx, sku, "another", "another")
	require.NoError(t, err)
	require.Equal(t, "paused", a.Code())

	// A person resumes it; that it rings on pauses nothing again.
	a, err = h.shop.Call(ctx, http.MethodPost, "/v1/stock/"+sku+"/resume", map[string]any{})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, a)
	_, err = h.shop.Hold(ctx, sku, "another")
	require.NoError(t, err)
	bend("sold", -6)
	require.NoError(t, until(ctx, "the book has looked again", func() error {
		a, err := h.shop.Call(ctx, http.MethodGet, "/v1/stock/"+sku+"/tripwire", nil)
		var v struct {
			Paused bool  `json:"paused"`
			Alarm  alarm `json:"alarm"`
		}
		if err == nil {
			err = json.Unmarshal(a.Body, &v)
		}
		require.False(t, v.Paused)
		// The lines that were written meanwhile say that 6 were sold, and will not add up.
		if err == nil && (len(v.Alarm.Rings) != 1 || v.Alarm.Rings[0].Wire != "ledger") {
			err = errors.New(a.String())
		}
		return err
	}))
	told("ringing oversold ledger, paused")
}
