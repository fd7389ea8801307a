package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"holdfast/e2e/shop"
)

func (p *play) title(s string) {
	p.number = 0
	fmt.Fprintf(p.out, "\n%s\n\n", s)
}

// see prints what a person sees, in one line.
func (p *play) see(who, verb, what string) {
	if runes := []rune(what); len(runes) > 200 {
		what = string(runes[:200]) + "…"
	}
	fmt.Fprintf(p.out, "      %-9s %s %s\n", who, verb, what)
}

// books prints a SKU's counters and ledger and holds the counters against what
// the story must leave.
func (p *play) books(ctx context.Context, sku string, expected shop.Stock) error {
	return p.begin(ctx, "the books", func() error {
		s, err := p.shop.Stock(ctx, sku)
		if err != nil {
			return err
		}
		lines, err := p.shop.Ledger(ctx, sku)
		if err != nil {
			return err
		}
		if err := p.table(s, lines); err != nil {
			return err
		}
		for _, c := range []struct {
			name          string
			got, expected int64
		}{
			{"on_hand", s.OnHand, expected.OnHand},
			{"held", s.Held, expected.Held},
			{"offered", s.Offered, expected.Offered},
			{"sold", s.Sold, expected.Sold},
			{"waiting", s.Waiting, expected.Waiting},
		} {
			if err := want(c.name, fmt.Sprint(c.got), fmt.Sprint(c.expected)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *play) table(s shop.Stock, lines []shop.LedgerLine) error {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n      on_hand\theld\toffered\tavailable\topen_to_all\tsold\twaiting\n")
	fmt.Fprintf(w, "      %d\t%d\t%d\t%d\t%d\t%d\t%d\n", s.OnHand, s.Held, s.Offered, s.Available, s.OpenToAll, s.Sold, s.Waiting)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n      at\tverb\tkind\tunits\tof\tactor\ton_hand\theld\toffered\tsold\n")
	for _, l := range lines {
		fmt.Fprintf(w, "      %s\t%s\t%s\t%d\t%s\t%s\t%d\t%d\t%d\t%d\n",
			l.At.Format("15:04:05.000"), l.Verb, l.Kind, l.Units, short(l.RefID), l.Actor, l.OnHand, l.Held, l.Offered, l.Sold)
	}
	return w.Flush()
}

// short is enough of an id to tell it from its neighbours; ids of one SKU begin
// alike.
func short(id string) string {
	if len(id) <= 16 {
		return id
	}
	return id[:5] + "…" + id[len(id)-8:]
}
