package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"holdfast/contract"
)

// whyUnknown says what kept an answer back within its time, and what to do. silent names
// the part behind the door that does not answer, if one is known.
func whyUnknown(err error, silent string, within time.Duration) string {
	var away *url.Error
	switch {
	case silent != "":
		return silent
	case errors.As(err, &away) && !away.Timeout():
		return fmt.Sprintf("the door does not answer (%s): see whether it runs, and what HOLDFAST_URL says", away.Err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the door did not answer in %s: see its log, and whether Redis and Temporal answer it (/readyz)", within)
	}
	return oneLine(err)
}

// attentionAnswer is what the door says that no list shows.
type attentionAnswer struct {
	Data     []attentionLook `json:"data"`
	Redis    string          `json:"redis"`
	Temporal string          `json:"temporal"`
}

type attentionLook struct {
	Kind  string `json:"kind"`
	Grave bool   `json:"grave"`
	SKU   string `json:"sku"`
	ID    string `json:"id"`
	Says  string `json:"says"`
	Do    string `json:"do"`
}

func readAttention(ctx context.Context, d *door) (v attentionAnswer, err error) {
	got, err := d.get(ctx, "/v1/attention")
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(got.body, &v); err != nil || v.Data == nil {
		return attentionAnswer{}, fmt.Errorf("the door's answer is no list of what to look at: %.200q", got.body)
	}
	return v, nil
}

func (attentionAnswer) silent(part, state string) string {
	if state != "unavailable" {
		return ""
	}
	return part + " does not answer the door"
}

func (o *overview) look(l attentionLook) {
	exit, who := statusLook, ""
	if l.Grave {
		exit = statusGrave
	}
	switch {
	case l.ID != "":
		who = l.ID + " "
	case l.SKU != "":
		who = l.SKU + ": "
	}
	o.attend(exit, "%s%s; %s", who, l.Says, l.Do)
}

func (o *overview) refunds() {
	for _, row := range o.Refunds {
		r, err := readRefund(row)
		switch {
		case err != nil:
			o.attend(statusGrave, "%s", oneLine(err))
		case r.State == contract.PaymentParked:
			o.attend(statusLook, "%s is parked (%s): find out whose money it is, then holdfast refunds settle", r.PaymentID, r.Cause)
		case r.ByHand != "":
			o.attend(statusLook, "%s: only a person can pay it back: %s", r.PaymentID, r.ByHand)
		case r.ClosedAt != "":
			o.attend(statusLook, "%s was ended by hand with the money still owed: confirm its payment again", r.PaymentID)
		}
	}
}
