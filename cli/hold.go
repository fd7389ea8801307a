package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

const maxReason = 64 // characters

func (a *app) hold() *cobra.Command {
	return group("hold", "Look at a hold, or give its units back", a.holdGet(), a.holdRelease())
}

func (a *app) holdGet() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "get ID", Short: "Show a hold",
		Long: "Show a hold: whose, what, until when, and how it ended.\n\n" + accessByName,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkHoldID(args[0]); err != nil {
				return err
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			got, err := d.get(cmd.Context(), "/v1/holds/"+args[0])
			if err != nil {
				return err
			}
			return a.showHold(got, asJSON)
		},
	}
	return jsonFlag(cmd, &asJSON)
}

func (a *app) holdRelease() *cobra.Command {
	var yes, asJSON bool
	var reason string
	cmd := &cobra.Command{
		Use: "release ID", Short: "Give the units of a hold back, to the next in line",
		Long: `Give the units of a live hold back, to the next in line. Its shopper loses them, and a
payment that comes later is refunded. A hold that has ended stays as it is; one that
is sold is refused: a sold unit comes back as a return.

It is safe to repeat.

` + accessByName,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			if err := checkHoldID(id); err != nil {
				return err
			}
			if n := len([]rune(reason)); n > maxReason {
				return usagef("--reason has %d characters, at most %d go into the ledger", n, maxReason)
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			if err := a.sure(yes, "The shopper of "+id+" loses its units"); err != nil {
				return err
			}
			body := map[string]string{}
			if reason != "" {
				body["reason"] = reason
			}
			got, err := d.post(cmd.Context(), "/v1/holds/"+id+"/release", body)
			if err != nil {
				return err
			}
			return a.showHold(got, asJSON)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the ledger; default "+contract.ReasonShop)
	return jsonFlag(cmd, &asJSON)
}

func checkHoldID(id string) error {
	if _, err := contract.HoldNumber(id); err != nil {
		return usagef("%q is no id of a hold, which is hold_ and 26 letters and digits; \"holdfast find\" finds holds by phone, payment or order", id)
	}
	return nil
}

// holdAnswer is a hold as the door shows it.
type holdAnswer struct {
	HoldID string `json:"hold_id"`
	State  string `json:"state"`
	Lines  []struct {
		SKU      string      `json:"sku"`
		Quantity json.Number `json:"quantity"`
	} `json:"lines"`
	Customer   string `json:"customer"`
	OrderRef   string `json:"order_ref"`
	EntryID    string `json:"entry_id"`
	PaymentRef string `json:"payment_ref"`
	CreatedAt  string `json:"created_at"`
	ExpiresAt  string `json:"expires_at"`
	Extended   bool   `json:"extended"`
	EndedAt    string `json:"ended_at"`
	EndReason  string `json:"end_reason"`
	Refund     *struct {
		PaymentID string `json:"payment_id"`
		State     string `json:"state"`
	} `json:"refund"`
	Links struct {
		Page string `json:"page"`
	} `json:"links"`
	Now string `json:"now"`
}

func (a *app) showHold(got answer, asJSON bool) error {
	var h holdAnswer
	if err := json.Unmarshal(got.body, &h); err != nil || h.HoldID == "" || h.State == "" {
		return fmt.Errorf("the door's answer is no hold: %.200q", got.body)
	}
	return a.show(got, asJSON, h.print)
}

func (h holdAnswer) print(out io.Writer) error {
	lines := make([]string, len(h.Lines))
	for i, l := range h.Lines {
		lines[i] = l.Quantity.String() + " × " + l.SKU
	}
	until := h.ExpiresAt
	if h.Extended {
		until += ", extended"
	}
	refund := ""
	if h.Refund != nil {
		refund = h.Refund.PaymentID + " is " + h.Refund.State
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"hold", h.HoldID},
		{"state", h.State},
		{"lines", strings.Join(lines, ", ")},
		{"customer", h.Customer},
		{"order", h.OrderRef},
		{"entry", h.EntryID},
		{"payment", h.PaymentRef},
		{"refund", refund},
		{"created", h.CreatedAt},
		{"held until", until},
		{"ended", h.EndedAt},
		{"reason", h.EndReason},
		{"page", h.Links.Page},
		{"as of", h.Now},
	} {
		if row[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], inTable(row[1]))
		}
	}
	return w.Flush()
}
