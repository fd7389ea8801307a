package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// B28: the browser and the webhook finish the same payment in the same moment,
// and twice more: one sale, and every caller gets the same good answer.
func TestOnePaymentFinishedByManyIsOneSale(t *testing.T) {
	f := open(t, 3)
	id := f.held()
	lines := f.lines()
	req := ConfirmRequest{SKU: f.sku, HoldID: id, PaymentRef: "pi", Amount: &contract.Money{Amount: 4900, Currency: "EUR"}}
	got := verdicts(t, 20, func(i int) (HoldOutcome, error) {
		req := req
		req.Actor = []string{"api", "webhook"}[i%2]
		out, err := f.g.Confirm(t.Context(), req)
		if out.Hold.State != contract.HoldSold || out.Hold.PaymentRef != "pi" {
			t.Errorf("call %d answers %s by %q", i, out.Hold.State, out.Hold.PaymentRef)
		}
		return out, err
	})
	require.Equal(t, map[Verdict]int{OK: 20}, got)
	f.pass(time.Hour)
	f.unmoved(func() {
		for range 2 {
			require.Equal(t, OK, must[HoldOutcome](f)(f.g.Confirm(t.Context(), req)).Verdict)
		}
		require.Equal(t, Conflict, f.confirm(id, "another payment").Verdict)
	})
	require.Equal(t, []string{"sold 1: 2 0 0 1"}, f.moves(lines))
}

// B30: the shopper cancels in the instant in which the timer fires, and both are
// repeated: +1 in total. The same for an offer that is pressed, left and lapsed
// at once.
func TestACancellationMeetsTheTimer(t *testing.T) {
	for range 20 {
		f := open(t, 3)
		id := f.held()
		f.pass(10 * time.Minute)
		lines := f.lines()
		reasons := []string{contract.ReasonShopper, contract.ReasonExpired, contract.ReasonShop, contract.ReasonPaymentFailed}
		got := verdicts(t, 8, func(i int) (HoldOutcome, error) {
			return f.g.Release(t.Context(), ReleaseRequest{SKU: f.sku, HoldID: id, Reason: reasons[i%4]})
		})
		require.Equal(t, map[Verdict]int{OK: 1, Existing: 7}, got)
		require.Len(t, f.moves(lines), 1)
		require.Equal(t, [4]int64{3, 0, 0, 0}, f.parts())
		f.unmoved(func() {
			for _, reason := range reasons {
				require.Equal(t, Existing, f.release(id, reason).Verdict, "a retry after a lost reply")
			}
		})
	}
	for range 20 {
		f := open(t, 0)
		entry := f.waits("ada", 1)
		f.restock("e1", 1)
		offer := f.offered(entry)
		f.pass(48 * time.Hour)
		atOnce(6, func(i int) {
			var err error
			switch i % 3 {
			case 0:
				_, err = f.g.Lapse(t.Context(), LapseRequest{SKU: f.sku, HoldID: offer})
			case 1:
				_, err = f.g.Leave(t.Context(), LeaveRequest{SKU: f.sku, EntryID: entry, State: contract.EntryLeft})
			case 2:
				_, err = f.g.Reserve(t.Context(), ReserveRequest{SKU: f.sku, HoldID: offer, Press: true})
			}
			if err != nil {
				t.Error(err)
			}
		})
		e, h := f.entry(entry), f.hold(offer)
		switch h.State {
		case contract.HoldProvisional: // pressed first: lapse and leave find a hold
			require.Equal(t, [4]int64{1, 1, 0, 0}, f.parts())
			require.Equal(t, contract.EntryHolding, e.State)
			require.True(t, e.Leaving)
		case contract.HoldLapsed:
			require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts())
			require.Equal(t, contract.EntryLapsed, e.State)
		default:
			require.Equal(t, contract.HoldReleased, h.State)
			require.Equal(t, [4]int64{1, 0, 0, 0}, f.parts())
			require.Equal(t, contract.EntryLeft, e.State)
		}
	}
}

