package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"holdfast/config"
	"holdfast/dev/stack"
	"holdfast/e2e/check"
	"holdfast/e2e/shop"
)

// A stranger with nothing but Temporal's own CLI and docs/operating.md runs the
// shop: every command of the page, once without encryption, once through the
// codec endpoint, and once in clear to a house that encrypts, which takes what it
// is told and shows nothing.
// B107, B113.
func TestAStrangerWithTheTemporalCLI(t *testing.T) {
	for _, c := range []struct {
		name, key string
		codec     bool
	}{
		{"without encryption", "", false},
		{"through the codec endpoint", config.DevPayloadKey, true},
		{"in clear", config.DevPayloadKey, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{}
			if c.key != "" {
				env[payloadKeys] = c.key
			}
			h := ownHouse(t, stack.Options{Env: env}, lease)
			if c.key != "" {
				h.check.Codec, _ = ringOf(t, c.key)
			}
			s := stranger{openTerminal(t, h, c.codec), h}
			s.readable = c.codec || c.key == ""
			h.opened(t, "CHAIR", 5)
			s.sells(t)
			s.givesBack(t)
			s.writesNonsense(t)
			s.settles(t)
			s.terminates(t)
			s.looksAfterTheLine(t)
			s.optsOut(t)
			require.ElementsMatch(t, slices.Collect(maps.Keys(s.commands)), slices.Collect(maps.Keys(s.used)), "every command of the page is played")
			s.encrypted(t, c.codec)
			s.judged(t)
		})
	}
}

// judged: the checker finds that the workflows which were ended by hand did not
// complete, and nothing else.
func (s stranger) judged(t *testing.T) {
	t.Helper()
	found, err := s.h.check.Check(t.Context(), "CHAIR")
	require.NoError(t, err)
	var ended []string
	for _, v := range found {
		ended = append(ended, v.Expected+", "+v.Found)
	}
	require.ElementsMatch(t, []string{
		"a Hold workflow that completes, Canceled", "a Hold workflow that completes, Terminated", "a Hold workflow that completes, Terminated",
	}, ended, "%v", found)
	alarms, err := s.h.shop.Alarms(t.Context(), "CHAIR")
	require.NoError(t, err)
	require.Empty(t, alarms)
}

// stranger looks at the gate and at the door what came of a command.
type stranger struct {
	*terminal
	h *house
}

func (s stranger) take(t *testing.T, customer string) string {
	t.Helper()
	hold, err := s.h.shop.Hold(t.Context(), "CHAIR", customer)
	require.NoError(t, err)
	return hold.HoldID
}

// comesTo waits until the door shows a hold in a state. The ledger then says so
// once, and the gate has the counters.
func (s stranger) comesTo(t *testing.T, hold, state string, onHand, held, sold int64) shop.Hold {
	t.Helper()
	now, err := s.h.holdState(t.Context(), hold, state)
	require.NoError(t, err)
	s.counts(t, onHand, held, sold)
	times := 0
	for _, l := range s.h.ledger(t, "CHAIR") {
		if l.Ref == hold && l.State == state {
			times++
		}
	}
	require.Equal(t, 1, times, "lines of the ledger in which %s is %s", hold, state)
	return now
}

func (s stranger) counts(t *testing.T, onHand, held, sold int64) {
	t.Helper()
	stock, err := s.h.shop.Stock(t.Context(), "CHAIR")
	require.NoError(t, err)
	require.Equal(t, []int64{onHand, held, sold}, []int64{stock.OnHand, stock.Held, stock.Sold}, "on_hand, held, sold")
}

func (s stranger) refusedByTheCLI(t *testing.T, command, id, why string) {
	t.Helper()
	out, err := s.try(t, command, id)
	require.Error(t, err, out)
	require.Contains(t, out, why)
}

func (s stranger) sells(t *testing.T) {
	ada := s.take(t, "ada")
	s.lists(t, "holds that run, of a SKU", ada)
	status := s.status(t, ada)
	if s.readable {
		require.Equal(t, seen{State: "held", Customer: "ada"}, status)
		require.Contains(t, s.paste(t, "the details of a hold", ada), "- **Customer**: `ada`")
	} else {
		s.refusedByTheCLI(t, s.command(t, "the details of a hold"), ada, "failed to unmarshal metadata")
	}
	s.paste(t, "a payment has started", ada)
	require.NoError(t, until(t.Context(), "the hold is extended", func() error {
		hold, err := s.h.shop.ReadHold(t.Context(), ada)
		if err == nil && !hold.Extended {
			err = errors.New("it is not")
		}
		return err
	}))
	if status := s.status(t, ada); s.readable {
		require.True(t, status.Extended)
	}
	s.paste(t, "a payment has succeeded", ada)
	require.Equal(t, "pi_42", s.comesTo(t, ada, "sold", 4, 0, 1).PaymentRef)
	require.NoError(t, s.h.closed(t.Context(), ada))
	s.refusedByTheCLI(t, s.command(t, "a payment has succeeded"), ada, "already completed")

	bob := s.take(t, "bob")
	confirm := strings.ReplaceAll(s.command(t, "confirm a payment and see the outcome"), "pi_42", "pi_43")
	if s.readable {
		var out struct{ Outcome string }
		s.answer(t, confirm, bob, &out)
		require.Equal(t, "sold", out.Outcome)
	} else {
		s.refusedByTheCLI(t, confirm, bob, "payload encoding is not supported") // the answer, not the payment
	}
	require.Equal(t, "pi_43", s.comesTo(t, bob, "sold", 3, 0, 2).PaymentRef)
	s.lists(t, "sales by a hold", ada, bob)
	s.lists(t, "the book of a SKU", "stock.CHAIR")
}

