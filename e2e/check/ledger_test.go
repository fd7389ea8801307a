package check

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// eventful is a ledger with every verb and kind, and the records that it leads
// to. Counters are worked out by hand.
func eventful() Facts {
	f := Facts{
		SKU: "CHAIR", Now: at(60),
		Counters: Counters{OnHand: 1, Held: 1, Sold: 1, Received: 4, Corrected: -2, Returned: 1},
		Holds: map[string]Hold{
			"hold_a": {State: "sold", Units: 2, Person: "ann", Ended: at(4), PaymentRef: "pay_1", Returned: 2},
			"hold_b": {State: "expired", Units: 1, Person: "bob", Ended: at(9), Refunded: []string{"pay_2", "pay_3"}},
			"hold_c": {State: "released", Units: 1, Person: "cid", Ended: at(20), Refunded: []string{"pay_4"}},
			"hold_d": {State: "refused", Units: 5, Person: "dan", Ended: at(21)},
			"hold_e": {State: "released", Units: 1, Person: "eve", Entry: "entry_e", Ended: at(24)},
			"hold_f": {State: "lapsed", Units: 1, Person: "fay", Entry: "entry_f", Ended: at(31)},
			"hold_g": {State: "held", Units: 1, Person: "gus"},
		},
		Entries: map[string]Entry{
			"entry_e": {State: "left", Person: "eve", Arrival: at(22).UnixMicro(), Hold: "hold_e", Ended: at(25)},
			"entry_f": {State: "lapsed", Person: "fay", Arrival: at(26).UnixMicro(), Hold: "hold_f", Ended: at(31)},
		},
	}
	add := func(verb, kind string, units int64, ref, more string, onHand, held, offered, sold int64) {
		n := len(f.Ledger) + 1
		l := Line{
			ID: fmt.Sprint(n), At: at(float64(n)), Epoch: 1, N: int64(n), Verb: verb, Kind: kind, State: holdLines[verb+" "+kind].to,
			Units: units, Ref: ref, Person: f.Holds[ref].Person, Other: f.Holds[ref].Entry,
			OnHand: onHand, Held: held, Offered: offered, SoldTo: sold,
		}
		switch l.Verb {
		case "stock": // of a return
			if l.Other = more; more != "" {
				l.Payment = f.Holds[ref].PaymentRef
			}
		default:
			l.Payment = more
		}
		f.Ledger = append(f.Ledger, l)
		f.Counters.Ledger = l.N
	}
	add("open", "new", 0, "server", "", 0, 0, 0, 0)
	add("stock", "restock", 3, "event_1", "", 3, 0, 0, 0)
	add("reserve", "walk-in", 2, "hold_a", "", 3, 2, 0, 0)
	add("adopt", "held", 2, "hold_a", "", 3, 2, 0, 0)
	add("adopt", "extended", 2, "hold_a", "", 3, 2, 0, 0)
	add("confirm", "sold", 2, "hold_a", "pay_1", 1, 0, 0, 2)
	add("stock", "return", 1, "hold_a", "event_2", 2, 0, 0, 1)
	add("stock", "discarded", 1, "hold_a", "event_3", 2, 0, 0, 1)
	add("reserve", "walk-in", 1, "hold_b", "", 2, 1, 0, 1)
	add("adopt", "held", 1, "hold_b", "", 2, 1, 0, 1)
	add("release", "expired", 1, "hold_b", "", 2, 0, 0, 1)
	add("refund", "marked", 0, "hold_b", "pay_2", 2, 0, 0, 1)
	add("confirm", "retaken", 1, "hold_b", "pay_3", 1, 0, 0, 2)
	add("unconfirm", "expired", 1, "hold_b", "pay_3", 2, 0, 0, 1)
	add("reserve", "walk-in", 1, "hold_c", "", 2, 1, 0, 1)
	add("sweep", "swept", 1, "hold_c", "", 2, 0, 0, 1)
	add("reserve", "afresh", 1, "hold_c", "", 2, 1, 0, 1)
	add("adopt", "held", 1, "hold_c", "", 2, 1, 0, 1)
	add("confirm", "sold", 1, "hold_c", "pay_4", 1, 0, 0, 2)
	add("unconfirm", "held", 1, "hold_c", "pay_4", 2, 1, 0, 1)
	add("release", "released", 1, "hold_c", "", 2, 0, 0, 1)
	add("adopt", "refused", 5, "hold_d", "", 2, 0, 0, 1)
	add("settings", "paused", 0, "", "", 2, 0, 0, 1)
	add("settings", "resumed", 0, "", "", 2, 0, 0, 1)
	add("join", "waiting", 1, "entry_e", "", 2, 0, 0, 1)
	add("offer", "offered", 1, "hold_e", "", 2, 0, 1, 1)
	add("withdraw", "released", 1, "hold_e", "", 2, 0, 0, 1)
	add("leave", "left", 1, "entry_e", "", 2, 0, 0, 1)
	add("join", "waiting", 1, "entry_f", "", 2, 0, 0, 1)
	add("offer", "offered", 1, "hold_f", "", 2, 0, 1, 1)
	add("reserve", "press", 1, "hold_f", "", 2, 1, 0, 1)
	add("sweep", "offered", 1, "hold_f", "", 2, 0, 1, 1)
	add("lapse", "lapsed", 1, "hold_f", "", 2, 0, 0, 1)
	add("stock", "level", -1, "event_4", "", 1, 0, 0, 1)
	add("reserve", "walk-in", 1, "hold_g", "", 1, 1, 0, 1)
	add("adopt", "held", 1, "hold_g", "", 1, 1, 0, 1)
	add("repair", "restored", 1, "hold_g", "", 1, 1, 0, 1)
	add("stock", "correction", -1, "event_5", "", 0, 1, 0, 1)
	add("stock", "restock", 1, "event_6", "", 1, 1, 0, 1)
	add("open", "checked", 0, "server_2", "", 1, 1, 0, 1)
	f.Ledger[len(f.Ledger)-1].Epoch = 2
	return f
}

