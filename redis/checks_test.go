package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// B53: a number or a name that cannot be is refused before anything is sent. A
// unit count of 0, below 0 or above 10^9 would otherwise sell what is not there.
func TestBadRequestsMoveNothing(t *testing.T) {
	f := open(t, 2)
	entry, live := f.waits("ada", 1), f.id(contract.HoldID)
	f.drain()
	offer := f.entry(entry).HoldID
	before, lines := f.counters(), f.lines()
	ctx, sku, fresh := t.Context(), f.sku, f.id(contract.EntryID)
	require.Equal(t, OK, f.reserve(live, 1).Verdict)
	before.Held, before.Available, before.OpenToAll, lines = 1, 0, 0, lines+1
	before.State = contract.SKULine

	stock := func(ev contract.StockEvent) func() error {
		return func() error { _, err := f.g.Stock(ctx, sku, ev); return err }
	}
	reserve := func(units int64, id, person string) func() error {
		return func() error {
			_, err := f.g.Reserve(ctx, ReserveRequest{SKU: sku, HoldID: id, Units: units, Person: person})
			return err
		}
	}
	join := func(units int64, id, person string) func() error {
		return func() error {
			_, err := f.g.Join(ctx, JoinRequest{SKU: sku, EntryID: id, Units: units, Person: person})
			return err
		}
	}
	adopt := func(req AdoptHoldRequest) func() error {
		req.SKU = sku
		return func() error { _, err := f.g.AdoptHold(ctx, req); return err }
	}
	drain := func(limit int) func() error {
		return func() error { _, err := f.g.Drain(ctx, sku, limit); return err }
	}
	limit := int64(-1)
	for name, c := range map[string]struct {
		call func() error
		says string
	}{
		"restock of 0":               {stock(contract.StockEvent{EventID: "b", Kind: contract.StockRestock}), "units is 0, not 1 to 1000000000"},
		"restock of -3":              {stock(contract.StockEvent{EventID: "b", Kind: contract.StockRestock, Units: -3}), "units is -3"},
		"restock of 10^12":           {stock(contract.StockEvent{EventID: "b", Kind: contract.StockRestock, Units: 1e12}), "units is 1000000000000"},
		"restock without an id":      {stock(contract.StockEvent{Kind: contract.StockRestock, Units: 1}), "event id is empty"},
		"correction of 0":            {stock(contract.StockEvent{EventID: "b", Kind: contract.StockCorrection}), "corrects nothing"},
		"correction of -10^12":       {stock(contract.StockEvent{EventID: "b", Kind: contract.StockCorrection, Delta: -1e12}), "delta is -1000000000000"},
		"return of -1":               {stock(contract.StockEvent{EventID: "b", Kind: contract.StockReturn, HoldID: live, ReturnID: "r", Units: -1}), "units is -1"},
		"return without a return id": {stock(contract.StockEvent{EventID: "b", Kind: contract.StockReturn, HoldID: live, Units: 1}), "return id is empty"},
		"return of no hold":          {stock(contract.StockEvent{EventID: "b", Kind: contract.StockReturn, ReturnID: "r", Units: 1}), "hold id is empty"},
		"level of -1":                {stock(contract.StockEvent{EventID: "b", Kind: contract.StockLevel, Units: -1, Version: 1}), "units is -1"},
		"level that counts -1":       {stock(contract.StockEvent{EventID: "b", Kind: contract.StockLevel, Version: 1, CountsSold: -1}), "counts sold is -1"},
		"level of a version too big": {stock(contract.StockEvent{EventID: "b", Kind: contract.StockLevel, Version: 1<<53 + 1}), "version is 9007199254740993"},
		"another kind":               {stock(contract.StockEvent{EventID: "b", Kind: "gift", Units: 1}), `"gift" is not a kind`},
		"reserve of 0":               {reserve(0, "h", "p"), "units is 0"},
		"reserve of -1":              {reserve(-1, "h", "p"), "units is -1"},
		"reserve of 10^12":           {reserve(1e12, "h", "p"), "units is 1000000000000"},
		"reserve for nobody":         {reserve(1, "h", ""), "person is empty"},
		"reserve without an id":      {reserve(1, "", "p"), "hold id is empty"},
		"press without an id":        {func() error { _, err := f.g.Reserve(ctx, ReserveRequest{SKU: sku, Press: true}); return err }, "hold id is empty"},
		"join for 0":                 {join(0, fresh, "p"), "units is 0"},
		"join for -1":                {join(-1, fresh, "p"), "units is -1"},
		"join of nobody":             {join(1, fresh, ""), "person is empty"},
		"join without an id":         {join(1, "", "p"), "entry id is empty"},
		"adopt for no time":          {adopt(AdoptHoldRequest{HoldID: live}), "hold for is 0s"},
		"adopt of 0":                 {adopt(AdoptHoldRequest{HoldID: live, HoldFor: time.Minute, ByWorkflow: true, Person: "p"}), "units is 0"},
		"adopt for nobody":           {adopt(AdoptHoldRequest{HoldID: live, HoldFor: time.Minute, ByWorkflow: true, Units: 1}), "person is empty"},
		"extension back in time": {adopt(AdoptHoldRequest{
			HoldID: live, HoldFor: time.Minute, ByWorkflow: true, Units: 1, Person: "p", Extend: &Extension{By: -time.Second},
		}), "the extension is -1s"},
		"leave as bought": {func() error {
			_, err := f.g.Leave(ctx, LeaveRequest{SKU: sku, EntryID: entry, State: contract.EntryBought})
			return err
		}, `"bought" is not how`},
		"leave of no entry":     {func() error { _, err := f.g.Leave(ctx, LeaveRequest{SKU: sku, State: contract.EntryLeft}); return err }, "entry id is empty"},
		"confirm by no payment": {func() error { _, err := f.g.Confirm(ctx, ConfirmRequest{SKU: sku, HoldID: live}); return err }, "payment ref is empty"},
		"unconfirm of none":     {func() error { _, err := f.g.Unconfirm(ctx, sku, live, "", "test"); return err }, "payment ref is empty"},
		"refund of none":        {func() error { _, err := f.g.Refund(ctx, sku, live, "", "test"); return err }, "payment ref is empty"},
		"limit of -1":           {func() error { _, err := f.g.Settings(ctx, SettingsRequest{SKU: sku, Limit: &limit}); return err }, "limit is -1"},
		"drain of nothing":      {drain(0), "limit is 0"},
		"drain of too much":     {drain(501), "limit is 501"},
		"another sku's name":    {func() error { _, err := f.g.AdoptEntry(ctx, "no sku", entry); return err }, `"no sku" is not a sku`},
	} {
		require.ErrorContains(t, c.call(), c.says, name)
	}
	after := f.counters()
	after.AsOf = before.AsOf
	require.Equal(t, before, after)
	require.Equal(t, lines, f.lines())
	require.Equal(t, contract.HoldOffered, f.hold(offer).State)
	_, decided, err := f.g.EventOutcome(ctx, sku, "b")
	require.NoError(t, err)
	require.False(t, decided, "a bad event leaves no outcome behind")
	require.True(t, f.restock("b", 1).Applied)
	require.False(t, f.drain().Wake)
}