// B31: after a sale nothing that ends a hold moves anything; giving a sold unit
// back is an operation of its own.
func TestAfterASaleOnlyAReturnGivesBack(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("ada", 2)
	f.restock("e1", 2)
	id := f.claimed(entry)
	require.Equal(t, OK, f.confirm(id, "pi").Verdict)
	f.ack(entry) // it has learned of the sale
	f.pass(time.Hour)
	f.unmoved(func() {
		for _, reason := range []string{contract.ReasonExpired, contract.ReasonShopper, contract.ReasonShop, contract.ReasonPaymentFailed} {
			require.Equal(t, Existing, f.release(id, reason).Verdict)
		}
		require.Equal(t, Existing, f.lapse(id).Verdict)
		require.Equal(t, Existing, f.adopt(id, true).Verdict)
		require.Equal(t, Existing, f.adopt(id, false).Verdict)
		require.Equal(t, Existing, f.reserve(id, 2).Verdict)
		require.Equal(t, Existing, f.press(id).Verdict)
		require.Equal(t, Gone, f.told(id, true).Verdict)
		require.Equal(t, contract.EntryBought, f.leave(entry, contract.EntryLeft).Entry.State)
		require.Equal(t, MadeSale, must[HoldOutcome](f)(f.g.Refund(t.Context(), f.sku, id, "pi", "test")).Verdict)
		require.Equal(t, Existing, must[HoldOutcome](f)(f.g.Unconfirm(t.Context(), f.sku, id, "another payment", "test")).Verdict)
	})
	require.Equal(t, [4]int64{0, 0, 0, 2}, f.parts())
	require.True(t, f.comesBack(id, 2, true).Applied)
	require.Equal(t, [4]int64{2, 0, 0, 0}, f.parts())
	require.Equal(t, contract.HoldSold, f.hold(id).State, "it was a sale all the same")
}

// B32: cancelling what never took stock withdraws the offer, if there was one,
// and moves nothing else.
func TestCancellingWhatTookNothing(t *testing.T) {
	for name, c := range map[string]struct {
		units int64 // of the restock before
		ack   bool
		after [4]int64
		moves []string
	}{
		"offered, never pressed": {2, true, [4]int64{2, 0, 0, 0}, []string{"released 2: 2 0 0 0", "left 2: 2 0 0 0"}},
		"offered a part":         {1, true, [4]int64{1, 0, 0, 0}, []string{"released 1: 1 0 0 0", "left 2: 1 0 0 0"}},
		"never offered":          {0, true, [4]int64{}, []string{"left 2: 0 0 0 0"}},
		"never acknowledged":     {2, false, [4]int64{2, 0, 0, 0}, []string{"left 2: 2 0 0 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 0)
			entry := f.joinAs("ada", 2).Entry.ID
			if c.ack {
				f.ack(entry)
			}
			if c.units > 0 {
				f.restock("e1", c.units)
			}
			lines := f.lines()
			require.Equal(t, contract.EntryLeft, f.leave(entry, contract.EntryLeft).Entry.State)
			require.Equal(t, c.moves, f.moves(lines))
			require.Equal(t, c.after, f.parts())
			require.Equal(t, c.after[0], f.counters().OpenToAll)
			f.unmoved(func() {
				f.leave(entry, contract.EntryLeft)
				f.leave(entry, contract.EntryExpired)
				f.leave(f.id(contract.EntryID), contract.EntryLeft)
			})
		})
	}
}

