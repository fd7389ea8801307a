package starter

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/launch"
)

const retryTimeout = 8 * time.Second // for the provider's answer, less than the command waits

// postRetry has the payment provider asked once more to pay a payment back.
func (d *Door) postRetry(w http.ResponseWriter, r *http.Request) error {
	f, err := readObject(w, r, true)
	if err != nil {
		return err
	}
	if err := f.done(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 2*retryTimeout)
	defer cancel()
	id := r.PathValue("payment_id")
	view, err := d.readRefund(ctx, id)
	if err != nil || settled(view.State) {
		return answerRefund(w, http.StatusOK, view, err)
	}
	status := http.StatusOK
	switch answered, err := d.retryRefund(ctx, id); {
	case errors.Is(err, launch.ErrNoOwner):
		view, err = d.settleClosed(ctx, id)
		return answerRefund(w, status, view, err)
	case err != nil:
		return err
	case !answered:
		status = http.StatusAccepted
	}
	view, err = d.readRefund(ctx, id)
	return answerRefund(w, status, view, err)
}

// retryRefund answers false when the provider was asked and is silent yet.
func (d *Door) retryRefund(ctx context.Context, id string) (answered bool, err error) {
	asked, cancel := context.WithTimeout(ctx, retryTimeout)
	defer cancel()
	_, answered, err = d.launcher.RetryRefund(asked, id, contract.RefundRetry{Actor: callerOf(ctx)})
	var refused *temporal.ApplicationError
	if errors.As(err, &refused) { // its validator: nothing was asked
		return false, problem(validationFailed, "%s", refused.Message())
	}
	return answered, err
}

// answerRefund answers a Payment; one that made the sale has no refund.
func answerRefund(w http.ResponseWriter, status int, view refundView, err error) error {
	if view, err = settledView(view, err); err != nil {
		return err
	}
	return writeJSON(w, status, view)
}
