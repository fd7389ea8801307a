package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/shop"
)

// Two walk-ins ask for the last unit in the same instant.
// B1, B5.
func TestLastUnitWalkInAgainstWalkIn(t *testing.T) {
	const rounds, lanes = 200, 8
	h := sharedHouse(t)
	var wins [2]int
	var mu sync.Mutex
	skus := make([]string, lanes)
	require.NoError(t, each(t.Context(), lanes, lanes, func(ctx context.Context, lane int) error {
		skus[lane] = fmt.Sprintf("last-walkin-%d", lane)
		if err := h.open(ctx, skus[lane], 0); err != nil {
			return err
		}
		for round := lane; round < rounds; round += lanes {
			winner, err := h.walkInRound(ctx, skus[lane], round)
			if err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			mu.Lock()
			wins[winner]++
			mu.Unlock()
		}
		return nil
	}))
	t.Logf("wins: %v", wins)
	require.GreaterOrEqual(t, wins[0], 10)
	require.GreaterOrEqual(t, wins[1], 10)
	h.judge(t, skus...)
}

// walkInRound adds the unit, lets two walk-ins race for it and answers which
// of them won. They stand first at the barrier in turns.
func (h *house) walkInRound(ctx context.Context, sku string, round int) (winner int, err error) {
	if err := h.shop.Restock(ctx, sku, 1); err != nil {
		return 0, err
	}
	var answers [2]shop.Answer
	var errs [2]error
	side := func(i int) func() {
		return func() {
			answers[i], errs[i] = h.shop.AskHold(ctx, sku, fmt.Sprintf("customer-%d", i), shop.Token())
		}
	}
	race(side(round%2), side(1-round%2))
	if err := errors.Join(errs[0], errs[1]); err != nil {
		return 0, err
	}
	for i, a := range answers {
		b := answers[1-i]
		if a.Status == http.StatusCreated && b.Status == http.StatusConflict && b.Code() == "sold-out" {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no hold and clean refusal: %s and %s", answers[0], answers[1])
}

// An offer's press meets a walk-in who wants the same unit.
// B5, B45.
func TestLastUnitPressAgainstWalkIn(t *testing.T) {
	const rounds, lanes = 50, 5
	h := sharedHouse(t)
	skus := make([]string, lanes)
	require.NoError(t, each(t.Context(), lanes, lanes, func(ctx context.Context, lane int) error {
		skus[lane] = fmt.Sprintf("last-press-%d", lane)
		if err := h.open(ctx, skus[lane], 0); err != nil {
			return err
		}
		for round := lane; round < rounds; round += lanes {
			if err := h.pressRound(ctx, skus[lane], round); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return nil
	}))
	h.judge(t, skus...)
}

func (h *house) pressRound(ctx context.Context, sku string, round int) error {
	entry, err := h.inLine(ctx, h.shop, sku, phone(round))
	if err != nil {
		return err
	}
	if err := h.shop.Restock(ctx, sku, 1); err != nil {
		return err
	}
	page, err := h.linkPage(ctx, entry.EntryID)
	if err != nil {
		return err
	}
	var pressed shop.Page
	var refused shop.Answer
	var pressErr, walkErr error
	sides := []func(){
		func() { pressed, pressErr = h.shop.Press(ctx, page, "/r/") },
		func() { refused, walkErr = h.shop.AskHold(ctx, sku, "walk-in", shop.Token()) },
	}
	race(sides[round%2], sides[1-round%2])
	if err := errors.Join(pressErr, walkErr); err != nil {
		return err
	}
	if pressed.Status != http.StatusSeeOther {
		return fmt.Errorf("the press got %d %q", pressed.Status, pressed.Text)
	}
	if code := refused.Code(); refused.Status != http.StatusConflict || (code != "reserved-for-line" && code != "sold-out") {
		return fmt.Errorf("the walk-in got %s", refused)
	}
	_, err = h.entryState(ctx, entry.EntryID, "holding")
	return err
}

// A press in the instant in which its offer lapses. The waves aim by what the
// one before brought, so that both sides win.
// B13.
func TestLastUnitPressAgainstLapse(t *testing.T) {
	const rounds, waves = 100, 5
	h := sharedHouse(t)
	door := h.door(t, "HOLDFAST_OFFER_WINDOW", "5s")
	aim := 20 * time.Millisecond // after the deadline
	var presses, lapses int
	var skus []string
	for wave := range waves {
		sku := fmt.Sprintf("last-lapse-%d", wave)
		skus = append(skus, sku)
		won, err := h.lapseWave(t.Context(), door, sku, rounds/waves, aim)
		require.NoError(t, err)
		t.Logf("wave %d, aimed %s after the deadline: %d presses, %d lapses", wave, aim, won, rounds/waves-won)
		presses += won
		lapses += rounds/waves - won
		// All pressed: twice as late. All lapsed: half as late.
		aim = time.Duration(float64(aim) * math.Pow(2, 2*float64(won)/(rounds/waves)-1))
	}
	require.Equal(t, rounds, presses+lapses)
	require.GreaterOrEqual(t, presses, 10, "presses")
	require.GreaterOrEqual(t, lapses, 10, "lapses")
	h.judge(t, skus...)
}

// lapseWave gives n people an offer each, presses each around its own deadline
// and answers how many presses won.
func (h *house) lapseWave(ctx context.Context, door *shop.Shop, sku string, n int, aim time.Duration) (int, error) {
	if err := h.open(ctx, sku, 0); err != nil {
		return 0, err
	}
	entries := make([]shop.Entry, n)
	err := each(ctx, n, n, func(ctx context.Context, i int) (err error) {
		entries[i], err = h.inLine(ctx, door, sku, phone(i))
		return err
	})
	if err != nil {
		return 0, err
	}
	if err := h.shop.Restock(ctx, sku, int64(n)); err != nil {
		return 0, err
	}
	var won int
	var mu sync.Mutex
	err = each(ctx, n, n, func(ctx context.Context, i int) error {
		pressed, err := h.lapseRound(ctx, sku, entries[i].EntryID, aim)
		if pressed {
			mu.Lock()
			won++
			mu.Unlock()
		}
		return err
	})
	return won, err
}

// lapseRound presses one offer between half and one and a half aim after its deadline, which the door
// tells together with its own clock, and answers whether the press won. The
// ledger must tell the same.
func (h *house) lapseRound(ctx context.Context, sku, entryID string, aim time.Duration) (bool, error) {
	page, err := h.linkPage(ctx, entryID)
	if err != nil {
		return false, err
	}
	var entry shop.Entry
	if err := until(ctx, "the offer's window runs", func() error {
		entry, err = h.shop.ReadEntry(ctx, entryID)
		if err == nil && (entry.Offer == nil || entry.Offer.ExpiresAt.Sub(entry.Now) > 5*time.Second) {
			err = fmt.Errorf("entry is %+v", entry)
		}
		return err
	}); err != nil {
		return false, err
	}
	late := aim/2 + rand.N(aim)
	select {
	case <-time.After(entry.Offer.ExpiresAt.Sub(entry.Now) + late):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	answer, err := h.shop.Press(ctx, page, "/r/")
	if err != nil {
		return false, err
	}
	f, err := h.check.Gate(ctx, sku)
	if err != nil {
		return false, err
	}
	var presses, lapses int
	for _, l := range f.Ledger {
		if f.Holds[l.Ref].Entry == entryID && l.Kind == "press" {
			presses++
		}
		if f.Holds[l.Ref].Entry == entryID && l.Kind == "lapsed" {
			lapses++
		}
	}
	pressed := answer.Status == http.StatusSeeOther
	switch {
	case pressed && presses == 1 && lapses == 0:
	case answer.Status < http.StatusInternalServerError && !pressed && presses == 0 && lapses == 1:
	default:
		return false, fmt.Errorf("entry %s: the press got %d %q, the ledger has %d presses and %d lapses", entryID, answer.Status, answer.Text, presses, lapses)
	}
	return pressed, nil
}
