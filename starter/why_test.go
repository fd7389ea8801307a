package starter

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

// why asks the door about the SKU, or with an id about an entry.
func (h *house) why(entryID ...string) whyView {
	h.t.Helper()
	path := "/v1/stock/" + h.sku + "/why"
	if len(entryID) > 0 {
		path = "/v1/waitlist/" + entryID[0] + "/why"
	}
	var v whyView
	h.untouched(func() {
		a := h.call("GET", path, nil)
		require.Equal(h.t, http.StatusOK, a.status, a.body)
		require.Contains(h.t, a.body, `"data":[`)
		a.into(h.t, &v)
	})
	for _, r := range v.Data {
		require.NotEmpty(h.t, r.Detail, r.Why)
		require.NotEmpty(h.t, r.Do, r.Why)
	}
	require.NotEmpty(h.t, v.Happening)
	return v
}

func (v whyView) words() []contract.Why {
	out := []contract.Why{}
	for _, r := range v.Data {
		out = append(out, r.Why)
	}
	return out
}

func (v whyView) reason(t *testing.T, why contract.Why) reasonView {
	t.Helper()
	for _, r := range v.Data {
		if r.Why == why {
			return r
		}
	}
	require.Fail(t, "missing", "%s in %+v", why, v)
	return reasonView{}
}

// waits joins somebody whose workflow runs and has acknowledged.
func (h *house) waits(n int) string {
	h.t.Helper()
	id := h.join(fmt.Sprintf("+1202555%04d", n)).EntryID
	h.door.starts.wg.Wait()
	_, err := h.gate.AdoptEntry(h.t.Context(), h.sku, id)
	require.NoError(h.t, err)
	return id
}

// knows lets an entry's workflow learn of its offer, as it does before it texts.
func (h *house) knows(entryID string, status contract.EntryStatus) string {
	h.t.Helper()
	e, _, err := h.gate.ReadEntry(h.t.Context(), h.sku, entryID)
	require.NoError(h.t, err)
	require.Equal(h.t, contract.EntryOffered, e.State)
	_, err = h.gate.AdoptOffer(h.t.Context(), h.sku, e.HoldID)
	require.NoError(h.t, err)
	status.EntryID, status.State, status.HoldID = entryID, contract.EntryOffered, e.HoldID
	h.wf.set(func() { h.wf.statuses[entryID] = status })
	h.dir.offers = append(h.dir.offers, entryID)
	return e.HoldID
}

func (h *house) settings(req redis.SettingsRequest) {
	h.t.Helper()
	req.SKU, req.Actor = h.sku, "test"
	_, err := h.gate.Settings(h.t.Context(), req)
	require.NoError(h.t, err)
}

func TestWhyNothingKeepsAnybody(t *testing.T) {
	h := newHouse(t, 3)
	v := h.why()
	require.Empty(t, v.Data)
	require.Equal(t, "nobody waits to be told", v.Happening)
}

func TestWhyNoUnitsAndBeforeYou(t *testing.T) {
	h := newHouse(t, 1)
	h.hold()
	first, second := h.waits(1), h.waits(2)

	v := h.why()
	require.Equal(t, []contract.Why{contract.WhyNoUnits}, v.words())
	require.Equal(t, "nothing is free: 1 on hand, 1 held, 0 offered", v.Data[0].Detail)
	require.Equal(t, "2 people wait", v.Happening)
	require.Equal(t, []contract.Why{contract.WhyNoUnits}, h.why(first).words())

	v = h.why(second)
	require.Equal(t, []contract.Why{contract.WhyNoUnits, contract.WhyBeforeYou}, v.words())
	require.Contains(t, v.Data[1].Detail, "1 person is before")

	// A lease that the head of the line needs: what is free is for those before.
	third := h.join("+12025550003").EntryID
	fourth := h.waits(4)
	h.restock(3)
	require.Equal(t, []contract.Why{contract.WhyBeforeYou}, h.why(fourth).words(), "one is free, and the line waits for who joined before")
	require.Equal(t, contract.WhyNoWorkflow, h.why(third).Data[0].Why)
}

