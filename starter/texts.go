package starter

import (
	"context"
	"net/http"
	"slices"

	"holdfast/contract"
	"holdfast/redis"
)

// An offer whose text never arrived ends at its deadline as any other. Its lapse says so
// in the ledger, and this is the list of them.

// missedTextView is an offer that lapsed, and whose person had no text of it as far as
// anybody knows. ToldAt is when a text was handed to the provider last, SentAt when that
// said that it was sent.
type missedTextView struct {
	At      string `json:"at"` // of the lapse
	EntryID string `json:"entry_id"`
	HoldID  string `json:"hold_id"`
	Units   int64  `json:"units"`
	Why     string `json:"why"`
	ToldAt  string `json:"told_at,omitempty"`
	SentAt  string `json:"sent_at,omitempty"`
	Detail  string `json:"detail"`
}

// missedTextsView also counts all offers that lapsed in the span, to compare with. Whole
// is false when older lines of the ledger were not read.
type missedTextsView struct {
	page
	Lapsed int  `json:"lapsed"`
	Missed int  `json:"missed"`
	Whole  bool `json:"whole"`
}

// getTexts lists the newest first, since an instant or from the ledger's beginning.
func (d *Door) getTexts(w http.ResponseWriter, r *http.Request) error {
	q, err := readPage(r, 100)
	if err != nil {
		return err
	}
	since, err := queryInstant(r, "since")
	if err != nil {
		return err
	}
	sku, err := d.skus.bySKU(r.Context(), r.PathValue("sku"))
	if err != nil {
		return err
	}
	var v missedTextsView
	lapses, whole, err := d.gate.FindLines(r.Context(), sku, since, findLines, func(l redis.LedgerLine) bool { return l.Verb == "lapse" })
	if err != nil {
		return err
	}
	v.Lapsed, v.Whole = len(lapses), whole
	missed := slices.DeleteFunc(lapses, func(l redis.LedgerLine) bool {
		return l.Reason != contract.ReasonNotTold && l.Reason != contract.ReasonNotDelivered
	})
	v.Missed = len(missed)
	slices.Reverse(missed)
	v.Data, err = readAll(r.Context(), missed[:min(len(missed), q.limit)], func(ctx context.Context, l redis.LedgerLine) (*missedTextView, error) {
		out, _, err := d.gate.ReadHold(ctx, sku, l.RefID) // gone after its retention: its times are not known then
		text := missedText(l, out.Hold)
		return &text, err
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, v)
}

func missedText(l redis.LedgerLine, h redis.Hold) missedTextView {
	v := missedTextView{
		At: stamp(l.At), EntryID: l.OtherID, HoldID: l.RefID, Units: l.Units, Why: l.Reason, ToldAt: stampIf(h.ToldAt), SentAt: stampIf(h.SentAt),
		Detail: "the provider took the text, and never said that it arrived; the turn counts as missed",
	}
	switch {
	case l.Reason == contract.ReasonNotDelivered:
	case h.ToldAt.IsZero():
		v.Detail = "no text was tried in time; the place was kept"
	default:
		v.Detail = "the text was not taken in time, or was lost on its way; the place was kept"
	}
	return v
}
