package check

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// soundCarts is a SKU at which three carts begin: one sold, one given back, one that
// its Hold refused.
func soundCarts() Facts {
	cart := []Part{{SKU: "CHAIR", Units: 2}, {SKU: "LAMP", Units: 1}}
	line := func(state string, units int64, ref string) Hold {
		return Hold{State: state, Units: units, Person: "ada", PaymentRef: ref}
	}
	f := Facts{
		SKU: "CHAIR", Holds: map[string]Hold{},
		Workflows: map[string]Workflow{
			"hold_sold":    {Type: "Hold", Status: "Completed", Result: "sold", Lines: []Part{{SKU: "CHAIR", Units: 1}, {SKU: "LAMP", Units: 1}}},
			"hold_expired": {Type: "Hold", Status: "Completed", Result: "expired", Lines: []Part{{SKU: "CHAIR", Units: 1}, {SKU: "LAMP", Units: 1}}},
			"hold_refused": {Type: "Hold", Status: "Completed", Result: "refused", Lines: []Part{{SKU: "CHAIR", Units: 1}, {SKU: "LAMP", Units: 1}}},
		},
		Carts: map[string]map[string]Hold{
			"hold_sold":    {"CHAIR": line("sold", 2, "P"), "LAMP": line("sold", 1, "P")},
			"hold_expired": {"CHAIR": line("expired", 2, ""), "LAMP": line("expired", 1, "")},
			"hold_refused": {"CHAIR": line("released", 2, ""), "LAMP": line("refused", 1, "")},
		},
	}
	for id, lines := range f.Carts {
		h := lines["CHAIR"]
		h.Cart = cart
		f.Holds[id] = h
	}
	return f
}

func judgeCarts(f Facts) (rules []string) {
	r := &report{sku: f.SKU}
	r.owners(f)
	r.carts(f)
	for _, v := range r.found {
		rules = append(rules, v.Rule+" "+v.ID)
	}
	return rules
}

func TestCartsAreWholeOrNotAtAll(t *testing.T) {
	require.Empty(t, judgeCarts(soundCarts()))
	retaken := soundCarts()
	for sku, l := range retaken.Carts["hold_expired"] {
		l.State, l.PaymentRef, l.Retaken = "sold", "P", true
		retaken.Carts["hold_expired"][sku] = l
	}
	h := retaken.Carts["hold_expired"]["CHAIR"]
	h.Cart = retaken.Holds["hold_expired"].Cart
	retaken.Holds["hold_expired"] = h
	require.Empty(t, judgeCarts(retaken))

	change := func(id, sku string, do func(h *Hold)) func(f Facts) {
		return func(f Facts) {
			l := f.Carts[id][sku]
			do(&l)
			f.Carts[id][sku] = l
		}
	}
	for name, c := range map[string]struct {
		breakIt func(f Facts)
		rule    string
	}{
		"a line is missing":        {func(f Facts) { delete(f.Carts["hold_sold"], "LAMP") }, "I8 hold_sold"},
		"half sold":                {change("hold_sold", "LAMP", func(h *Hold) { h.State, h.PaymentRef = "expired", "" }), "I3 hold_sold"},
		"sold by two":              {change("hold_sold", "LAMP", func(h *Hold) { h.PaymentRef = "Q" }), "I3 hold_sold"},
		"one line is still live":   {change("hold_expired", "LAMP", func(h *Hold) { h.State = "held" }), "I3 hold_expired"},
		"one line was sold":        {change("hold_expired", "LAMP", func(h *Hold) { h.State, h.PaymentRef = "sold", "P" }), "I3 hold_expired"},
		"other units":              {change("hold_sold", "LAMP", func(h *Hold) { h.Units = 2 }), "I4 hold_sold"},
		"another person":           {change("hold_sold", "LAMP", func(h *Hold) { h.Person = "ben" }), "I4 hold_sold"},
		"the refused line is sold": {change("hold_refused", "LAMP", func(h *Hold) { h.State, h.PaymentRef = "sold", "P" }), "I3 hold_refused"},
		"closed as something else": {func(f Facts) {
			w := f.Workflows["hold_expired"]
			w.Result = "released"
			f.Workflows["hold_expired"] = w
		}, "I8 hold_expired"},
		"out of order": {func(f Facts) {
			h := f.Holds["hold_sold"]
			h.Cart = []Part{{SKU: "CHAIR", Units: 2}, {SKU: "A", Units: 1}}
			f.Holds["hold_sold"] = h
		}, "I8 hold_sold"},
	} {
		t.Run(name, func(t *testing.T) {
			f := soundCarts()
			f.Holds, f.Workflows = maps.Clone(f.Holds), maps.Clone(f.Workflows)
			c.breakIt(f)
			require.Contains(t, judgeCarts(f), c.rule)
		})
	}
}

// A cart's later line is judged by how the cart closed.
func TestALaterLineEndsAsItsCart(t *testing.T) {
	f := Facts{SKU: "LAMP", Holds: map[string]Hold{"hold_a": {State: "released", Units: 1}}, Workflows: map[string]Workflow{
		"hold_a": {Type: "Hold", Status: "Completed", Result: "refused", Lines: []Part{{SKU: "CHAIR", Units: 1}, {SKU: "LAMP", Units: 1}}},
	}}
	require.Empty(t, judgeCarts(f))
	f.Holds["hold_a"] = Hold{State: "sold", Units: 1, PaymentRef: "P"}
	require.Contains(t, judgeCarts(f), "I8 hold_a")
}
