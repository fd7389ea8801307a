// Package sms sends texts: one small interface, the Twilio and the console
// sender behind it, the wording of the texts and how many segments they cost.
package sms

import (
	"context"
	"fmt"
	"time"
)

// Causes of a text. There is at most one text a cause.
const (
	CauseJoined = "joined"
	CauseOffer  = "offer"
)

// Text is one text to one person.
type Text struct {
	To   string // E.164
	Body string
	// Link stands in the body, and in no other text's.
	Link    string
	Cause   string
	EntryID string
	HoldID  string // offers only
	// Validity is how long the provider may go on trying; 0 leaves it to the
	// provider.
	Validity time.Duration
}

// Receipt is a provider's acceptance. Sent says that the text has been sent, Arrived that
// it has arrived; both also when acceptance is all there will be.
type Receipt struct {
	ID            string
	Sent, Arrived bool
}

// Sender hands texts to a provider. Errors are *Error; another one is a bug.
type Sender interface {
	Send(ctx context.Context, t Text) (Receipt, error)
	// Find says whether the provider has accepted t since then: asked before a
	// second send, when the first one's outcome is not known.
	Find(ctx context.Context, t Text, since time.Time) (Receipt, bool, error)
}

// Class says what a failed text means for the next one.
type Class string

// Classes of failure.
const (
	Never   Class = "never"    // this number will never get a text: pass the unit on
	Later   Class = "later"    // the provider is busy, or its answer was lost: try again
	StopAll Class = "stop-all" // nothing can be sent until a person has looked: alarm
)

// Error is why a text was not accepted. It never shows a phone number. Code is
// the provider's, Status HTTP's; 0 when there was none. MaybeSent says that the
// answer was lost: the text may be on its way.
type Error struct {
	Class     Class
	Code      int
	Status    int
	Reason    string
	MaybeSent bool
	// RetryAfter is how long the provider asks us to wait; 0 when it does not.
	RetryAfter time.Duration
	// Ours says that a limit of our own holds the text back, not the provider;
	// Until is when it ends, the zero time when that is not known.
	Ours  bool
	Until time.Time
}

// OptedOut says that the person has texted STOP.
func (e *Error) OptedOut() bool { return OptedOut(e.Code) }

func (e *Error) Error() string {
	s := fmt.Sprintf("text not accepted (%s): %s", e.Class, e.Reason)
	if e.Status != 0 {
		s += fmt.Sprintf(" [HTTP %d]", e.Status)
	}
	if e.Code != 0 {
		s += fmt.Sprintf(" [code %d, see https://www.twilio.com/docs/errors/%d]", e.Code, e.Code)
	}
	return s
}
