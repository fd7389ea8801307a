package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.UnixMilli(1_800_000_000_000)

func at(second float64) time.Time { return start.Add(time.Duration(second * float64(time.Second))) }

// sound is one afternoon without a fault: three units; Walt walks in and pays;
// Ada and Ben wait and are offered the other two; Ada presses, Ben thinks;
// Cleo waits on, Dora has just joined.
func sound() Facts {
	f := Facts{
		SKU: "CHAIR", Now: at(20), Lease: 10 * time.Second,
		Counters: Counters{OnHand: 2, Held: 1, Offered: 1, Sold: 1, Received: 3, Ledger: 12},
		Holds: map[string]Hold{
			"hold_walt": {State: "sold", Units: 1, Person: "walt", PaymentRef: "pay_1", Ended: at(3)},
			"hold_ada":  {State: "held", Units: 1, Person: "ada", Entry: "entry_ada"},
			"hold_ben":  {State: "offered", Units: 1, Person: "ben", Entry: "entry_ben"},
		},
		Entries: map[string]Entry{
			"entry_ada":  {State: "holding", Person: "ada", Arrival: at(4).UnixMicro(), Acknowledged: true, Hold: "hold_ada"},
			"entry_ben":  {State: "offered", Person: "ben", Arrival: at(5).UnixMicro(), Acknowledged: true, Hold: "hold_ben"},
			"entry_cleo": {State: "waiting", Person: "cleo", Arrival: at(6).UnixMicro(), Acknowledged: true},
			"entry_dora": {State: "waiting", Person: "dora", Arrival: at(19).UnixMicro()},
		},
		People:  map[string]string{"ada": "entry_ada", "ben": "entry_ben", "cleo": "entry_cleo", "dora": "entry_dora"},
		Line:    map[string]int64{"entry_cleo": at(6).UnixMicro()},
		Fresh:   map[string]int64{"entry_dora": at(19).UnixMicro()},
		Leases:  map[string]int64{},
		Outbox:  map[string]int64{"s:entry_dora": 1},
		Parcels: map[string]bool{"s:entry_dora": true},
		Workflows: map[string]Workflow{
			"hold_walt":  {Type: "Hold", Status: "Completed", Started: at(2), Result: "sold"},
			"hold_ada":   {Type: "Hold", Status: "Running", Started: at(8)},
			"entry_ada":  {Type: "WaitlistEntry", Status: "Running", Started: at(4.1), Knew: at(4.2), Phone: "+447700900001"},
			"entry_ben":  {Type: "WaitlistEntry", Status: "Running", Started: at(5.1), Knew: at(5.2), Phone: "+447700900002"},
			"entry_cleo": {Type: "WaitlistEntry", Status: "Running", Started: at(6.1), Knew: at(6.2), Phone: "+447700900003"},
		},
		Texts: []Text{
			{To: "+447700900001", Entry: "entry_ada", Hold: "hold_ada", Body: "Shop: http://shop.example/r/AAA holds your Chair"},
			{To: "+447700900002", Entry: "entry_ben", Hold: "hold_ben", Body: "Shop: http://shop.example/r/BBB holds your Chair"},
			{To: "+447700900003", Entry: "entry_cleo", Body: "Shop: you are no. 3 in line for Chair"},
		},
	}
	add := func(second float64, verb, kind string, units int64, ref string, onHand, held, offered, sold int64) {
		l := Line{
			ID: ref + "@" + verb, At: at(second), N: int64(len(f.Ledger) + 1), Verb: verb, Kind: kind, State: holdLines[verb+" "+kind].to,
			Units: units, Ref: ref, Other: f.Holds[ref].Entry, Person: f.Holds[ref].Person,
			OnHand: onHand, Held: held, Offered: offered, SoldTo: sold,
		}
		if verb == "confirm" {
			l.Payment = f.Holds[ref].PaymentRef
		}
		f.Ledger = append(f.Ledger, l)
	}
	add(0, "open", "new", 0, "", 0, 0, 0, 0)
	add(1, "stock", "restock", 1, "event_1", 1, 0, 0, 0)
	add(2, "reserve", "walk-in", 1, "hold_walt", 1, 1, 0, 0)
	add(2.5, "adopt", "held", 1, "hold_walt", 1, 1, 0, 0)
	add(3, "confirm", "sold", 1, "hold_walt", 0, 0, 0, 1)
	add(4, "join", "waiting", 1, "entry_ada", 0, 0, 0, 1)
	add(7, "stock", "restock", 2, "event_2", 2, 0, 0, 1)
	add(7, "offer", "offered", 1, "hold_ada", 2, 0, 1, 1)
	add(7, "offer", "offered", 1, "hold_ben", 2, 0, 2, 1)
	add(8, "reserve", "press", 1, "hold_ada", 2, 1, 1, 1)
	add(8.1, "adopt", "held", 1, "hold_ada", 2, 1, 1, 1)
	add(19, "join", "waiting", 1, "entry_dora", 2, 1, 1, 1)
	return f
}

