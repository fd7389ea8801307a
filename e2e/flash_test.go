package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/check"
	"holdfast/e2e/shop"
)

// B1, B5: two thousand ask for a hundred units in the same moment. Each hears that it has
// one, or that it is sold out.
func TestFlashSale(t *testing.T) {
	const requests, units, connections = 2000, 100, 200
	h := sharedHouse(t)
	sku := "flash"
	h.opened(t, sku, units)

	crowd, dials := crowdOf(h.shop, connections)
	answers := make([]shop.Answer, requests)
	var won atomic.Int64
	var lastWin atomic.Int64
	barrier := make(chan struct{})
	waiting := make(chan struct{}, requests)
	finished := make(chan error)
	go func() {
		finished <- each(t.Context(), requests, requests, func(ctx context.Context, i int) (err error) {
			waiting <- struct{}{}
			<-barrier
			answers[i], err = crowd.AskHold(ctx, sku, fmt.Sprintf("customer-%d", i), fmt.Sprintf("flash-%d", i))
			if answers[i].Status == http.StatusCreated {
				won.Add(1)
				lastWin.Store(time.Now().UnixNano())
			}
			return err
		})
	}()
	for range requests {
		<-waiting
	}
	began := time.Now()
	close(barrier)
	require.NoError(t, <-finished)
	took := time.Since(began)

	winners := map[string]bool{}
	for i, a := range answers {
		switch {
		case a.Status == http.StatusCreated:
			hold, err := shop.ParseHold(a)
			require.NoError(t, err)
			require.Equal(t, "held", hold.State)
			require.Equal(t, fmt.Sprintf("customer-%d", i), hold.Customer)
			require.False(t, winners[hold.HoldID], "hold %s was given twice", hold.HoldID)
			winners[hold.HoldID] = true
		case a.Status == http.StatusConflict && a.Code() == "sold-out":
		default:
			t.Fatalf("request %d was answered neither 201 nor 409 sold-out: %s", i, a)
		}
	}
	require.Len(t, winners, units)
	require.GreaterOrEqual(t, dials.Load(), int64(connections), "connections")

	require.Equal(t, winners, h.holdRuns(t, sku), "Hold runs in Temporal and winners")
	h.judge(t, sku)
	figure(t, "flash_sale_requests", perSecond(requests, took), "1/s")
	figure(t, "flash_sale_holds", perSecond(units, time.Duration(lastWin.Load()-began.UnixNano())), "1/s")
}

// crowdOf is the shop over connections of its own, and how many it opened.
func crowdOf(s *shop.Shop, connections int) (*shop.Shop, *atomic.Int64) {
	var dials atomic.Int64
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	crowd := *s
	crowd.HTTP = &http.Client{
		Timeout: 2 * time.Minute,
		Transport: &http.Transport{
			MaxConnsPerHost:     connections,
			MaxIdleConnsPerHost: connections,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials.Add(1)
				return dialer.DialContext(ctx, network, addr)
			},
		},
	}
	return &crowd, &dials
}

// holdRuns are the ids of all Hold runs of a SKU that Temporal knows of. Its
// list is behind the truth: a run started last tells when the others are in.
func (h *house) holdRuns(t *testing.T, sku string) map[string]bool {
	t.Helper()
	marker := "marker-" + sku
	h.opened(t, marker, 1)
	last, err := h.shop.Hold(t.Context(), marker, "marker")
	require.NoError(t, err)
	require.NoError(t, until(t.Context(), "the marker is listed", func() error {
		ids, err := check.List(t.Context(), h.temporal, "WorkflowId = '"+last.HoldID+"'")
		if err == nil && !slices.Contains(ids, last.HoldID) {
			err = fmt.Errorf("%d listed", len(ids))
		}
		return err
	}))
	var runs map[string]bool
	require.NoError(t, until(t.Context(), "every record's run is listed", func() error {
		ids, err := check.List(t.Context(), h.temporal, "WorkflowType = 'Hold' AND HoldfastSku = '"+sku+"'")
		if err != nil {
			return err
		}
		runs = map[string]bool{}
		for _, id := range ids {
			if runs[id] {
				return fmt.Errorf("%s has two runs", id)
			}
			runs[id] = true
		}
		f, err := h.check.Gate(t.Context(), sku)
		if err == nil && len(runs) < len(f.Holds) {
			err = fmt.Errorf("%d of %d", len(runs), len(f.Holds))
		}
		return err
	}))
	return runs
}