// B41: a unit is free, a person waits, and nothing is sent.
func TestWhyPausedAndEnded(t *testing.T) {
	h := newHouse(t, 0)
	id := h.waits(1)
	paused := true
	h.settings(redis.SettingsRequest{Paused: &paused})
	h.restock(1)
	require.Equal(t, []contract.Why{contract.WhyPaused}, h.why().words())
	require.Equal(t, []contract.Why{contract.WhyPaused}, h.why(id).words())
	require.Equal(t, "holdfast resume "+h.sku, h.why().Data[0].Do)

	paused, past := false, time.Now().Add(-time.Minute)
	h.settings(redis.SettingsRequest{Ends: &past})
	h.settings(redis.SettingsRequest{Paused: &paused})
	require.Equal(t, []contract.Why{contract.WhyEnded}, h.why().words())
	require.Equal(t, []contract.Why{contract.WhyEnded}, h.why(id).words())

	never := time.Time{}
	h.settings(redis.SettingsRequest{Ends: &never})
	hold := h.knows(id, contract.EntryStatus{})
	require.Empty(t, h.why(id).Data, "delivery goes on by itself")
	require.Equal(t, "it has an offer; its text is on its way", h.why(id).Happening)
	require.Empty(t, h.why().Data)

	// Told: what it waits for.
	out, err := h.gate.Told(t.Context(), redis.ToldRequest{SKU: h.sku, HoldID: hold, Window: 15 * time.Minute, MaxAge: time.Hour, Sent: true})
	require.NoError(t, err)
	h.knows(id, contract.EntryStatus{OfferSent: true})
	v := h.why(id)
	require.Empty(t, v.Data)
	require.Equal(t, "it was told at "+stamp(out.Hold.ToldAt)+", waits for a press until "+stamp(out.Hold.Deadline), v.Happening)
	require.Equal(t, "nobody waits to be told; who has an offer was told", h.why().Happening)
}

// An offer of a paused SKU stays in the outbox: that is no fault of its workflow.
func TestWhyPausedWithAnOffer(t *testing.T) {
	h := newHouse(t, 0)
	id, _, _ := h.offer()
	require.Equal(t, contract.WhyNoWorkflow, h.why(id).Data[0].Why)
	require.Equal(t, []contract.Why{contract.WhyNoWorkflow}, h.why().words())
	require.Equal(t, id, h.why().Data[0].EntryID)
	paused := true
	h.settings(redis.SettingsRequest{Paused: &paused})
	require.Equal(t, []contract.Why{contract.WhyPaused}, h.why(id).words())
}

func TestWhyClosed(t *testing.T) {
	h := newHouse(t, 1)
	id := h.waits(1)
	require.NoError(t, shared.HSet(t.Context(), "hf:{"+h.sku+"}:stock", "fence", strings.Repeat("0", 40)).Err())
	for _, path := range []string{"/v1/stock/" + h.sku + "/why", "/v1/waitlist/" + id + "/why"} {
		a := h.call("GET", path, nil)
		require.Equal(t, http.StatusOK, a.status, a.body)
		var v whyView
		a.into(t, &v)
		require.Equal(t, []contract.Why{contract.WhyClosed}, v.words())
	}
	h.eventually("whoever meets it has it checked", func() bool { return h.wf.called("Reconcile") > 0 })
}

func TestWhyShortfall(t *testing.T) {
	h := newHouse(t, 2)
	h.hold()
	h.hold()
	id := h.waits(1)
	out, err := h.gate.Stock(t.Context(), h.sku, contract.StockEvent{EventID: "count", Kind: contract.StockCorrection, Delta: -1, AllowShortfall: true})
	require.NoError(t, err)
	require.True(t, out.Applied, out.Reason)
	for _, v := range []whyView{h.why(), h.why(id)} {
		require.Contains(t, v.reason(t, contract.WhyShortfall).Detail, "1 unit too many promised")
		require.NotContains(t, v.words(), contract.WhyNoUnits)
	}
}

