package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"holdfast/codec"
	"holdfast/config"
	"holdfast/dev/stack"
)

const (
	oldKey   = "2025:b2xkIHBheWxvYWQga2V5IG9mIHRoZSBzdG9yeSBoZXI="
	newKey   = "2026:bmV3IHBheWxvYWQga2V5IG9mIHRoZSBzdG9yeSBoZXI="
	otherKey = "nobody:c29tZSBwYXlsb2FkIGtleSBvZiBzb21lYm9keSBlbHM="
)

func ringOf(t *testing.T, items ...string) (*codec.Codec, []string) {
	t.Helper()
	var keys []codec.Key
	var names []string
	for _, item := range items {
		id, secret, ok := config.PayloadKey(item)
		require.True(t, ok)
		keys = append(keys, codec.Key{ID: id, Secret: secret})
		names = append(names, keys[len(keys)-1].Name())
	}
	c, err := codec.New(keys...)
	require.NoError(t, err)
	return c, names
}

// The step that is easily forgotten: a door encrypts with the new key before the
// worker knows it. Nothing that it says is lost; the worker says which key it
// misses, and goes on by itself when it gets it.
func TestAKeyIsUsedBeforeTheWorkerKnowsIt(t *testing.T) {
	ctx := t.Context()
	const keys = "HOLDFAST_SECRETS_PAYLOAD_KEYS"
	h := ownHouse(t, stack.Options{Env: map[string]string{keys: oldKey}}, lease)
	sku := "rotation"
	h.opened(t, sku, 1)
	hold, err := h.shop.Hold(ctx, sku, "customer")
	require.NoError(t, err)
	ahead := h.door(t, keys, newKey+","+oldKey) // which wakes the book, under the new key

	// A payment and a delivery under the new key.
	a, err := ahead.Confirm(ctx, hold.HoldID, "pay_ahead")
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, a.Status, a)
	require.Contains(t, a.Problem().Detail, "the payment is recorded")
	a, err = ahead.Inventory(ctx, map[string]any{"event_id": "delivery", "sku": sku, "kind": "restock", "units": 4})
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, a.Status, a)
	ring, names := ringOf(t, newKey, oldKey)
	require.NoError(t, until(ctx, "the worker says which key it misses", func() error {
		raw, err := os.ReadFile(filepath.Join(h.dir, "logs", stack.Worker+".log"))
		if err == nil && !strings.Contains(string(raw), names[0]+`\", which is not in secrets.payload_keys (listed are `+names[1]) {
			err = errors.New("its log does not name it")
		}
		return err
	}))
	still, err := h.shop.ReadHold(ctx, hold.HoldID)
	require.NoError(t, err)
	require.Equal(t, "held", still.State, "neither paid nor given back")

	_, err = h.shop.Hold(ctx, sku, "of the delivery")
	require.ErrorContains(t, err, "sold-out", "the delivery waits for its worker")

	worker, err := stack.Start(ctx, stack.Options{
		Dir: t.TempDir(), Holdfast: binary(t, "HOLDFAST_BIN"),
		External: stack.External{Redis: h.RedisAddr(), Temporal: h.TemporalAddr()},
		Env:      with(nil, keys, oldKey+","+newKey, "HOLDFAST_GATE_LEASE", lease.String(), "HOLDFAST_SMS_SEGMENTS_PER_SECOND", "10000"),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, worker.Close()) })
	require.NoError(t, h.Child(stack.Worker).Stop())

	sold, err := h.holdState(ctx, hold.HoldID, "sold")
	require.NoError(t, err)
	require.Equal(t, "pay_ahead", sold.PaymentRef)
	require.NoError(t, until(ctx, "the delivery is on hand", func() error {
		stock, err := h.shop.Stock(ctx, sku)
		if err == nil && (stock.OnHand != 4 || stock.Sold != 1) {
			err = fmt.Errorf("on hand are %d, sold %d", stock.OnHand, stock.Sold)
		}
		return err
	}))

	// An update under a key that nobody has is refused, and the hold goes on.
	strangers, _ := ringOf(t, otherKey)
	last, err := h.shop.Hold(ctx, sku, "last")
	require.NoError(t, err)
	stranger, err := client.Dial(client.Options{HostPort: h.TemporalAddr(), Logger: quiet{}, DataConverter: strangers.DataConverter()})
	require.NoError(t, err)
	defer stranger.Close()
	short, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	update, err := stranger.UpdateWorkflow(short, client.UpdateWorkflowOptions{
		WorkflowID: last.HoldID, UpdateName: "confirm", WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{map[string]string{"payment_ref": "pay_nobody"}},
	})
	require.NoError(t, err)
	require.ErrorContains(t, update.Get(short, nil), "Encoded failure", "refused, in words for who has a key")
	confirmed(t, h, last.HoldID, "pay_last")
	h.check.Codec = ring
	h.judge(t, sku)
}