// B33: the reserve call of a hold that has ended, replayed: the hold as it is, no
// units. The key outlives the hold.
func TestAReserveReplayedAfterItsEnd(t *testing.T) {
	for _, want := range []contract.HoldState{contract.HoldSold, contract.HoldReleased, contract.HoldExpired, contract.HoldRefused, contract.HoldLapsed} {
		t.Run(string(want), func(t *testing.T) {
			f := open(t, 1)
			id := f.id(contract.HoldID)
			switch want {
			case contract.HoldRefused:
				f.held()
				require.Equal(t, SoldOut, f.adopt(id, true).Verdict)
				f.restock("e1", 1)
			case contract.HoldLapsed:
				id = f.offered(f.waits("ada", 1))
				f.pass(48 * time.Hour)
				require.Equal(t, OK, f.lapse(id).Verdict)
			default:
				f.reserve(id, 1)
				f.adopt(id, true)
				f.pass(10 * time.Minute)
				switch want {
				case contract.HoldSold:
					f.confirm(id, "pi")
					f.restock("e1", 1)
				case contract.HoldReleased:
					f.release(id, contract.ReasonShopper)
				case contract.HoldExpired:
					f.release(id, contract.ReasonExpired)
				}
			}
			require.Equal(t, int64(1), f.counters().OpenToAll, "a unit that a new allocation could take")
			for _, later := range []time.Duration{0, 5 * time.Minute, 24 * time.Hour, 28 * 24 * time.Hour} {
				f.pass(later)
				f.unmoved(func() {
					out := f.reserve(id, 1)
					require.Equal(t, Existing, out.Verdict, "after %s", later)
					require.Equal(t, want, out.Hold.State)
					require.Equal(t, Existing, f.adopt(id, true).Verdict)
					require.Equal(t, Existing, f.press(id).Verdict)
				})
			}
		})
	}
}

// B35: a record is missing, another is a stray. Each is named with its units,
// also when the two cancel out; put right, nothing is reported any more.
func TestAMissingAndAStrayRecordAreNamed(t *testing.T) {
	f := open(t, 9)
	var owners []string // what the open workflows say
	for range 3 {
		owners = append(owners, f.held())
	}
	lost := f.id(contract.HoldID)
	f.reserve(lost, 2)
	f.adopt(lost, true)
	owners = append(owners, lost)
	records, stray := key(f.sku, "holds"), f.id(contract.HoldID)
	raw, err := shared.HGet(t.Context(), records, lost).Result()
	require.NoError(t, err)
	unitsOf := func(is, should int) string {
		want := strings.TrimPrefix(fmt.Sprint(should), "0")
		return fmt.Sprintf(`the units of 1 persons is not what their records say, such as: p-%s has "%d" in place of "%s"`, lost, is, want)
	}
	report := func() (problems, missing, unowned []string) {
		in, err := f.g.Inspect(t.Context(), f.sku)
		require.NoError(t, err)
		missing, err = f.g.InspectRecords(t.Context(), f.sku, owners)
		require.NoError(t, err)
		for _, id := range in.Owned {
			if !strings.Contains(fmt.Sprint(owners), id) {
				unowned = append(unowned, id)
			}
		}
		return in.Problems, missing, unowned
	}

	require.NoError(t, shared.HDel(t.Context(), records, lost).Err())
	for range 2 {
		problems, missing, unowned := report()
		require.Equal(t, []string{unitsOf(2, 0), "held is 5, the parts add up to 3"}, problems)
		require.Equal(t, []string{lost}, missing)
		require.Empty(t, unowned)
	}
	require.NoError(t, shared.HSet(t.Context(), records, stray, raw).Err())
	problems, missing, unowned := report()
	require.Empty(t, problems, "the sums agree, the ids do not")
	require.Equal(t, []string{lost}, missing)
	require.Equal(t, []string{stray}, unowned)

	require.NoError(t, shared.HSet(t.Context(), records, lost, raw).Err())
	problems, missing, unowned = report()
	require.Equal(t, []string{unitsOf(2, 4), "held is 5, the parts add up to 7"}, problems)
	require.Empty(t, missing)
	require.Equal(t, []string{stray}, unowned)

	require.NoError(t, shared.HDel(t.Context(), records, stray).Err())
	problems, missing, unowned = report()
	require.Empty(t, problems)
	require.Empty(t, missing)
	require.Empty(t, unowned)
	require.Equal(t, OK, f.confirm(lost, "pi").Verdict)
	require.Equal(t, [4]int64{7, 3, 0, 2}, f.parts())
}