// trimmed is what eventful is after its first n lines have gone.
func trimmed(n int) Facts {
	f := eventful()
	last := f.Ledger[n-1]
	o := Counters{OnHand: last.OnHand, Held: last.Held, Offered: last.Offered, Sold: last.SoldTo, Ledger: last.N}
	for _, l := range f.Ledger[:n] {
		switch {
		case l.Kind == "restock":
			o.Received += l.Units
		case l.Kind == "return":
			o.Returned += l.Units
		case l.Verb == "stock" && l.Kind != "discarded":
			o.Corrected += l.Units
		}
	}
	f.Opening, f.Ledger = &o, f.Ledger[n:]
	return f
}

func TestEveryKindOfLineIsUnderstood(t *testing.T) {
	f := eventful()
	require.Empty(t, JudgeGate(f))
	kinds := map[string]bool{}
	for _, l := range f.Ledger {
		kinds[l.Verb+" "+l.Kind] = true
	}
	for kind := range holdLines {
		if kind != "withdraw expired" { // as withdraw released
			require.True(t, kinds[kind], kind)
		}
	}
}

// Wherever the ledger was trimmed, its rest is understood from the opening
// balance, which must be right.
func TestATrimmedLedgerIsUnderstood(t *testing.T) {
	for n := 1; n < len(eventful().Ledger); n++ {
		require.Empty(t, JudgeGate(trimmed(n)), "trimmed after line %d", n)
		for name, spoil := range map[string]func(*Counters){
			"on_hand": func(c *Counters) { c.OnHand++ }, "held": func(c *Counters) { c.Held++ }, "offered": func(c *Counters) { c.Offered++ },
			"sold": func(c *Counters) { c.Sold++ }, "received": func(c *Counters) { c.Received++ }, "corrected": func(c *Counters) { c.Corrected++ },
			"returned": func(c *Counters) { c.Returned++ }, "number": func(c *Counters) { c.Ledger-- },
		} {
			f := trimmed(n)
			if last := n == len(eventful().Ledger)-1; name == "number" && last {
				continue // the next epoch numbers its lines as it likes
			}
			spoil(f.Opening)
			require.NotEmpty(t, JudgeGate(f), "trimmed after line %d, %s wrong", n, name)
		}
	}
}

