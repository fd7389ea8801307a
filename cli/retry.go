package cli

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

func (a *app) refundsRetry() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "retry ID", Short: "Ask the payment provider once more for the refund of a Payment",
		Long: `Ask the payment provider once more for the refund of a Payment, now: after what
stood in its way was mended, or when it is silent and the next try is minutes away.
It is the same request as before: nobody pays back twice.

It fails when no machine can make the refund, and says why and what to do.

` + accessByName,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			if !contract.ValidPaymentID(id) {
				return notPayment(id)
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			got, err := d.post(cmd.Context(), "/v1/refunds/"+id+"/retry", struct{}{})
			if err != nil {
				return err
			}
			r, err := readRefund(got.body)
			if err != nil {
				return err
			}
			says := map[string]string{
				contract.PaymentRefundPending:  "the provider was asked and has not answered yet; it is asked until it does",
				contract.PaymentRefundReported: "the provider has taken the request",
				contract.PaymentRefundSettled:  "the money has gone back",
			}[r.State]
			switch {
			case r.ByHand != "" && got.status == http.StatusOK && r.State == contract.PaymentRefundPending:
				return fmt.Errorf("%s is %s: %s", id, r.State, r.ByHand)
			case says == "":
				return fmt.Errorf("%s is %s: there is no refund to ask for", id, r.State)
			case r.Reference != "":
				says += ", reference " + inTable(r.Reference)
			}
			return a.show(got, asJSON, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s is %s: %s\n", id, r.State, says)
				return err
			})
		},
	}
	return jsonFlag(cmd, &asJSON)
}

func notPayment(id string) error {
	return usagef("%q is no id of a Payment, which is payment_ and 26 letters; \"holdfast refunds --open\" lists them", id)
}
