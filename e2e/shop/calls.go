package shop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Stock is a SKU's counters.
type Stock struct {
	SKU        string    `json:"sku"`
	Title      string    `json:"title"`
	State      string    `json:"state"`
	OnHand     int64     `json:"on_hand"`
	Held       int64     `json:"held"`
	Offered    int64     `json:"offered"`
	Available  int64     `json:"available"`
	OpenToAll  int64     `json:"open_to_all"`
	Sold       int64     `json:"sold"`
	Returned   int64     `json:"returned"`
	Waiting    int64     `json:"waiting"`
	Shortfall  int64     `json:"shortfall"`
	Paused     bool      `json:"paused"`
	Generation int64     `json:"generation"`
	AsOf       time.Time `json:"as_of"`
}

// Line is a quantity of a SKU.
type Line struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// Refund is what becomes of money that made no sale.
type Refund struct {
	PaymentID  string `json:"payment_id"`
	PaymentRef string `json:"payment_ref"`
	State      string `json:"state"`
}

// Hold is a hold as the API shows it.
type Hold struct {
	HoldID     string     `json:"hold_id"`
	State      string     `json:"state"`
	Lines      []Line     `json:"lines"`
	Customer   string     `json:"customer"`
	OrderRef   string     `json:"order_ref"`
	EntryID    string     `json:"entry_id"`
	Generation int64      `json:"generation"`
	PaymentRef string     `json:"payment_ref"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  time.Time  `json:"expires_at"`
	Extended   bool       `json:"extended"`
	EndedAt    *time.Time `json:"ended_at"`
	EndReason  string     `json:"end_reason"`
	Refund     *Refund    `json:"refund"`
	Links      struct {
		Page     string `json:"page"`
		Checkout string `json:"checkout"`
	} `json:"links"`
	Now time.Time `json:"now"`
}

// Entry is a place in a line as the API shows it.
type Entry struct {
	EntryID  string `json:"entry_id"`
	SKU      string `json:"sku"`
	Title    string `json:"title"`
	State    string `json:"state"`
	Quantity int64  `json:"quantity"`
	Position int64  `json:"position"`
	Ahead    int64  `json:"ahead"`
	Offer    *struct {
		HoldID    string    `json:"hold_id"`
		ExpiresAt time.Time `json:"expires_at"`
	} `json:"offer"`
	HoldID    string    `json:"hold_id"`
	JoinedAt  time.Time `json:"joined_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Now       time.Time `json:"now"`
}

// LedgerLine is one line of a SKU's ledger as the API shows it.
type LedgerLine struct {
	At      time.Time `json:"at"`
	Verb    string    `json:"verb"`
	Kind    string    `json:"kind"`
	Units   int64     `json:"units"`
	RefID   string    `json:"ref_id"`
	Actor   string    `json:"actor"`
	Reason  string    `json:"reason"`
	OnHand  int64     `json:"on_hand"`
	Held    int64     `json:"held"`
	Offered int64     `json:"offered"`
	Sold    int64     `json:"sold"`
}

// Open opens a SKU without units.
func (s *Shop) Open(ctx context.Context, sku, title string) error {
	return s.into(ctx, nil, http.MethodPut, "/v1/stock/"+sku, map[string]string{
		"title":        title,
		"checkout_url": "https://shop.example/checkout?hold={hold_id}",
	})
}

// Restock adds units and returns when the door says that they were added.
func (s *Shop) Restock(ctx context.Context, sku string, units int64) error {
	out, err := s.Decided(ctx, map[string]any{"event_id": Token(), "sku": sku, "kind": "restock", "units": units})
	if err == nil && !out.Applied {
		err = fmt.Errorf("restock of %d × %s was not applied: %s", units, sku, out.Reason)
	}
	return err
}

// Decision is what became of a stock event, and the SKU after it.
type Decision struct {
	Applied bool   `json:"applied"`
	Reason  string `json:"reason"`
	Stock   Stock  `json:"stock"`
}

// Decided posts a stock event and returns what became of it. As long as the door
// has only written it down, it is posted again.
func (s *Shop) Decided(ctx context.Context, event map[string]any) (Decision, error) {
	var out Decision
	for {
		a, err := s.Inventory(ctx, event)
		if err != nil {
			return out, err
		}
		switch a.Status {
		case http.StatusAccepted:
			continue
		case http.StatusOK:
			return out, json.Unmarshal(a.Body, &out)
		}
		return out, fmt.Errorf("stock event %v: %s", event, a)
	}
}

// Inventory posts a signed event to the inventory webhook.
func (s *Shop) Inventory(ctx context.Context, event map[string]any) (Answer, error) {
	raw, err := json.Marshal(event)
	if err != nil {
		return Answer{}, err
	}
	return s.Call(ctx, http.MethodPost, "/v1/webhooks/inventory", raw, Sign(s.Secret, Token(), time.Now(), raw)...)
}

// Stock reads a SKU's counters.
func (s *Shop) Stock(ctx context.Context, sku string) (Stock, error) {
	var out Stock
	return out, s.into(ctx, &out, http.MethodGet, "/v1/stock/"+sku, nil)
}

