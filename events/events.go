// Package events sends what happened here to an endpoint of the shop, signed by
// Standard Webhooks. It keeps nothing and repeats nothing: who sends an event
// owns it until Send answers nil.
package events

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"holdfast/contract"
)

// Event is one thing that happened. A repeat must carry the same fields: the
// shop knows it by its ID.
type Event struct {
	// ID is webhook-id, the same in every repeat: 1 to 200 of A-Z, a-z, 0-9,
	// "_" and "-". A dot would let signed fields run into each other.
	ID   string
	Type string    // as in "refund.requested"
	Time time.Time // when it happened
	// Sequence grows with the events of one thing; consumers sort by it, as
	// deliveries overtake each other.
	Sequence int64
	Data     any // becomes a JSON object
}

// MaxBody is the greatest body of an event, in bytes.
const MaxBody = 64 << 10

var (
	idPattern   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)
	typePattern = regexp.MustCompile(`^[a-z_]+(\.[a-z_]+)+$`)
)

// Body is what is sent: the same bytes for the same event.
func (e Event) Body() ([]byte, error) {
	switch {
	case !idPattern.MatchString(e.ID):
		return nil, fmt.Errorf("the id %.60q must be 1 to 200 letters, digits, _ and -", e.ID)
	case !typePattern.MatchString(e.Type):
		return nil, fmt.Errorf("the type %.60q must be words joined by dots, as in refund.requested", e.Type)
	case e.Time.IsZero():
		return nil, fmt.Errorf("the time is not set")
	}
	data, err := json.Marshal(e.Data)
	if err != nil {
		return nil, fmt.Errorf("the data cannot be written as JSON: %w", err)
	}
	if data[0] != '{' {
		return nil, fmt.Errorf("the data must be a JSON object, not %.20s", data)
	}
	raw, err := json.Marshal(struct {
		Type      string          `json:"type"`
		Timestamp string          `json:"timestamp"`
		Sequence  int64           `json:"sequence"`
		Data      json.RawMessage `json:"data"`
	}{e.Type, contract.Instant(e.Time), e.Sequence, data})
	if err != nil {
		return nil, err
	}
	if len(raw) > MaxBody {
		return nil, fmt.Errorf("its body has %d bytes, at most %d may be sent", len(raw), MaxBody)
	}
	return raw, nil
}