// B36: a SKU is never renamed. Another spelling is another SKU with keys, ids and
// counters of its own; what began under one name ends under it.
func TestAnotherSpellingIsAnotherSKU(t *testing.T) {
	f := open(t, 2)
	f.sku = strings.ToLower(f.sku) + "a" // a name of digits has one spelling
	upper := *f
	upper.sku = strings.ToUpper(f.sku)
	for _, g := range []*fixture{f, &upper} {
		must[Base](g)(g.g.Open(t.Context(), OpenRequest{SKU: g.sku, New: true}))
	}
	f.restock("e1", 2)
	holds := []string{f.held(), f.held()}
	entries := f.line(5)
	require.NotEqual(t, contract.SKUNumber(f.sku), contract.SKUNumber(upper.sku))

	upper.unmoved(func() {
		for _, id := range holds {
			require.Equal(t, Unknown, upper.release(id, contract.ReasonShop).Verdict)
			require.Equal(t, Unknown, upper.confirm(id, "pi").Verdict)
			require.Equal(t, Gone, upper.adopt(id, false).Verdict)
		}
		require.Equal(t, Unknown, upper.leave(entries[0], contract.EntryLeft).Verdict)
	})
	require.Equal(t, OK, f.release(holds[0], contract.ReasonShop).Verdict)
	require.Equal(t, OK, f.confirm(holds[1], "pi").Verdict)
	require.Equal(t, entries[:1], f.toldNow())
	require.Equal(t, [4]int64{1, 0, 1, 1}, f.parts())
	require.Equal(t, [4]int64{}, upper.parts())
	f.adds()
	upper.adds()
}

// An offer that was pressed and paid before its entry had acknowledged it is not
// handed out for ever: who knows of the end needs no word of the offer.
func TestAnAcknowledgedEndLeavesNothingToTell(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	f.confirm(f.claimed(entry), "pi")
	require.Len(t, f.drain().Items, 2, "the offer and its end")
	f.ack(entry)
	f.pass(24 * time.Hour)
	require.Empty(t, f.drain().Items)
	left, err := shared.Exists(t.Context(), key(f.sku, "outbox"), key(f.sku, "offers"), key(f.sku, "parcels")).Result()
	require.NoError(t, err)
	require.Zero(t, left)
}

// B38: one cause is one message. A sale tells its entry once; the payment
// repeated, a refund of another payment and the return of the unit tell nobody.
func TestOneEndIsOneMessage(t *testing.T) {
	f := open(t, 0)
	entry := f.waits("ada", 1)
	f.restock("e1", 1)
	id := f.claimed(entry)
	f.ackOffers()
	f.confirm(id, "pi")
	items := f.drain().Items
	require.Len(t, items, 1)
	require.Equal(t, [4]string{string(ItemEnd), entry, id, string(contract.EntryBought)},
		[4]string{string(items[0].Kind), items[0].EntryID, items[0].HoldID, string(items[0].Entry.State)})
	f.ack(entry)
	f.confirm(id, "pi")
	must[HoldOutcome](f)(f.g.Refund(t.Context(), f.sku, id, "second", "test"))
	f.release(id, contract.ReasonShop)
	f.leave(entry, contract.EntryLeft)
	f.comesBack(id, 1, true)
	f.pass(time.Hour)
	require.Empty(t, f.drain().Items)
	outbox, err := shared.Exists(t.Context(), key(f.sku, "outbox"), key(f.sku, "offers")).Result()
	require.NoError(t, err)
	require.Zero(t, outbox)
}