func (s stranger) givesBack(t *testing.T) {
	failed, released, cancelled := s.take(t, "cleo"), s.take(t, "dora"), s.take(t, "emil")
	s.paste(t, "a payment has failed for good", failed)
	require.Equal(t, "payment-failed", s.comesTo(t, failed, "released", 3, 2, 2).EndReason)
	s.paste(t, "give a hold back", released)
	require.Equal(t, "asked by mail", s.comesTo(t, released, "released", 3, 1, 2).EndReason)
	s.lists(t, "holds that gave their units back", failed, released)
	s.paste(t, "give a hold back by cancelling it", cancelled)
	require.Equal(t, "cancelled", s.comesTo(t, cancelled, "released", 3, 0, 2).EndReason)
	require.NoError(t, s.h.closed(t.Context(), cancelled))
	s.paste(t, "give a hold back by cancelling it", cancelled)
	s.counts(t, 3, 0, 2)
}

// What is no payment is refused as an update, without a trace, and kept for a
// person as a signal. The hold goes on.
func (s stranger) writesNonsense(t *testing.T) {
	ctx := t.Context()
	hold := s.take(t, "fay")
	require.NoError(t, until(ctx, "the hold waits", func() error {
		if events := s.events(t, hold); events[len(events)-1].GetEventType() != enumspb.EVENT_TYPE_TIMER_STARTED {
			return fmt.Errorf("it has %v", events)
		}
		return nil
	}))
	before, lines := s.events(t, hold), len(s.h.ledger(t, "CHAIR"))
	for input, why := range map[string]string{
		`{"payment_ref": ""}`:                                      "payment_ref is empty: send the reference of the payment",
		`{"payment_ref": "pi_1", "amount": 5}`:                     "amount 5 without currency: send both or neither",
		`{"payment_ref": "pi_1", "amount": -1, "currency": "EUR"}`: "amount -1 is below 0",
		`"nonsense"`: "unable to decode",
	} {
		if !s.readable {
			why = "Encoded failure"
		}
		s.refusedByTheCLI(t, `temporal workflow update execute --workflow-id "$HOLD_ID" --name confirm --input '`+input+`'`, hold, why)
	}
	require.Equal(t, len(before), len(s.events(t, hold)), "events of its history")
	require.Equal(t, lines, len(s.h.ledger(t, "CHAIR")), "lines of the ledger")

	owners := map[string]string{}
	for data, how := range map[string]string{
		`{"ref":"pi_9"}`: `--input '{"ref":"pi_9"}'`,
		`no JSON`:        `--input-meta encoding=binary/plain --input 'no JSON'`,
		``:               ``,
	} {
		s.run(t, `temporal workflow signal --workflow-id "$HOLD_ID" --name payment-succeeded `+how, hold)
		owners[paymentID(hold, rawRef(data))] = data
	}
	s.lists(t, "money that nobody could read or place", slices.Collect(maps.Keys(owners))...)
	for id, data := range owners {
		if status := s.status(t, id); s.readable {
			require.Equal(t, "parked", status.State)
			require.Equal(t, data, string(status.Raw))
		}
		s.paste(t, "say that money went back", id)
		require.NoError(t, s.h.closed(ctx, id))
	}
	s.lists(t, "money that nobody could read or place")
	s.comesTo(t, hold, "held", 3, 1, 2)
	s.paste(t, "give a hold back", hold)
	s.comesTo(t, hold, "released", 3, 0, 2)
}

