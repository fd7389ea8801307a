package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/dev/stack"
)

// statusSays runs the command as a monitoring check does, and compares its exit code and
// what it says.
func (h *house) statusSays(ctx context.Context, exit int, says ...string) error {
	cmd := exec.CommandContext(ctx, os.Getenv("HOLDFAST_BIN"), "status")
	cmd.Env = append(os.Environ(), "HOLDFAST_URL="+h.URL(), "HOLDFAST_KEY="+stack.APIKey)
	out, err := cmd.Output()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return err
	}
	if got := cmd.ProcessState.ExitCode(); got != exit {
		return fmt.Errorf("it exits with %d, not %d: %s", got, exit, out)
	}
	for _, said := range says {
		if !strings.Contains(string(out), said) {
			return fmt.Errorf("it does not say %q: %s", said, out)
		}
	}
	return nil
}

// What no counter shows, status says: money of another amount for as long as its hold
// lives, and that a SKU was rebuilt.
func TestStatusSaysWhatNoCounterShows(t *testing.T) {
	ctx := t.Context()
	binary(t, "HOLDFAST_BIN")
	h := ownHouse(t, stack.Options{}, 2*time.Second)
	const sku = "watched"
	h.opened(t, sku, 3)
	says := func(what string, exit int, says ...string) {
		t.Helper()
		require.NoError(t, until(ctx, what, func() error { return h.statusSays(ctx, exit, says...) }))
	}
	says("all is well", 0, "all is well")

	hold, err := h.shop.Hold(ctx, sku, "ada")
	require.NoError(t, err)
	pay := func(call string, amount int, code string) {
		t.Helper()
		got, err := h.shop.Call(ctx, "POST", "/v1/holds/"+hold.HoldID+call, map[string]any{"payment_ref": "pay_1", "amount": amount, "currency": "EUR"})
		require.NoError(t, err)
		require.Equal(t, code, got.Code())
	}
	pay("/checkout", 4900, "")
	pay("/confirm", 100, "amount-mismatch")
	says("the money is told", 1, "! "+hold.HoldID+" was paid another amount than its checkout announced")
	pay("/confirm", 4900, "")
	says("the money is put right", 0, "all is well")

	require.NoError(t, h.redis.FlushAll(ctx).Err())
	h.reopens(t, sku)
	says("the rebuild is told", 1, "! "+sku+": was rebuilt at", "for Redis had lost data")
}