// No line can be changed, dropped or told twice without being noticed.
func TestEveryLineCounts(t *testing.T) {
	for i, l := range eventful().Ledger {
		moves := holdLines[l.Verb+" "+l.Kind].to != ""
		for name, c := range map[string]struct {
			applies bool
			spoil   func(*Facts)
		}{
			"gone":    {i < len(eventful().Ledger)-1, func(f *Facts) { f.Ledger = append(f.Ledger[:i:i], f.Ledger[i+1:]...) }},
			"twice":   {true, func(f *Facts) { f.Ledger = append(f.Ledger[:i+1:i+1], f.Ledger[i:]...) }},
			"on_hand": {true, func(f *Facts) { f.Ledger[i].OnHand++ }},
			"held":    {true, func(f *Facts) { f.Ledger[i].Held++ }},
			"offered": {true, func(f *Facts) { f.Ledger[i].Offered++ }},
			"sold":    {true, func(f *Facts) { f.Ledger[i].SoldTo++ }},
			"units":   {moves || l.Verb == "stock", func(f *Facts) { f.Ledger[i].Units++ }},
			"hold":    {moves || l.Verb == "refund", func(f *Facts) { f.Ledger[i].Ref = "hold_x" }},
			"person":  {moves || l.Verb == "refund", func(f *Facts) { f.Ledger[i].Person = "xen" }},
			"entry":   {moves || l.Verb == "refund", func(f *Facts) { f.Ledger[i].Other = "entry_x" }},
			"kind":    {true, func(f *Facts) { f.Ledger[i].Kind = "x" }},
			"payment": {l.Payment != "", func(f *Facts) { f.Ledger[i].Payment = "pay_x" }},
		} {
			if !c.applies {
				continue
			}
			f := eventful()
			c.spoil(&f)
			found := JudgeGate(f)
			if name == "units" && l.Kind == "refused" {
				require.Empty(t, found, "a refusal may have asked for any number")
				continue
			}
			require.NotEmpty(t, found, "line %d, %s %s: %s", i+1, l.Verb, l.Kind, name)
		}
	}
}