func (s stranger) events(t *testing.T, id string) (events []*historypb.HistoryEvent) {
	t.Helper()
	history := s.h.temporal.GetWorkflowHistory(t.Context(), id, "", false, 0)
	for history.HasNext() {
		e, err := history.Next()
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

// Money of another amount goes back when the hold ends, by a person's hand.
func (s stranger) settles(t *testing.T) {
	hold := s.take(t, "gus")
	s.paste(t, "a payment has started", hold, "pi_42", "pi_45")
	s.paste(t, "a payment has succeeded", hold, "pi_42", "pi_45", "4900", "4800")
	s.paste(t, "give a hold back", hold)
	s.comesTo(t, hold, "released", 3, 0, 2)
	owner := paymentID(hold, "pi_45")
	s.lists(t, "money that is still owed", owner)
	if status := s.status(t, owner); s.readable {
		require.Equal(t, "refund-pending", status.State)
	}
	s.run(t, `temporal workflow cancel --workflow-id "$PAYMENT_ID"`, owner)
	s.paste(t, "say that money went back", owner)
	require.NoError(t, s.h.closed(t.Context(), owner))
	if status := s.status(t, owner); s.readable {
		require.Equal(t, seen{State: "refund-settled", Reference: "re_123"}, status, "a cancel changed nothing")
	}
	s.lists(t, "money that is still owed")
}

// What a terminated hold costs, and what to do about it.
func (s stranger) terminates(t *testing.T) {
	const terminate = `temporal workflow terminate --workflow-id "$HOLD_ID"`
	unpaid, paid := s.take(t, "hal"), s.take(t, "ida")
	s.run(t, terminate, unpaid)
	s.run(t, terminate, paid)
	s.lists(t, "holds that somebody ended by force, which need care", unpaid, paid)
	s.comesTo(t, unpaid, "held", 3, 2, 2)
	confirmed(t, s.h, paid, "pi_44")
	s.comesTo(t, paid, "sold", 2, 1, 3)
	a, err := s.h.shop.Call(t.Context(), http.MethodPost, "/v1/holds/"+unpaid+"/release", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, a)
	s.comesTo(t, unpaid, "released", 2, 0, 3)
}

func (s stranger) looksAfterTheLine(t *testing.T) {
	ctx := t.Context()
	last, second := s.take(t, "jon"), s.take(t, "kim")
	lea, err := s.h.inLine(ctx, s.h.shop, "CHAIR", phone(0))
	require.NoError(t, err)
	mia, err := s.h.inLine(ctx, s.h.shop, "CHAIR", phone(1))
	require.NoError(t, err)
	s.lists(t, "the people in line", lea.EntryID, mia.EntryID)
	s.paste(t, "give a hold back", last)
	_, err = s.h.entryState(ctx, lea.EntryID, "offered")
	require.NoError(t, err)
	s.lists(t, "the people with an offer", lea.EntryID)
	s.paste(t, "take a person out of the line", mia.EntryID)
	_, err = s.h.entryState(ctx, mia.EntryID, "removed")
	require.NoError(t, err)
	s.lists(t, "the people in line")

	s.run(t, `temporal workflow cancel --workflow-id stock.CHAIR`, "")
	require.NoError(t, s.h.shop.Restock(ctx, "CHAIR", 1), "a SKU keeps its book")
	s.paste(t, "give a hold back", second)
	s.comesTo(t, second, "released", 3, 0, 3)
}

// Who asked by mail gets no texts, and gets them again.
func (s stranger) optsOut(t *testing.T) {
	ctx := t.Context()
	e, err := s.h.inLine(ctx, s.h.shop, "CHAIR", phone(2))
	require.NoError(t, err)
	facts, err := s.h.check.Gate(ctx, "CHAIR")
	require.NoError(t, err)
	person := facts.Entries[e.EntryID].Person
	require.Len(t, person, 22)
	s.paste(t, "a person wants no texts, and has not texted STOP", person)
	_, err = s.h.entryState(ctx, e.EntryID, "opted_out")
	require.NoError(t, err)
	s.lists(t, "the people who want no texts", "optout_"+person)
	a, err := s.h.shop.AskJoin(ctx, "CHAIR", phone(2))
	require.NoError(t, err)
	require.Equal(t, "opted-out", a.Code())
	s.run(t, `temporal workflow cancel --workflow-id "optout_$PERSON"`, person)
	s.paste(t, "a person wants texts again", person)
	require.NoError(t, s.h.closed(ctx, "optout_"+person))
	back, err := s.h.inLine(ctx, s.h.shop, "CHAIR", phone(2))
	require.NoError(t, err)
	require.NotEqual(t, e.EntryID, back.EntryID)
}

// encrypted: through the endpoint the CLI's own payloads are, without it they
// stand in the history as they came.
func (s stranger) encrypted(t *testing.T, want bool) {
	t.Helper()
	sales, err := check.List(t.Context(), s.h.temporal, `WorkflowType="Hold" AND HoldfastState="sold"`)
	require.NoError(t, err)
	signals := 0
	for _, sale := range sales {
		for _, e := range s.events(t, sale) {
			for _, p := range e.GetWorkflowExecutionSignaledEventAttributes().GetInput().GetPayloads() {
				signals++
				require.Equal(t, want, string(p.GetMetadata()["encoding"]) == "binary/holdfast-aes256gcm", "%s: %s", sale, p)
			}
		}
	}
	require.NotZero(t, signals)
}
