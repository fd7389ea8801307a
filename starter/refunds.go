package starter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"holdfast/contract"
	"holdfast/launch"
)

// refundView is a Payment: money that met no live hold. What only its workflow
// knows is left out when that does not answer.
type refundView struct {
	PaymentID  string `json:"payment_id"`
	HoldID     string `json:"hold_id,omitempty"`
	PaymentRef string `json:"payment_ref,omitempty"`
	Amount     *int64 `json:"amount,omitempty"`
	Currency   string `json:"currency,omitempty"`
	Cause      string `json:"cause,omitempty"`
	State      string `json:"state"`
	Reference  string `json:"reference,omitempty"`
	ByHand     string `json:"by_hand,omitempty"`
	SKU        string `json:"sku,omitempty"`
	CreatedAt  string `json:"created_at"`
	ClosedAt   string `json:"closed_at,omitempty"`
}

const detailTimeout = 5 * time.Second // of the workflows of one list, less than the list has

func viewRefund(run PaymentRun, s contract.PaymentStatus) refundView {
	return refundView{
		PaymentID: run.ID, HoldID: s.HoldID, PaymentRef: s.PaymentRef, Amount: s.Amount, Currency: s.Currency,
		Cause: s.Cause, State: s.State, Reference: s.Reference, ByHand: s.ByHand, SKU: run.SKU,
		CreatedAt: stamp(run.StartedAt), ClosedAt: stampIf(run.ClosedAt),
	}
}

// settled is true when nobody is owed the money any more.
func settled(state string) bool {
	return state == contract.PaymentSold || state == contract.PaymentRefundSettled
}

// listRefunds lists Payments, newest first. Temporal's visibility finds them;
// their workflows say what they are now.
func (d *Door) listRefunds(w http.ResponseWriter, r *http.Request) error {
	q, err := readPage(r, 50)
	if err != nil {
		return err
	}
	cursor, err := d.decodeCursor(listOfRefunds, q.cursor)
	if err != nil {
		return err
	}
	sku := r.URL.Query().Get("sku")
	if sku != "" && !contract.ValidSKU(sku) {
		return badQuery("sku", "is not a SKU")
	}
	open, err := queryBool(r, "open")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), updateTimeout)
	defer cancel()
	runs, next, err := d.directory.Payments(ctx, sku, open, q.limit, cursor)
	if err != nil {
		return err
	}
	details, cancel := context.WithTimeout(ctx, detailTimeout)
	defer cancel()
	data, err := readAll(ctx, runs, func(ctx context.Context, run PaymentRun) (*refundView, error) {
		return d.listedRefund(ctx, details, run, open)
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page{Data: data, NextCursor: d.encodeCursor(listOfRefunds, next)})
}

// listedRefund reads one Payment of a list; nil when a later run speaks for it,
// or when it is not what visibility still says. Money is listed also when its
// workflow does not answer.
func (d *Door) listedRefund(ctx, details context.Context, run PaymentRun, open *bool) (*refundView, error) {
	if !run.ClosedAt.IsZero() {
		last, ok, err := d.directory.Payment(ctx, run.ID)
		if err != nil || ok && last.RunID != run.RunID {
			return nil, err
		}
	}
	s, err := d.paymentOf(details, run)
	if err != nil {
		d.log.Warn("a payment did not say what it is", "completed", run.Completed, "error", err)
		s = contract.PaymentStatus{State: run.State}
	}
	if open != nil && *open && settled(s.State) {
		return nil, nil
	}
	v := viewRefund(run, s)
	return &v, nil
}

// paymentOf asks a Payment what it is: by its result when it has one, which
// needs no worker.
func (d *Door) paymentOf(ctx context.Context, run PaymentRun) (s contract.PaymentStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if run.Completed {
		err = d.launcher.Result(ctx, run.ID, run.RunID, &s)
	} else {
		err = d.launcher.Status(ctx, run.ID, &s)
	}
	return s, err
}