func TestBrokenLedgersAreReported(t *testing.T) {
	line := func(f *Facts, i int) *Line { return &f.Ledger[i-1] }
	for name, c := range map[string]struct {
		breakIt         func(*Facts)
		rule, id        string
		expected, found string
	}{
		"the sale's own payment goes back": {
			func(f *Facts) { l := line(f, 12); l.Ref, l.Payment = "hold_a", "pay_1" },
			"I7", "hold_a", "no refund of the payment that made the sale", "pay_1 in ledger line 12",
		},
		"a sale by a refunded payment": {
			func(f *Facts) { line(f, 13).Payment = "pay_2" },
			"I7", "hold_b", "no sale by a payment that is marked for refund", "pay_2 in ledger line 13",
		},
		"more returned than sold": {
			func(f *Facts) { line(f, 8).Units = 2 },
			"I8", "hold_a", `units of a sale by "pay_1" to come back, at most 2`, `hold "sold" by "pay_1", 3 returned in ledger line 8`,
		},
		"a return of what was not sold": {
			func(f *Facts) { line(f, 8).Ref = "hold_b" },
			"I8", "hold_b", `units of a sale by "pay_1" to come back, at most 0`, `hold "" by "", 1 returned in ledger line 8`,
		},
		"a stock event twice, by the id of its event": {
			func(f *Facts) { line(f, 8).Other = "event_2" },
			"I8", "event_2", "one ledger line for a stock event", "a second: ledger line 8 (stock discarded hold_a)",
		},
		"the undoing of another payment's sale": {
			func(f *Facts) { line(f, 20).Payment = "pay_5" },
			"I8", "hold_c", "the undoing of a sale by pay_4, retaken false, 0 returned", "held by pay_5, returned 0 in ledger line 20",
		},
		"a retaken sale undone as if it had been held": {
			func(f *Facts) { line(f, 14).Kind = "held" },
			"I8", "hold_b", "the undoing of a sale by pay_3, retaken true, 0 returned", "held by pay_3, returned 0 in ledger line 14",
		},
		"units promised that are not there": {
			func(f *Facts) { line(f, 34).Units = -3 },
			"I1", "ledger line 34 (stock level event_4)", "on_hand -1, held 0, offered 0, sold 1", "on_hand 1, held 0, offered 0, sold 1",
		},
		"an oversold hold": {
			func(f *Facts) { line(f, 35).OnHand, line(f, 35).Held = 1, 2; line(f, 36).Held = 2 },
			"I2", "ledger line 35 (reserve walk-in hold_g)", "units that are there", "available 1 before and -1 after",
		},
		"a verb of nobody": {
			func(f *Facts) { line(f, 1).Verb = "burn" },
			"I1", "ledger line 1 (burn new server)", "a verb and kind of the gate", "burn new",
		},
		"a line of another person": {
			func(f *Facts) { line(f, 4).Person = "bob" },
			"I4", "hold_a", `person "ann" and entry "" in each of its lines`, `"bob" and "" in ledger line 4`,
		},
		"a record of another person": {
			func(f *Facts) { edit(f.Holds, "hold_a", func(h *Hold) { h.Person = "bob" }) },
			"I4", "hold_a", `person "ann" and entry "" as in the ledger's last line`, `"bob" and ""`,
		},
		"a record that forgot a return": {
			func(f *Facts) { edit(f.Holds, "hold_a", func(h *Hold) { h.Returned = 1 }) },
			"I8", "hold_a", "2 units returned and payments [] marked for refund, as in the ledger", "1 and []",
		},
		"a record that forgot a refund": {
			func(f *Facts) { edit(f.Holds, "hold_b", func(h *Hold) { h.Refunded = h.Refunded[1:] }) },
			"I8", "hold_b", `0 units returned and payments ["pay_2" "pay_3"] marked for refund, as in the ledger`, `0 and ["pay_3"]`,
		},
		"a refusal without a line": {
			func(f *Facts) { edit(f.Holds, "hold_h", func(h *Hold) { h.State, h.Ended = "refused", at(1) }) },
			"I3", "hold_h", `record "" as the ledger's last line`, `record "refused"`,
		},
		"returned units that nobody counted": {
			func(f *Facts) { f.Counters.Returned = 0 },
			"I1", "the stock hash",
			"what the ledger adds up to: on_hand 1, held 1, offered 0, sold 1, received 4, corrected -2, returned 1",
			"on_hand 1, held 1, offered 0, sold 1, received 4, corrected -2, returned 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := eventful()
			c.breakIt(&f)
			found := JudgeGate(f)
			require.Contains(t, found, Violation{Rule: c.rule, SKU: "CHAIR", ID: c.id, Expected: c.expected, Found: c.found}, "found %v", found)
		})
	}
}

// A shortfall that a stock event made is no fault; the next one that takes units
// under it is.
func TestAShortfallIsTheShopsOwn(t *testing.T) {
	f := eventful()
	f.Ledger, f.Counters = f.Ledger[:38], Counters{OnHand: 0, Held: 1, Sold: 1, Received: 3, Corrected: -2, Returned: 1, Ledger: 38}
	require.Empty(t, JudgeGate(f))
	o := f.Counters
	f.Opening, f.Ledger = &o, nil
	require.Empty(t, JudgeGate(f), "the opening balance has it")

	f = eventful()
	f.Ledger = f.Ledger[:38]
	f.Ledger = append(f.Ledger, Line{
		ID: "39", N: 39, Epoch: 1, Verb: "reserve", Kind: "walk-in", State: "provisional", Units: 1, Ref: "hold_h", Held: 2, SoldTo: 1,
	})
	require.Contains(t, JudgeGate(f), Violation{
		Rule: "I2", SKU: "CHAIR", ID: "ledger line 39 (reserve walk-in hold_h)", Expected: "units that are there", Found: "available -1 before and -2 after",
	})
}
