package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

const maxReference = 200 // characters

func (a *app) refunds() *cobra.Command {
	var open, asJSON bool
	var sku, format string
	cmd := &cobra.Command{
		Use: "refunds", Short: "List the money that made no sale, and say that it went back",
		Long: `List the Payments, newest first: the money that made no sale when it arrived.

--open leaves out what is settled. Of the others, "refund-pending" must be paid
back, and "parked" be looked into by a person; then "holdfast refunds settle".
"holdfast refunds retry" asks the payment provider once more.
One that is open and has closed_at was ended by hand: confirm its payment again.

` + accessByName,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"limit": {mostRows}}
			if open {
				query.Set("open", "true")
			}
			if cmd.Flags().Changed("sku") {
				if !contract.ValidSKU(sku) {
					return badSKU(sku)
				}
				query.Set("sku", sku)
			}
			if asJSON {
				if cmd.Flags().Changed("format") {
					return usagef("--json is --format json: say one of them")
				}
				format = "json"
			}
			show, ok := map[string]func(io.Writer, []json.RawMessage) error{"table": refundTable, "json": rowsJSON}[format]
			if !ok {
				return usagef("--format is %q; it must be table or json", format)
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			rows, err := listRows(cmd.Context(), d, "/v1/refunds", query, "refunds")
			if err != nil {
				return err
			}
			return show(a.std.Out, rows)
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "only what is not settled")
	cmd.Flags().StringVar(&sku, "sku", "", "only Payments for a SKU")
	cmd.Flags().StringVar(&format, "format", "table", "table or json")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	cmd.AddCommand(a.refundsSettle(), a.refundsRetry())
	return cmd
}

// refundAnswer is a Payment as the door shows it. The door leaves out what it
// could not learn.
type refundAnswer struct {
	PaymentID  string `json:"payment_id"`
	HoldID     string `json:"hold_id"`
	PaymentRef string `json:"payment_ref"`
	Amount     *int64 `json:"amount"`
	Currency   string `json:"currency"`
	Cause      string `json:"cause"`
	State      string `json:"state"`
	Reference  string `json:"reference"`
	ByHand     string `json:"by_hand"`
	SKU        string `json:"sku"`
	CreatedAt  string `json:"created_at"`
	ClosedAt   string `json:"closed_at"`
}

func readRefund(body []byte) (r refundAnswer, err error) {
	if err := json.Unmarshal(body, &r); err != nil || r.PaymentID == "" || r.State == "" {
		return r, fmt.Errorf("the door's answer is no refund: %.200q", body)
	}
	return r, nil
}

func refundTable(out io.Writer, rows []json.RawMessage) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "payment_id\tstate\tcause\tsku\tamount\tpayment_ref\thold_id\treference\tcreated_at\tclosed_at")
	for _, row := range rows {
		r, err := readRefund(row)
		if err != nil {
			return err
		}
		amount := ""
		if r.Amount != nil {
			amount = fmt.Sprintf("%d %s", *r.Amount, r.Currency)
		}
		cells := []string{r.PaymentID, r.State, r.Cause, r.SKU, amount, r.PaymentRef, r.HoldID, r.Reference, r.CreatedAt, r.ClosedAt}
		for i, c := range cells {
			cells[i] = inTable(c)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

func (a *app) refundsSettle() *cobra.Command {
	var ref string
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use: "settle ID --ref REF", Short: "Say that the money of a Payment went back, or was booked elsewhere",
		Long: `Say that the money of a Payment went back, or was booked elsewhere. It pays
nothing back itself. The Payment records REF and the caller of HOLDFAST_KEY.

It cannot be undone and asks for a yes. It is safe to repeat: a Payment that was
settled before keeps its reference.

` + accessByName,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, ref := args[0], strings.TrimSpace(ref)
			if !contract.ValidPaymentID(id) {
				return notPayment(id)
			}
			if n := utf8.RuneCountInString(ref); n < 1 || n > maxReference {
				return usagef("--ref has %d characters; it must have 1 to %d: the provider's reference of the refund, or where the money was booked", n, maxReference)
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			if err := a.sure(yes, fmt.Sprintf("%s is settled for good, with reference %q", id, ref)); err != nil {
				return err
			}
			got, err := d.post(cmd.Context(), "/v1/refunds/"+id+"/settle", map[string]string{"reference": ref})
			if err != nil {
				return err
			}
			r, err := readRefund(got.body)
			if err != nil {
				return err
			}
			if r.Reference != ref {
				return fmt.Errorf("%s was settled before, with reference %q; %q was not recorded", id, r.Reference, ref)
			}
			return a.show(got, asJSON, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s is %s, reference %s\n", id, r.State, inTable(ref))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().StringVar(&ref, "ref", "", "the provider's reference of the refund, or where the money was booked; required")
	return jsonFlag(cmd, &asJSON)
}