func TestWhyParked(t *testing.T) {
	h := newHouse(t, 0, keepsTurns)
	missed, nightly, capped := h.waits(1), h.waits(2), h.waits(3)
	h.restock(2)
	lapse := func(entry string, notTold bool) {
		t.Helper()
		hold := h.knows(entry, contract.EntryStatus{})
		if !notTold { // a window of no length
			_, err := h.gate.Told(t.Context(), redis.ToldRequest{SKU: h.sku, HoldID: hold, MaxAge: time.Hour, Sent: true})
			require.NoError(t, err)
		}
		out, err := h.gate.Lapse(t.Context(), redis.LapseRequest{SKU: h.sku, HoldID: hold, NotTold: notTold})
		require.NoError(t, err)
		require.Equal(t, redis.OK, out.Verdict)
	}
	limit := int64(1)
	h.settings(redis.SettingsRequest{Limit: &limit})
	lapse(missed, false)
	lapse(nightly, true)
	h.dir.offers = nil
	require.Contains(t, h.why(missed).reason(t, contract.WhyParked).Detail, "missed its turn")
	require.Contains(t, h.why(nightly).reason(t, contract.WhyParked).Detail, "before a text could be sent")
	v := h.why()
	require.Contains(t, v.reason(t, contract.WhyParked).Detail, "2 people have had a turn")
	require.Equal(t, missed, v.reason(t, contract.WhyParked).EntryID, "the first of them")
	require.Equal(t, []contract.Why{contract.WhyNoWorkflow}, h.why(capped).words(), "it has an offer by now")
}

func keepsTurns(cfg *config.Config, opts *redis.Options) { opts.MissedKeep = 1 }

// At the limit: what a person holds already counts.
func TestWhyAtTheLimit(t *testing.T) {
	h := newHouse(t, 1)
	limit := int64(1)
	h.settings(redis.SettingsRequest{Limit: &limit})
	a := h.askHold("a-key", "customer_phone", "+12025550001")
	require.Equal(t, http.StatusCreated, a.status, a.body)
	id := h.waits(1)
	require.Contains(t, h.why(id).reason(t, contract.WhyParked).Detail, "as much as one may have: 1 unit")
	require.Equal(t, id, h.why().reason(t, contract.WhyParked).EntryID)
}

// What keeps a text is said by the entry's workflow.
func TestWhyTheTextWaits(t *testing.T) {
	for _, why := range []contract.Why{contract.WhyQuietHours, contract.WhySenderDown, contract.WhyRateLimited} {
		t.Run(string(why), func(t *testing.T) {
			h := newHouse(t, 0)
			id := h.waits(1)
			h.waits(2)
			h.restock(1)
			until := time.Date(2027, 3, 14, 13, 0, 0, 0, time.UTC)
			h.knows(id, contract.EntryStatus{TextWaits: &contract.TextWait{Why: why, Until: until}})
			v := h.why(id)
			require.Equal(t, []contract.Why{why}, v.words())
			require.Equal(t, "2027-03-14T13:00:00.000Z", v.Data[0].Until)
			require.Contains(t, v.Happening, "was not told of it yet")

			v = h.why()
			require.Equal(t, []contract.Why{why, contract.WhyNoUnits}, v.words())
			require.Equal(t, id, v.Data[0].EntryID)

			passes := until.Add(-time.Hour)
			h.knows(id, contract.EntryStatus{TextWaits: &contract.TextWait{Why: why, Until: until}, OfferUntil: &passes})
			require.Equal(t, why == contract.WhyQuietHours, strings.Contains(h.why(id).Data[0].Do, "2027-03-14T12:00:00.000Z"))
		})
	}
}