// A billion units go through every verb that counts them without losing one.
func TestABillionUnits(t *testing.T) {
	const most = 1_000_000_000
	f := open(t, most)
	id := f.id(contract.HoldID)
	require.Equal(t, OK, f.reserve(id, most).Verdict)
	require.Equal(t, [4]int64{most, most, 0, 0}, f.parts())
	require.Equal(t, SoldOut, f.reserve(f.id(contract.HoldID), 1).Verdict)
	f.adopt(id, true)
	require.True(t, f.correct("lost", -most, true).Applied)
	require.Equal(t, int64(most), f.counters().Shortfall)
	require.Equal(t, Shortfall, f.confirm(id, "pi").Verdict)
	require.Equal(t, int64(most), f.event(contract.StockEvent{EventID: "found", Kind: contract.StockLevel, Version: 1 << 53, Units: most}).Delta)
	require.Equal(t, OK, f.confirm(id, "pi").Verdict)
	require.Equal(t, [4]int64{0, 0, 0, most}, f.parts())
	require.Equal(t, "too-many", f.restock("one more", 1).Reason)
	require.Equal(t, int64(1<<53), f.counters().LevelVersion)
	require.Equal(t, "level-outdated", f.event(contract.StockEvent{EventID: "old", Kind: contract.StockLevel, Version: 1<<53 - 1, Units: 0, CountsSold: most}).Reason)
	require.Equal(t, int64(most), f.hold(id).Units)
}