// postSettle says that a person has seen to the money of a Payment: it went
// back, or was booked elsewhere.
func (d *Door) postSettle(w http.ResponseWriter, r *http.Request) error {
	f, err := readObject(w, r, false)
	if err != nil {
		return err
	}
	told := contract.RefundSettled{Reference: f.text("reference", 200), Actor: callerOf(r.Context())}
	if err := f.done(); err != nil {
		return err
	}
	// What a person did is recorded even when the client has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), updateTimeout)
	defer cancel()
	view, err := d.settleRefund(ctx, r.PathValue("payment_id"), told)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view)
}

// settleRefund tells the Payment and waits a little until it is settled.
func (d *Door) settleRefund(ctx context.Context, id string, told contract.RefundSettled) (refundView, error) {
	view, err := d.readRefund(ctx, id)
	if err != nil || settled(view.State) {
		return settledView(view, err)
	}
	err = d.launcher.Signal(ctx, id, contract.SignalRefundSettled, told)
	switch {
	case errors.Is(err, launch.ErrNoOwner):
		return d.settleClosed(ctx, id)
	case err != nil:
		return view, err
	}
	err = watch(ctx, time.Now().Add(tellWait), func() (bool, error) {
		view, err = d.readRefund(ctx, id)
		return settled(view.State), err
	})
	if err != nil || settled(view.State) {
		return settledView(view, err)
	}
	return view, tryLater(retrySoon, "%s was told and is still %s; repeat the request to see it settled", id, view.State)
}

// settleClosed answers for a Payment that could be told nothing: it was settled
// just before, or was terminated with the money still owed.
func (d *Door) settleClosed(ctx context.Context, id string) (refundView, error) {
	view, err := d.readRefund(ctx, id)
	switch {
	case err != nil || settled(view.State):
		return settledView(view, err)
	case view.ClosedAt == "":
		return view, tryLater(retrySoon, "%s was started anew while it was told; repeat the request as it was", id)
	}
	return view, problem(holdEnded, "%s was ended as %s, before it was settled, and can be told nothing; confirm payment %q of %s again to give the money an owner, then settle that",
		id, view.State, view.PaymentRef, view.HoldID)
}

// settledView is the answer once a Payment is settled: nothing can be settled of
// a payment that made the sale.
func settledView(view refundView, err error) (refundView, error) {
	if err == nil && view.State == contract.PaymentSold {
		err = problem(holdEnded, "%s made the sale of %s: there is no refund to settle; a sold unit comes back as a return", view.PaymentID, view.HoldID)
	}
	return view, err
}

// readRefund reads the Payment that a path names, as it is now.
func (d *Door) readRefund(ctx context.Context, id string) (refundView, error) {
	var run PaymentRun
	known := false
	if contract.ValidPaymentID(id) {
		var err error
		if run, known, err = d.directory.Payment(ctx, id); err != nil {
			return refundView{}, err
		}
	}
	if !known {
		return refundView{}, problem(unknownHold, "there is no payment %.60q that met no live hold; GET /v1/refunds lists them", id)
	}
	s, err := d.paymentOf(ctx, run)
	if err != nil {
		return refundView{}, fmt.Errorf("payment %s does not say what it is: %w", id, err)
	}
	if settled(s.State) && run.ClosedAt.IsZero() {
		// It closed between the two looks; a repeat must get the same answer.
		last, ok, err := d.directory.Payment(ctx, id)
		if err != nil {
			return refundView{}, err
		}
		if ok && last.RunID == run.RunID {
			run = last
		}
	}
	return viewRefund(run, s), nil
}

// lastPayment is the last run of a Payment and what it came to; the zero run
// when there is none.
func (d *Door) lastPayment(ctx context.Context, id string) (PaymentRun, contract.PaymentStatus, error) {
	run, known, err := d.directory.Payment(ctx, id)
	if err != nil || !known {
		return PaymentRun{}, contract.PaymentStatus{}, err
	}
	if !run.Completed {
		return run, contract.PaymentStatus{State: run.State}, nil
	}
	s, err := d.paymentOf(ctx, run)
	if err != nil {
		return run, s, fmt.Errorf("payment %s does not say what it was: %w", id, err)
	}
	return run, s, nil
}