// Ledger reads at most 200 lines of a SKU's ledger, oldest first.
func (s *Shop) Ledger(ctx context.Context, sku string) ([]LedgerLine, error) {
	var out struct {
		Data []LedgerLine `json:"data"`
	}
	return out.Data, s.into(ctx, &out, http.MethodGet, "/v1/stock/"+sku+"/ledger?limit=200", nil)
}

// Alarms reads what a SKU's statement complains of.
func (s *Shop) Alarms(ctx context.Context, sku string) ([]string, error) {
	var out struct {
		Alarms []string `json:"alarms"`
	}
	return out.Alarms, s.into(ctx, &out, http.MethodGet, "/v1/stock/"+sku+"/statement", nil)
}

// AskHold asks for one unit under an Idempotency-Key and returns whatever the
// door says.
func (s *Shop) AskHold(ctx context.Context, sku, customer, key string) (Answer, error) {
	return s.Call(ctx, http.MethodPost, "/v1/holds",
		map[string]any{"sku": sku, "quantity": 1, "customer": customer}, "Idempotency-Key", key)
}

// AskCart asks for one unit of each SKU, in the order given, under an
// Idempotency-Key and returns whatever the door says.
func (s *Shop) AskCart(ctx context.Context, skus []string, customer, key string) (Answer, error) {
	lines := make([]Line, len(skus))
	for i, sku := range skus {
		lines[i] = Line{SKU: sku, Quantity: 1}
	}
	return s.Call(ctx, http.MethodPost, "/v1/holds", map[string]any{"lines": lines, "customer": customer}, "Idempotency-Key", key)
}

// Cart takes one unit of each SKU for a customer; a refusal is an error.
func (s *Shop) Cart(ctx context.Context, skus []string, customer string) (Hold, error) {
	a, err := s.AskCart(ctx, skus, customer, Token())
	if err != nil {
		return Hold{}, err
	}
	if a.Status != http.StatusCreated {
		return Hold{}, fmt.Errorf("hold of %v for %s: %s", skus, customer, a)
	}
	return ParseHold(a)
}

// Hold takes one unit for a customer; a refusal is an error.
func (s *Shop) Hold(ctx context.Context, sku, customer string) (Hold, error) {
	a, err := s.AskHold(ctx, sku, customer, Token())
	if err != nil {
		return Hold{}, err
	}
	if a.Status != http.StatusCreated {
		return Hold{}, fmt.Errorf("hold of %s for %s: %s", sku, customer, a)
	}
	return ParseHold(a)
}

// ParseHold reads a hold out of an answer.
func ParseHold(a Answer) (Hold, error) {
	var out Hold
	if err := json.Unmarshal(a.Body, &out); err != nil {
		return out, fmt.Errorf("no hold in %s: %w", a, err)
	}
	return out, nil
}

// ReadHold reads a hold.
func (s *Shop) ReadHold(ctx context.Context, holdID string) (Hold, error) {
	var out Hold
	return out, s.into(ctx, &out, http.MethodGet, "/v1/holds/"+holdID, nil)
}

// Confirm tells the door that a payment succeeded and returns whatever it says.
func (s *Shop) Confirm(ctx context.Context, holdID, paymentRef string) (Answer, error) {
	return s.Call(ctx, http.MethodPost, "/v1/holds/"+holdID+"/confirm", map[string]any{"payment_ref": paymentRef})
}

// Declined tells the door that a card was declined for good.
func (s *Shop) Declined(ctx context.Context, holdID, paymentRef string) (Answer, error) {
	return s.Call(ctx, http.MethodPost, "/v1/holds/"+holdID+"/payment-failed",
		map[string]any{"payment_ref": paymentRef, "reason": "card_declined", "final": true})
}

// AskJoin asks for a place in the line and returns whatever the door says.
func (s *Shop) AskJoin(ctx context.Context, sku, phone string) (Answer, error) {
	return s.Call(ctx, http.MethodPost, "/v1/waitlist", map[string]any{"sku": sku, "phone": phone, "consent": true})
}

// Join takes a place in the line; a refusal is an error.
func (s *Shop) Join(ctx context.Context, sku, phone string) (Entry, error) {
	a, err := s.AskJoin(ctx, sku, phone)
	if err != nil {
		return Entry{}, err
	}
	if a.Status != http.StatusCreated {
		return Entry{}, fmt.Errorf("join of %s: %s", sku, a)
	}
	return ParseEntry(a)
}

// ParseEntry reads an entry out of an answer.
func ParseEntry(a Answer) (Entry, error) {
	var out Entry
	if err := json.Unmarshal(a.Body, &out); err != nil {
		return out, fmt.Errorf("no entry in %s: %w", a, err)
	}
	return out, nil
}

// ReadEntry reads a place in the line.
func (s *Shop) ReadEntry(ctx context.Context, entryID string) (Entry, error) {
	var out Entry
	return out, s.into(ctx, &out, http.MethodGet, "/v1/waitlist/"+entryID, nil)
}
