package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/e2e/check"
)

// owned judges both SKUs while people hold something, right after the storm: what had no
// owner by then, Reconcile has not mended yet. With the answer to a hold of each SKU the
// gate has opened again.
func (m *mob) owned(ctx context.Context, t *testing.T) {
	t.Helper()
	m.deliver(ctx, m.flash+"-last", m.flash, 5)
	var owned int
	for _, sku := range []string{m.flash, m.line} {
		_, ok := m.take(ctx, sku, "owned-"+sku)
		require.True(t, ok)
		found, live, err := m.check.CheckLive(ctx, sku)
		require.NoError(t, err)
		for _, v := range found {
			t.Error(v)
		}
		owned += live
	}
	require.Positive(t, owned, "nobody holds anything, so nothing was asked")
	figure(t, "chaos_owned", float64(owned), "live holds with an owner")
}

// calm waits until nothing is under way any more.
func (m *mob) calm(ctx context.Context, t *testing.T) {
	t.Helper()
	require.NoError(t, within(ctx, chaosCalm, "every hold has ended", func() error {
		for _, sku := range []string{m.flash, m.line} {
			facts, err := m.check.Gate(ctx, sku)
			if err != nil {
				return err
			}
			for id, h := range facts.Holds {
				if h.State == "offered" || h.State == "provisional" || h.State == "held" {
					return fmt.Errorf("%s of %s is %s", id, sku, h.State)
				}
			}
		}
		return nil
	}))
}

// account holds the clients' logs against what there is.
func (m *mob) account(ctx context.Context, t *testing.T) {
	t.Helper()
	require.Empty(t, m.faults)
	for _, sku := range []string{m.flash, m.line} {
		facts, err := m.check.Gate(ctx, sku)
		require.NoError(t, err)
		require.Equal(t, m.restocked[sku], facts.Counters.Received, "units received of %s", sku)
	}
	require.NoError(t, each(ctx, len(m.joined), 4, func(ctx context.Context, i int) error {
		entry, err := m.shop.ReadEntry(ctx, m.joined[i])
		if err == nil && (entry.State == "offered" || entry.State == "holding") {
			err = fmt.Errorf("%s is %s, and no hold is live", m.joined[i], entry.State)
		}
		return err
	}))
	require.NoError(t, each(ctx, len(m.promises), 4, func(ctx context.Context, i int) error { return m.kept(ctx, m.promises[i]) }))
}

// asPromised holds the records against what clients were told and asked for. Nothing was
// lost, so Reconcile had nothing to end and nothing to rebuild.
func (m *mob) asPromised(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, sku := range []string{m.flash, m.line} {
		facts, err := m.check.Gate(ctx, sku)
		require.NoError(t, err)
		for _, v := range append(check.Mended(facts), check.JudgePromises(facts, m.promisesOf(facts))...) {
			t.Error(v)
		}
		for _, l := range facts.Ledger {
			if l.Verb == "repair" {
				assert.NotEqual(t, "rebuilt", l.Reason, "%s was rebuilt, and Redis has lost nothing", sku)
				t.Logf("mended at %s: %s %s %s, %s", sku, l.Kind, l.Ref, l.Other, l.Reason)
			}
		}
	}
}

// promisesOf are the promises whose holds are of a SKU. A hold that no SKU knows is found
// by kept.
func (m *mob) promisesOf(facts check.Facts) (of []check.Promise) {
	for _, p := range m.promises {
		if _, known := facts.Holds[p.holdID]; known {
			of = append(of, check.Promise{HoldID: p.holdID, Until: p.until, Released: p.released, Paid: len(p.paid) > 0})
		}
	}
	return of
}

// silent: nothing is left to mend, and no alarm is on.
func (m *mob) silent(ctx context.Context, t *testing.T, sku string) {
	t.Helper()
	require.NoError(t, until(ctx, "nothing is left to mend of "+sku, func() error {
		a, err := m.shop.Call(ctx, http.MethodPost, "/v1/stock/"+sku+"/reconcile", map[string]any{"dry_run": true})
		var report struct {
			Done        bool     `json:"done"`
			Found       int      `json:"found"`
			Differences []string `json:"differences"`
			Alarms      []string `json:"alarms"`
		}
		if err == nil {
			err = json.Unmarshal(a.Body, &report)
		}
		if err == nil && (!report.Done || report.Found > 0 || len(report.Alarms) > 0) {
			err = errors.New(a.String())
		}
		return err
	}))
	a, err := m.shop.Call(ctx, http.MethodGet, "/v1/stock/"+sku+"/tripwire", nil)
	require.NoError(t, err)
	require.Contains(t, string(a.Body), `"alarm":null`, "the tripwire of %s", sku)
}

// kept says how a promise was broken.
func (m *mob) kept(ctx context.Context, p *promise) error {
	hold, err := m.shop.ReadHold(ctx, p.holdID)
	if err != nil {
		return fmt.Errorf("a promised hold is not known any more: %w", err)
	}
	var errs []error
	if _, told := p.paid[hold.PaymentRef]; hold.State == "sold" && !told {
		errs = append(errs, fmt.Errorf("%s is sold by %q, of which nobody has told", p.holdID, hold.PaymentRef))
	}
	for ref, a := range p.paid {
		sold := hold.State == "sold" && hold.PaymentRef == ref
		if a.Status == http.StatusOK && !sold {
			errs = append(errs, fmt.Errorf("payment %s was answered as the sale of %s, which is %s by %q", ref, p.holdID, hold.State, hold.PaymentRef))
		}
		if !sold {
			errs = append(errs, m.refunded(ctx, p.holdID, ref, a))
		}
	}
	if hold.State == "refused" {
		errs = append(errs, fmt.Errorf("%s was promised and then refused", p.holdID))
	}
	return errors.Join(errs...)
}

// refunded says when money that made no sale has no owner who gives it back.
func (m *mob) refunded(ctx context.Context, holdID, ref string, said any) error {
	return until(ctx, "payment "+ref+" has an owner", func() error {
		a, err := m.shop.Confirm(ctx, holdID, ref) // a repeat answers what became of it
		if err != nil {
			return err
		}
		refund := a.Problem().Refund
		if a.Status != http.StatusConflict || refund == nil {
			return fmt.Errorf("payment %s of %s was answered %v, and now %s", ref, holdID, said, a)
		}
		if refund.State != "refund-pending" && refund.State != "refund-settled" {
			return fmt.Errorf("payment %s of %s is %s", ref, holdID, refund.State)
		}
		return nil
	})
}
