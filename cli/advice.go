package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast/advice"
	"holdfast/contract"
)

func (a *app) ttlAdvice() *cobra.Command {
	var since, plot string
	var percent float64
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ttl-advice SKU", Short: "Say from the ledger how long the holds of a SKU should be",
		Long: `Say from the ledger how long the holds of a SKU should be: for each hold time, how
many of the buyers who paid it would have cut off, and how long units would have stood
in carts that nobody paid.

A buyer needs a hold until the payment starts, or, if the shop does not say when that
is, until it is there. Payments that came too late count. Who gave up because the hold
was over is not seen: when many payments fall into the last minute of the hold time,
try a longer one for a week.

There is a suggestion from ` + fmt.Sprint(advice.Enough) + ` paying buyers on.

` + accessByName,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeSKU,
		RunE: func(cmd *cobra.Command, args []string) error {
			sku := args[0]
			if !contract.ValidSKU(sku) {
				return badSKU(sku)
			}
			if percent < 0 || percent >= 100 {
				return usagef("--cut is %v; it must be a percentage from 0 to below 100", percent)
			}
			query := url.Values{"limit": {ledgerPage}}
			if since != "" {
				t, err := instant(since, time.Now())
				if err != nil {
					return usagef("--since is %q; it must be an instant such as 2026-01-31T12:00:00Z, or how long ago as in 720h", since)
				}
				query.Set("since", t.UTC().Format(time.RFC3339))
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			carts, err := readCarts(cmd.Context(), d, sku, query)
			if err != nil {
				return err
			}
			found := advice.Of(carts, percent/100)
			if plot != "" {
				if err := writePlot(plot, found, sku); err != nil {
					return err
				}
			}
			return a.showAdvice(sku, found, percent, asJSON)
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only holds from this instant on; an instant, or how long ago")
	cmd.Flags().Float64Var(&percent, "cut", 1, "percentage of paying buyers that may be cut off")
	cmd.Flags().StringVar(&plot, "plot", "", "file for a plot, as SVG")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func readCarts(ctx context.Context, d *door, sku string, query url.Values) ([]advice.Cart, error) {
	rows, err := listRows(ctx, d, "/v1/stock/"+sku+"/ledger", query, "ledger lines")
	if err != nil {
		return nil, err
	}
	lines := make([]advice.Line, 0, len(rows))
	for _, row := range rows {
		var l ledgerLine
		if err := json.Unmarshal(row, &l); err != nil {
			return nil, fmt.Errorf("the door's answer is no ledger line: %w", err)
		}
		at, err := time.Parse(time.RFC3339, l.At)
		if err != nil {
			return nil, fmt.Errorf("line %d of the ledger has the time %q: %w", l.N, l.At, err)
		}
		lines = append(lines, advice.Line{At: at, Verb: l.Verb, Kind: l.Kind, Units: l.Units, HoldID: l.RefID})
	}
	return advice.Carts(lines), nil
}

func writePlot(file string, found advice.Advice, sku string) error {
	var svg bytes.Buffer
	if err := found.SVG(&svg, "Paying buyers of "+sku+" who were done in time"); err != nil {
		return err
	}
	if err := os.WriteFile(file, svg.Bytes(), 0o644); err != nil {
		return fmt.Errorf("the plot was not written: %w", err)
	}
	return nil
}

type adviceRow struct {
	HoldSeconds     int64 `json:"hold_seconds"`
	Cut             int   `json:"cut_off"`
	IdleUnitSeconds int64 `json:"idle_unit_seconds"`
}

type adviceAnswer struct {
	SKU              string      `json:"sku"`
	Paying           int         `json:"paying"`
	Abandoned        int         `json:"abandoned"`
	Open             int         `json:"open"`
	Rows             []adviceRow `json:"rows"`
	SuggestedSeconds int64       `json:"suggested_seconds,omitempty"`
}

func (a *app) showAdvice(sku string, found advice.Advice, percent float64, asJSON bool) error {
	if asJSON {
		out := adviceAnswer{SKU: sku, Paying: found.Paying, Abandoned: found.Abandoned, Open: found.Open, SuggestedSeconds: int64(found.Suggested / time.Second)}
		for _, r := range found.Rows {
			out.Rows = append(out.Rows, adviceRow{int64(r.Hold / time.Second), r.Cut, int64(r.Idle / time.Second)})
		}
		return writeJSON(a.std.Out, out)
	}
	return printAdvice(a.std.Out, sku, found, percent)
}

func printAdvice(out io.Writer, sku string, found advice.Advice, percent float64) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "%s: holds paid %d, abandoned %d, still open %d\n\n", sku, found.Paying, found.Abandoned, found.Open)
	fmt.Fprintln(w, "hold time\tpaying buyers cut off\tof them\tunit hours in abandoned carts\t")
	for _, r := range found.Rows {
		share := "-"
		if found.Paying > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(r.Cut)/float64(found.Paying))
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%.1f\t\n", holdTime(r.Hold), r.Cut, share, r.Idle.Hours())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	text := fmt.Sprintf("\nSuggested: %s, the shortest that cuts off at most %v %% of the paying buyers.\n", holdTime(found.Suggested), percent)
	switch {
	case found.Paying < advice.Enough:
		text = fmt.Sprintf("\nNo suggestion: %d paying buyers were seen, %d are needed.\n", found.Paying, advice.Enough)
	case found.Suggested == 0:
		text = fmt.Sprintf("\nNo suggestion: even the longest cuts off more than %v %% of the paying buyers.\n", percent)
	}
	_, err := io.WriteString(out, text)
	return err
}

// holdTime is a hold time as people say it.
func holdTime(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return strings.TrimSuffix(fmt.Sprintf("%g", d.Minutes()), ".0") + " min"
}
