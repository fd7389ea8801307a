package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func (a *app) statement() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "statement SKU", Short: "Show the books of a SKU and whether they add up",
		Long: `Show what came in, what was sold and what is left of a SKU, whether counters, records
and ledger agree, and what the last pass found of the owners of its units. The exit
code is 1 when they do not agree, when units are promised that are not there, or when
the pass has an alarm.

` + accessByName,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeSKU,
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := ofSKU(cmd.Context(), args[0], "/statement", nil)
			if err != nil {
				return err
			}
			var s statementAnswer
			if err := json.Unmarshal(got.body, &s); err != nil || s.Ledger == nil {
				return fmt.Errorf("the door's answer is no statement: %.200q", got.body)
			}
			if err := a.show(got, asJSON, s.print); err != nil {
				return err
			}
			if n := len(s.Alarms); n > 0 {
				return fmt.Errorf("%d alarms for %s", n, s.SKU)
			}
			return nil
		},
	}
	return jsonFlag(cmd, &asJSON)
}

type statementAnswer struct {
	SKU         string   `json:"sku"`
	Received    int64    `json:"received"`
	Corrected   int64    `json:"corrected"`
	Sold        int64    `json:"sold"`
	Returned    int64    `json:"returned"`
	OnHand      int64    `json:"on_hand"`
	Held        int64    `json:"held"`
	Offered     int64    `json:"offered"`
	Available   int64    `json:"available"`
	OpenRefunds *int64   `json:"open_refunds"`
	Alarms      []string `json:"alarms"`
	Drift       []struct {
		Part    string `json:"part"`
		Counter int64  `json:"counter"`
		Against string `json:"against"`
		Adds    int64  `json:"adds_up_to"`
	} `json:"drift"`
	Ledger *struct {
		Lines int64   `json:"lines"`
		Whole bool    `json:"whole"`
		From  *string `json:"from"`
	} `json:"ledger"`
	Pass *passAnswer `json:"pass"`
	AsOf string      `json:"as_of"`
}

func (s statementAnswer) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\tas of %s\n", s.SKU, s.AsOf)
	for _, row := range []struct {
		name  string
		units int64
	}{
		{"received", s.Received},
		{"corrected", s.Corrected},
		{"sold", s.Sold},
		{"returned", s.Returned},
		{"on hand", s.OnHand},
		{"  held", s.Held},
		{"  offered", s.Offered},
		{"  available", s.Available},
	} {
		fmt.Fprintf(t, "%s\t%d\n", row.name, row.units)
	}
	refunds := "not known"
	if s.OpenRefunds != nil {
		refunds = whole(*s.OpenRefunds)
	}
	fmt.Fprintf(t, "open refunds\t%s\n", refunds)
	drift := "none"
	for i, d := range s.Drift {
		if i == 0 {
			drift = ""
		} else {
			drift += "; "
		}
		drift += fmt.Sprintf("%s %d, by %s %d", d.Part, d.Counter, d.Against, d.Adds)
	}
	fmt.Fprintf(t, "drift\t%s\n", drift)
	pass := "none that ended in the last hour is known"
	if p := s.Pass; p != nil {
		pass = fmt.Sprintf("%s: %d differences, %d mended, %d of %d owners missing, gate and owners %d units apart", p.CheckedAt, p.Found, p.Repaired, p.Missing, p.Owners, p.DriftUnits)
	}
	fmt.Fprintf(t, "last pass\t%s\n", pass)
	extent := "all"
	if !s.Ledger.Whole {
		extent = "the newest"
	}
	fmt.Fprintf(t, "ledger\t%s %d lines checked", extent, s.Ledger.Lines)
	if s.Ledger.From != nil {
		fmt.Fprintf(t, ", from %s", *s.Ledger.From)
	}
	fmt.Fprintf(t, "\nalarms\t%d\n", len(s.Alarms))
	for _, alarm := range s.Alarms {
		fmt.Fprintf(t, "\t%s\n", alarm)
	}
	return t.Flush()
}