func TestSoundFactsAreNotBlamed(t *testing.T) {
	require.Empty(t, JudgeGate(sound()))
	require.Empty(t, JudgeOwners(sound()))
}

// edit changes one record of a map.
func edit[T any](m map[string]T, id string, change func(*T)) {
	v := m[id]
	change(&v)
	m[id] = v
}

func TestBrokenFactsAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		breakIt         func(*Facts)
		rule, id        string
		expected, found string
	}{
		"a unit too many on hand": {
			func(f *Facts) { f.Counters.OnHand = 3 },
			"I1", "the stock hash", "received 3 + corrected 0 = on_hand + sold", "on_hand 3 + sold 1",
		},
		"held counter off its records": {
			func(f *Facts) { f.Counters.Held = 2 },
			"I1", "counter held", "1, the sum of the holds", "2",
		},
		"a ledger line that moves more than it says": {
			func(f *Facts) { f.Ledger[8].Offered = 3 },
			"I1", "ledger line hold_ben@offer (offer offered hold_ben)", "on_hand 2, held 0, offered 2, sold 1", "on_hand 2, held 0, offered 3, sold 1",
		},
		"a ledger line missing": {
			func(f *Facts) { f.Ledger = append(f.Ledger[:5:5], f.Ledger[6:]...) },
			"I1", "ledger line event_2@stock (stock restock event_2)", "line 6 of epoch 0", "line 7",
		},
		"more claims than units": {
			func(f *Facts) { f.Counters.OnHand, f.Counters.Received = 1, 2 },
			"I2", "the stock hash", "available of 0 or more", "-1",
		},
		"a counter below zero": {
			func(f *Facts) { f.Ledger[3].Held = -1 },
			"I2", "ledger line hold_walt@adopt (adopt held hold_walt)", "held of 0 or more", "-1",
		},
		"sold, then released": {
			func(f *Facts) {
				f.Ledger = append(f.Ledger, Line{
					ID: "late", At: at(20), N: 13, Verb: "release", Kind: "expired", State: "expired", Units: 1, Ref: "hold_walt",
					OnHand: 3, Held: 1, Offered: 1, SoldTo: 0,
				})
			},
			"I3", "hold_walt", "nothing after its end sold", "release expired in ledger line late",
		},
		"the record tells another end": {
			func(f *Facts) { edit(f.Holds, "hold_walt", func(h *Hold) { h.State = "released" }) },
			"I3", "hold_walt", `record "sold" as the ledger's last line`, `record "released"`,
		},
		"an expiry before its deadline": {
			func(f *Facts) {
				edit(f.Holds, "hold_walt", func(h *Hold) { h.State, h.Deadline, h.Ended = "expired", at(10), at(9.999) })
			},
			"I3", "hold_walt", "an expiry at its deadline 08:00:10.000 or later", "08:00:09.999",
		},
		"a live hold lost its record": {
			func(f *Facts) { delete(f.Holds, "hold_ben") },
			"I3", "hold_ben", "a record, live in the ledger as offered", "none",
		},
		"a person twice in the line": {
			func(f *Facts) { edit(f.Entries, "entry_cleo", func(e *Entry) { e.Person = "ben" }) },
			"I4", "entry_cleo", "one live entry of its person", "also entry_ben",
		},
		"an entry with two holds": {
			func(f *Facts) { edit(f.Holds, "hold_ben", func(h *Hold) { h.Entry = "entry_ada" }) },
			"I4", "hold_ben", "one live hold of entry entry_ada", "also hold_ada",
		},
		"a hold of another person than its entry": {
			func(f *Facts) { edit(f.Holds, "hold_ben", func(h *Hold) { h.Person = "cleo" }) },
			"I4", "hold_ben", "entry entry_ben to name it, and its person", `"hold_ben", person "ben"`,
		},
		"an offered entry without its offer": {
			func(f *Facts) { edit(f.Holds, "hold_ben", func(h *Hold) { h.State = "lapsed" }) },
			"I4", "entry_ben", "a live hold of an entry offered", `none (names "hold_ben")`,
		},
		"a waiting entry outside the line": {
			func(f *Facts) { f.Line = nil },
			"order", "entry_cleo", "a place 1800000006000000 in the line", "line 0, fresh 0",
		},
		"a held hold without a workflow": {
			func(f *Facts) { delete(f.Workflows, "hold_ada") },
			"I6", "hold_ada", "an open Hold workflow of a held hold", "unknown to Temporal",
		},
		"a provisional hold without a lease": {
			func(f *Facts) { edit(f.Holds, "hold_ada", func(h *Hold) { h.State = "provisional" }) },
			"I6", "hold_ada", "a lease of a provisional hold", "none",
		},
		"an offer nobody will tell": {
			func(f *Facts) { edit(f.Workflows, "entry_ben", func(w *Workflow) { w.Status = "Terminated" }) },
			"I6", "hold_ben", "an offer whose entry's workflow is open, or a place in the outbox", "workflow entry_ben Terminated",
		},
		"a join that nobody will start": {
			func(f *Facts) { f.Outbox = nil },
			"I6", "entry_dora", "a start in the outbox with its sealed input", "start false, sealed true",
		},
		"a closed workflow of a live hold": {
			func(f *Facts) {
				edit(f.Workflows, "hold_ada", func(w *Workflow) { w.Status, w.Result = "Completed", "released" })
			},
			"I8", "hold_ada", "an ended record of a closed Hold workflow", `record "held"`,
		},
		"a workflow without a record": {
			func(f *Facts) { f.Workflows["hold_x"] = Workflow{Type: "Hold", Status: "Running"} },
			"I8", "hold_x", "a record of every Hold workflow", "none, the workflow is Running",
		},
		"a workflow that closed otherwise": {
			func(f *Facts) { edit(f.Workflows, "hold_walt", func(w *Workflow) { w.Result = "expired" }) },
			"I8", "hold_walt", "a workflow that closed as its record, sold", `closed as "expired"`,
		},
		"a restock counted twice": {
			func(f *Facts) { f.Ledger[6].Ref = "event_1" },
			"I8", "event_1", "one ledger line for a stock event", "a second: ledger line event_2@stock (stock restock event_1)",
		},
		"a hold taken twice": {
			func(f *Facts) { f.Ledger[9].Ref = "hold_walt"; f.Ledger[4].Ref = "hold_other" },
			"I8", "hold_other", `one of ["held" "provisional"] before confirm sold`, `"" in ledger line hold_walt@confirm`,
		},
		"an offer out of turn": {
			func(f *Facts) { edit(f.Entries, "entry_cleo", func(e *Entry) { e.Arrival = at(3.5).UnixMicro() }) },
			"order", "entry_cleo", "the units of hold_ada, offer, as the first eligible", "arrived 1800000003500000, passed over at 08:00:07.000 in ledger line hold_ada@offer",
		},
		"an offer to someone who has left": {
			func(f *Facts) { f.Ledger[5].Verb = "leave"; f.Ledger[5].Ref = "entry_ben" },
			"order", "hold_ben", "one offer to entry entry_ben, while it waits", "left true, offered before false",
		},
		"a second offer to the same entry": {
			func(f *Facts) { edit(f.Holds, "hold_ben", func(h *Hold) { h.Entry = "entry_ada" }) },
			"order", "hold_ben", "one offer to entry entry_ada, while it waits", "left false, offered before true",
		},
		"a missed turn before the next restock": {
			func(f *Facts) {
				f.Ledger = append(f.Ledger,
					Line{ID: "lapse", At: at(12), N: 13, Verb: "lapse", Kind: "lapsed", State: "lapsed", Units: 1, Ref: "hold_ben"},
					Line{ID: "again", At: at(13), N: 14, Verb: "offer", Kind: "offered", State: "offered", Units: 1, Ref: "hold_ben_2"})
				f.Holds["hold_ben_2"] = Hold{State: "offered", Units: 1, Person: "ben", Entry: "entry_ben"}
			},
			"order", "hold_ben_2", "one offer to entry entry_ben, while it waits", "left false, offered before true",
		},
		"a kept place that the next restock passes over": {
			func(f *Facts) {
				f.Ledger = append(f.Ledger,
					Line{ID: "lapse", At: at(12), N: 13, Verb: "lapse", Kind: "lapsed", State: "lapsed", Units: 1, Ref: "hold_ben"},
					Line{ID: "more", At: at(13), N: 14, Verb: "stock", Kind: "restock", Units: 1, Ref: "event_3"},
					Line{ID: "past", At: at(13), N: 15, Verb: "offer", Kind: "offered", State: "offered", Units: 1, Ref: "hold_cleo"})
				f.Holds["hold_cleo"] = Hold{State: "offered", Units: 1, Person: "cleo", Entry: "entry_cleo"}
			},
			"order", "entry_ben", "the units of hold_cleo, offer, as the first eligible", "arrived 1800000005000000, passed over at 08:00:13.000 in ledger line past",
		},
		"a sealed input that stays": {
			func(f *Facts) { f.Parcels["s:entry_ada"] = true },
			"I6", "s:entry_ada", "nothing kept of what has left the outbox", "a parcel",
		},
		"a turn not kept for its lease": {
			func(f *Facts) {
				edit(f.Entries, "entry_dora", func(e *Entry) { e.Arrival = at(3.5).UnixMicro() })
			},
			"order", "entry_dora", "its turn kept for the 10s of its lease", "hold_ada, offer at 08:00:07.000 in ledger line hold_ada@offer",
		},
		"a walk-in before the line": {
			func(f *Facts) {
				edit(f.Holds, "hold_ada", func(h *Hold) { h.Entry = "" })
				f.Ledger[7].State = "provisional"
			},
			"order", "entry_ben", "the units of hold_ada, offer, as the first eligible", "arrived 1800000005000000, passed over at 08:00:07.000 in ledger line hold_ada@offer",
		},
		"a late payment before the line": {
			func(f *Facts) {
				f.Ledger = append(f.Ledger, Line{ID: "late", At: at(20), N: 13, Verb: "confirm", Kind: "retaken", State: "sold", Units: 1, Ref: "hold_rex"})
			},
			"order", "entry_cleo", "the units of hold_rex, confirm, as the first eligible", "arrived 1800000006000000, passed over at 08:00:20.000 in ledger line late",
		},
		"a text to a stranger": {
			func(f *Facts) { f.Texts[0].To = "+447700900009" },
			"texts", "hold_ada", `a text to "+447700900001", the phone of its entry`, `to "+447700900009"`,
		},
		"a text without an offer": {
			func(f *Facts) { f.Texts[1].Hold = "hold_y" },
			"texts", "hold_y", "an offer on record behind the link in a text", "none, text to entry entry_ben",
		},
		"a second text with another link": {
			func(f *Facts) {
				again := f.Texts[0]
				again.Body = "Shop: http://shop.example/r/ZZZ holds your Chair"
				f.Texts = append(f.Texts, again)
			},
			"texts", "hold_ada", "the same link in each of its texts: http://shop.example/r/AAA", "http://shop.example/r/ZZZ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := sound()
			c.breakIt(&f)
			found := append(JudgeGate(f), JudgeOwners(f)...)
			want := Violation{Rule: c.rule, SKU: "CHAIR", ID: c.id, Expected: c.expected, Found: c.found}
			require.Contains(t, found, want, "found %v", found)
		})
	}
}

