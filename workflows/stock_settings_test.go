package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

func TestStockPolicyOpensASKU(t *testing.T) {
	w := newWorld(t)
	changed := about()
	changed.Title = "Rocking chair"
	var created, same, second *answer[contract.PolicyResult]
	w.at(time.Minute, func() { w.SignalWorkflow(contract.SignalStockEvent, restock("early", 5)) })
	w.at(2*time.Minute, func() {
		require.Empty(t, w.calls, "nothing reaches the gate before the SKU is opened")
		created = update[contract.PolicyResult](w, contract.UpdatePolicy, "a", wantsAbout(about()))
		same = update[contract.PolicyResult](w, contract.UpdatePolicy, "b", wantsAbout(about()))
		second = update[contract.PolicyResult](w, contract.UpdatePolicy, "c", wantsAbout(changed))
	})
	out := w.runStock(contract.StockInput{SKU: chair}, time.Hour)
	require.Equal(t, contract.PolicyResult{Version: 1, Created: true}, created.result)
	require.Equal(t, contract.PolicyResult{Version: 1}, same.result)
	require.Equal(t, contract.PolicyResult{Version: 2}, second.result)
	require.Equal(t, changed, out.Book.About)
	require.EqualValues(t, 2, out.Book.Version)
	require.Equal(t, 1, w.called("open ok"))
	require.Len(t, w.settings, 2)
	require.EqualValues(t, 5, w.free)
}

func TestStockPolicyRefusesANumberOfAnother(t *testing.T) {
	w := newWorld(t)
	w.owner = "OTHER"
	var a *answer[contract.PolicyResult]
	w.at(time.Minute, func() {
		a = update[contract.PolicyResult](w, contract.UpdatePolicy, "", wantsAbout(about()))
	})
	out := w.runStock(contract.StockInput{SKU: chair}, time.Hour)
	require.ErrorContains(t, a.err, "OTHER")
	require.False(t, out.Book.Opened)
}

func TestStockPolicyRefusesBadInput(t *testing.T) {
	for word, change := range map[string]func(a *contract.About){
		"title is empty":     func(a *contract.About) { a.Title = " " },
		"at most 200":        func(a *contract.About) { a.Title = strings.Repeat("ä", 201) },
		"control characters": func(a *contract.About) { a.Title = "a\x00b" },
		"checkout_url":       func(a *contract.About) { a.CheckoutURL = "/cart" },
		"image_url":          func(a *contract.About) { a.ImageURL = "ftp://x/y" },
		"price":              func(a *contract.About) { a.Price = &contract.Money{Amount: 5, Currency: "eur"} },
	} {
		w := newWorld(t)
		bad := about()
		change(&bad)
		var a *answer[contract.PolicyResult]
		w.at(time.Minute, func() {
			a = update[contract.PolicyResult](w, contract.UpdatePolicy, "", wantsAbout(bad))
		})
		w.runStock(contract.StockInput{SKU: chair}, time.Hour)
		require.ErrorContains(t, a.rejected, word)
		require.Empty(t, w.settings)
	}
}

func TestStockPauses(t *testing.T) {
	w := newWorld(t)
	var a, b *answer[contract.PauseResult]
	w.at(time.Minute, func() {
		a = update[contract.PauseResult](w, contract.UpdatePause, "a", contract.PauseRequest{Paused: true, Actor: "ops"})
	})
	w.at(2*time.Minute, func() {
		b = update[contract.PauseResult](w, contract.UpdatePause, "b", contract.PauseRequest{})
	})
	out := w.runStock(contract.StockInput{SKU: chair, Book: openBook()}, 90*time.Second)
	require.True(t, a.result.Paused)
	require.Nil(t, b)
	require.True(t, out.Book.Paused)
	require.True(t, *w.settings[0].Paused)
	require.Equal(t, "ops", w.settings[0].Actor)

	w = newWorld(t)
	w.at(time.Minute, func() {
		a = update[contract.PauseResult](w, contract.UpdatePause, "a", contract.PauseRequest{Paused: true})
	})
	w.runStock(contract.StockInput{SKU: chair}, time.Hour)
	require.ErrorContains(t, a.rejected, "not been opened")
}
