package contract

import (
	"slices"
	"time"
)

// HoldStatus answers the query status of a Hold.
type HoldStatus struct {
	HoldID string    `json:"hold_id"`
	State  HoldState `json:"state"`
	Lines  []Line    `json:"lines"`
	// LineStates are those of a cart's lines, in their order, as their gates said last.
	LineStates []HoldState `json:"line_states,omitempty"`
	Customer   string      `json:"customer"`
	Person     string      `json:"person,omitempty"`
	EntryID    string      `json:"entry_id,omitempty"`
	Generation int64       `json:"generation,omitempty"`
	OrderRef   string      `json:"order_ref,omitempty"`
	Price      *Money      `json:"price,omitempty"`
	PaymentRef string      `json:"payment_ref,omitempty"`
	CreatedAt  time.Time   `json:"created_at"`
	ExpiresAt  time.Time   `json:"expires_at"`
	Extended   bool        `json:"extended"`
	EndedAt    *time.Time  `json:"ended_at,omitempty"`
	EndReason  string      `json:"end_reason,omitempty"`
	// SoldAt is when each line of a cart was sold, by the clocks of their gates. A hold
	// of one line was sold at EndedAt.
	SoldAt []time.Time `json:"sold_at,omitempty"`
}

// Of is the state of the line of a SKU: the hold's, unless it is of a cart whose lines do
// not agree. Its lines are sold one after the other, and it is held until all are.
func (s HoldStatus) Of(sku string) HoldState {
	i := slices.IndexFunc(s.Lines, func(l Line) bool { return l.SKU == sku })
	if i < 0 || i >= len(s.LineStates) || s.LineStates[i] == HoldSold {
		return s.State
	}
	return s.LineStates[i]
}