// A text that nothing has been heard of: before its first attempt it says nothing to
// its entry. The gate's clock tells how long.
func TestWhyATextSaysNothing(t *testing.T) {
	h := newHouse(t, 0)
	h.cfg.SMS.Provider, h.cfg.SMS.SegmentsPerSecond = "twilio", 2.5
	first, second := h.waits(1), h.waits(2)
	h.restock(2)
	hold := h.knows(first, contract.EntryStatus{})
	h.knows(second, contract.EntryStatus{})
	h.dir.texts = TextQueue{Waiting: 300, Polled: true}
	require.Empty(t, h.why(first).Data, "it is on its way")
	require.Empty(t, h.why().Data)

	h.older(6 * time.Second)
	v := h.why(first)
	require.Equal(t, []contract.Why{contract.WhyRateLimited}, v.words())
	require.Contains(t, v.Data[0].Detail, "with some 300 texts; at most 2.5 segments go out a second")
	require.Contains(t, v.Happening, "was not told of it yet")
	v = h.why()
	require.Equal(t, []contract.Why{contract.WhyRateLimited}, v.words(), "one reason for both")
	require.Equal(t, 1, v.Data[0].More)
	_, out, _ := h.operator("why", h.sku)
	require.Contains(t, out, "rate-limited ("+v.Data[0].EntryID+" and 1 more): the text waits for its turn")

	h.dir.texts.Polled = false
	v = h.why(first)
	require.Equal(t, []contract.Why{contract.WhySenderDown}, v.words())
	require.Contains(t, v.Data[0].Detail, "no worker takes texts")
	h.dir.err = errTemporalDown
	require.Equal(t, []contract.Why{contract.WhyNoWorkflow}, h.why(first).words())
	h.dir.err = nil

	// In the hands of the sender, for a while, and then for too long.
	_, err := h.gate.Told(t.Context(), redis.ToldRequest{SKU: h.sku, HoldID: hold, Window: 15 * time.Minute, SentGrace: time.Minute, MaxAge: time.Hour})
	require.NoError(t, err)
	require.Empty(t, h.why(first).Data)
	h.older(15 * time.Second)
	v = h.why(first)
	require.Equal(t, []contract.Why{contract.WhySenderDown}, v.words())
	require.Contains(t, v.Data[0].Detail, "has not answered yet")

	paused := true
	h.settings(redis.SettingsRequest{Paused: &paused})
	require.Equal(t, []contract.Why{contract.WhyPaused}, h.why(first).words(), "a pause keeps it, not the queue")
	paused = false
	h.settings(redis.SettingsRequest{Paused: &paused})
	h.knows(first, contract.EntryStatus{OfferSent: true})
	require.Empty(t, h.why(first).Data)
}

// older makes all that the SKU's holds remember so much older.
func (h *house) older(by time.Duration) {
	h.t.Helper()
	key := "hf:{" + h.sku + "}:holds"
	all, err := shared.HGetAll(h.t.Context(), key).Result()
	require.NoError(h.t, err)
	for id, raw := range all {
		var record []any
		require.NoError(h.t, json.Unmarshal([]byte(raw), &record))
		for _, place := range []int{9, 10} { // offered, told
			if at := record[place-1].(float64); at > 0 {
				record[place-1] = int64(at) - by.Milliseconds()
			}
		}
		put, err := json.Marshal(record)
		require.NoError(h.t, err)
		require.NoError(h.t, shared.HSet(h.t.Context(), key, id, put).Err())
	}
}

func TestWhyItsPlaceEnded(t *testing.T) {
	for state, words := range map[contract.EntryState][]contract.Why{
		contract.EntryOptedOut: {contract.WhyOptedOut}, contract.EntryUnreachable: {contract.WhyUnreachable}, contract.EntryLeft: {},
	} {
		t.Run(string(state), func(t *testing.T) {
			h := newHouse(t, 0)
			id, next := h.waits(1), h.waits(2)
			_, err := h.gate.Leave(t.Context(), redis.LeaveRequest{SKU: h.sku, EntryID: id, State: state, Actor: "test", Owner: true})
			require.NoError(t, err)
			require.Equal(t, words, h.why(id).words())
			require.Contains(t, h.why(id).Happening, "its place ended at ")
			h.restock(1)
			h.knows(next, contract.EntryStatus{OfferSent: true})
			require.Empty(t, h.why().Data, "it does not block the rest")
		})
	}
}

