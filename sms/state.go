package sms

import (
	"fmt"
	"net/url"
	"strconv"
)

// State is how far a text has come, in Twilio's words.
type State string

// States of a text. The last five are final.
const (
	StateAccepted    State = "accepted" // a messaging service looks for a sender
	StateScheduled   State = "scheduled"
	StateQueued      State = "queued"
	StateSending     State = "sending"
	StateSent        State = "sent"        // with the carrier
	StateDelivered   State = "delivered"   // on the handset
	StateRead        State = "read"        // channels that know, after delivered
	StateUndelivered State = "undelivered" // refused by the carrier
	StateFailed      State = "failed"      // never left Twilio
	StateCanceled    State = "canceled"
)

// ranks order the states: those of one rank exclude each other.
var ranks = map[State]int{
	"":             0, // nothing is known
	StateAccepted:  1,
	StateScheduled: 1,
	StateQueued:    2,
	StateSending:   3,
	StateSent:      4,

	StateDelivered:   5,
	StateUndelivered: 5,
	StateFailed:      5,
	StateCanceled:    5,
	StateRead:        5,
}

// Final says that nothing more is to come, but for a delivered text to be read.
func (s State) Final() bool { return ranks[s] == ranks[StateDelivered] }

// Lost says that a text will not arrive.
func (s State) Lost() bool {
	return s == StateUndelivered || s == StateFailed || s == StateCanceled
}

// Advance is the state after news of another one. Callbacks overtake each other,
// so a state only moves forward, a final one stays (the first word on a failure
// is the one with its code), and a word that nobody knows changes nothing.
func (s State) Advance(news State) State {
	switch {
	case s == StateDelivered && news == StateRead:
		return news
	case ranks[news] > ranks[s]:
		return news
	}
	return s
}

// StatusUpdate is what a status callback says of a text.
type StatusUpdate struct {
	TextID string
	State  State
	Code   int // the provider's, of a lost text; 0 when there is none
}

// ParseStatus reads the form of a status callback.
func ParseStatus(form url.Values) (StatusUpdate, error) {
	u := StatusUpdate{TextID: form.Get("MessageSid"), State: State(form.Get("MessageStatus"))}
	if u.TextID == "" {
		return u, fmt.Errorf("a status callback without MessageSid")
	}
	if _, known := ranks[u.State]; !known || u.State == "" {
		return u, fmt.Errorf("a status callback with MessageStatus %q, which is no state of a text", u.State)
	}
	if raw := form.Get("ErrorCode"); raw != "" {
		code, err := strconv.Atoi(raw)
		if err != nil {
			return u, fmt.Errorf("a status callback with ErrorCode %q, which is no number", raw)
		}
		u.Code = code
	}
	return u, nil
}