// What a second look does not find again was a movement between two readings.
func TestOnlyLastingViolationsCount(t *testing.T) {
	moving := Violation{Rule: "I6", ID: "hold_a", Expected: "an owner", Found: "none yet"}
	lasting := Violation{Rule: "I6", ID: "hold_b", Expected: "an owner", Found: "none yet"}
	still := lasting
	still.Found = "none"
	first := again(nil, []Violation{moving, lasting}, true)
	require.Equal(t, []Violation{still}, again(first, []Violation{still}, false))
}

func TestRecordsAreDecodedAsDocumented(t *testing.T) {
	h, err := decodeHold(`["sold",2,"person","entry_a",3,1800000000000,1800000600000,7,1800000000001,0,0,0,0,0,"","",1800000000500,"","pay_1",["pay_2"],1,0,"A:2,B:1"]`)
	require.NoError(t, err)
	require.Equal(t, Hold{
		State: "sold", Units: 2, Person: "person", Entry: "entry_a", Deadline: at(600), Ended: at(0.5), PaymentRef: "pay_1", Refunded: []string{"pay_2"}, Returned: 1,
		Cart: []Part{{SKU: "A", Units: 2}, {SKU: "B", Units: 1}},
	}, h)
	h, err = decodeHold(`["held",1,"person","",3,1800000000000,1800000600000,7,0,0,0,0,0,0,"","",0,"","",0,0,0,""]`)
	require.NoError(t, err)
	require.Equal(t, Hold{State: "held", Units: 1, Person: "person", Deadline: at(600)}, h)
	e, err := decodeEntry(`["waiting",1,"person","1800000000000123",1,"",0,0,0,0,1,0]`)
	require.NoError(t, err)
	require.Equal(t, Entry{State: "waiting", Person: "person", Arrival: 1_800_000_000_000_123, Acknowledged: true}, e)
	l, err := decodeLine("1-0", map[string]any{
		"t": "1800000000000", "e": "0", "n": "1", "v": "confirm", "k": "sold", "u": "1", "i": "hold_a", "x": "entry_a", "p": "p", "a": "door",
		"r": "", "g": "1", "f": "pay_1", "m": "", "c": "", "oh": "1", "h": "2", "o": "3", "s": "4",
	})
	require.NoError(t, err)
	require.Equal(t, Line{
		ID: "1-0", At: at(0), N: 1, Verb: "confirm", Kind: "sold", State: "sold", Units: 1, Ref: "hold_a", Other: "entry_a", Person: "p", Actor: "door", Payment: "pay_1",
		OnHand: 1, Held: 2, Offered: 3, SoldTo: 4,
	}, l)
	o, err := decodeOpening(`{"id":"1-0","at":1800000000000,"epoch":1,"n":7,"generation":2,"on_hand":1,"held":2,"offered":3,"sold":4,"received":5,"corrected":-6,"returned":7}`)
	require.NoError(t, err)
	require.Equal(t, &Counters{OnHand: 1, Held: 2, Offered: 3, Sold: 4, Received: 5, Corrected: -6, Returned: 7, Ledger: 7}, o)
	o, err = decodeOpening("")
	require.NoError(t, err)
	require.Nil(t, o, "nothing was trimmed")
	_, err = decodeOpening("{")
	require.Error(t, err)
	for _, bad := range []string{`{}`, `["held"]`, `["sold",2,"person","entry_a",3,1,1,7,1,0,0,0,0,0,"","",1,"",5,0]`} {
		_, err := decodeHold(bad)
		require.Error(t, err, bad)
	}
}