func TestWhyNoWorkflow(t *testing.T) {
	h := newHouse(t, 0)
	h.wf.set(func() { h.wf.fail["Entry"] = errTemporalDown })
	fresh := h.join("+12025550001").EntryID
	h.door.starts.wg.Wait()
	v := h.why(fresh)
	require.Equal(t, []contract.Why{contract.WhyNoWorkflow, contract.WhyNoUnits}, v.words())
	require.Contains(t, v.Data[0].Detail, "has not acknowledged the place")
	require.NotEmpty(t, v.Data[0].Until, "the line waits for it during a lease")
	require.Equal(t, contract.WhyNoWorkflow, h.why().Data[0].Why)

	h.wf.set(func() { h.wf.fail["Entry"] = nil })
	id := h.waits(2)
	h.wf.set(func() { h.wf.closed[id] = true })
	require.Contains(t, h.why(id).reason(t, contract.WhyNoWorkflow).Detail, "does not run")

	h.wf.set(func() { h.wf.closed[id], h.wf.fail["OpenStatus"] = false, errors.New("no worker polls") })
	require.Contains(t, h.why(id).reason(t, contract.WhyNoWorkflow).Detail, "does not answer")
	require.NotContains(t, h.log.String(), "+1202555")
	h.dir.err = errTemporalDown
	require.Contains(t, h.why().reason(t, contract.WhyNoWorkflow).Detail, "Temporal does not answer")
}

func TestWhyHolding(t *testing.T) {
	h := newHouse(t, 0)
	id, holdID, path := h.offer()
	h.press(path)
	v := h.why(id)
	require.Empty(t, v.Data)
	require.Equal(t, "it was told, and holds what it was offered until "+stamp(h.record(holdID).Deadline), v.Happening)
}

func TestWhyIsForTheShop(t *testing.T) {
	h := newHouse(t, 0)
	id := h.waits(1)
	for _, path := range []string{"/v1/stock/" + h.sku + "/why", "/v1/waitlist/" + id + "/why"} {
		require.Equal(t, http.StatusUnauthorized, h.call("GET", path, nil, "Authorization", "").status)
	}
	require.Equal(t, unknownSKU, h.call("GET", "/v1/stock/NONE/why", nil).problem(t).Code)
	require.Equal(t, unknownEntry, h.call("GET", "/v1/waitlist/entry_x/why", nil).problem(t).Code)
	require.Equal(t, unknownEntry, h.call("GET", "/v1/waitlist/"+h.ring.NewEntryID(h.sku)+"/why", nil).problem(t).Code)
}

// Each word has its row in the page of the line, and stands in the reference.
func TestEveryWordOfWhyIsWrittenDown(t *testing.T) {
	line, err := os.ReadFile("../docs/waitlist.md")
	require.NoError(t, err)
	for _, why := range []contract.Why{
		contract.WhyPaused, contract.WhyEnded, contract.WhyClosed, contract.WhyNoUnits, contract.WhyShortfall, contract.WhyBeforeYou, contract.WhyParked,
		contract.WhyQuietHours, contract.WhySenderDown, contract.WhyRateLimited, contract.WhyOptedOut, contract.WhyUnreachable, contract.WhyNoWorkflow,
	} {
		require.Contains(t, string(line), "| `"+string(why)+"` |")
		require.Contains(t, apiDoc(t), "`"+string(why)+"`")
	}
}

func TestOperatorAsksWhy(t *testing.T) {
	h := newHouse(t, 0)
	id := h.waits(1)
	h.waits(2)
	h.restock(1)
	h.knows(id, contract.EntryStatus{TextWaits: &contract.TextWait{Why: contract.WhyQuietHours, Until: time.Date(2027, 3, 14, 13, 0, 0, 0, time.UTC)}})
	code, out, errs := h.operator("why", h.sku)
	require.Zero(t, code, errs)
	require.Equal(t, h.sku+": 1 person waits\n"+
		"quiet-hours ("+id+"): the text waits for the end of the shop's quiet hours, until 2027-03-14T13:00:00.000Z. To do: nothing: it goes out then, and the window runs from it\n"+
		"no-units: nothing is free: 1 on hand, 0 held, 1 offered. To do: restock, or wait until a hold or an offer ends\n", out)
	code, out, errs = h.operator("why", id)
	require.Zero(t, code, errs)
	require.Contains(t, out, "\nquiet-hours: the text waits", "its own id is not said twice")
	code, out, _ = h.operator("why", id, "--json")
	require.Zero(t, code)
	require.Contains(t, out, `"why": "quiet-hours"`)

	code, _, errs = h.operator("why", "a b")
	require.Equal(t, 2, code)
	require.Contains(t, errs, `"a b" is neither a SKU nor the id of an entry`)
	code, _, errs = h.operator("why", "NONE")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "unknown-sku")
}
