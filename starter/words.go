package starter

import (
	"fmt"
	"strings"
	"time"

	"holdfast/contract"
	"holdfast/redis"
)

// offerUntil is the deadline of an offer as shoppers see it. Until its text
// counts as sent the gate's deadline also holds sms.sent_grace, and the window
// then starts anew: the gate's own would move to an earlier instant, which is
// no promise. An offer that nobody was told of yet has the gate's, which is its
// greatest age. What counts is the gate's, for the offer's window may be of a policy
// that has changed since.
func (d *Door) offerUntil(h redis.Hold) time.Time {
	if h.State != contract.HoldOffered || h.ToldAt.IsZero() || !h.SentAt.IsZero() {
		return h.Deadline
	}
	// One that its greatest age cuts short holds less of sms.sent_grace, or none.
	if until := h.Deadline.Add(-d.cfg.SMS.SentGrace); until.After(h.ToldAt) {
		return until
	}
	return h.Deadline
}

// kept says how many units an offer or a hold has; wanted is what the entry
// asked for.
func kept(units, wanted int64) string {
	switch {
	case wanted > units:
		return fmt.Sprintf("%d of the %d you asked for", units, wanted)
	case units > 1:
		return fmt.Sprint(units)
	}
	return "one"
}

// capital begins a sentence.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// spoken is a duration in the words of a page, never more than it is: whole
// minutes, below two minutes in seconds.
func spoken(d time.Duration) string {
	switch {
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	case d/time.Second == 1:
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}

// ending says how a hold that made no sale ended. Who gets its units is left
// open: the next in line, or the shop when nobody waits.
func ending(h redis.Hold) string {
	switch h.State {
	case contract.HoldRefused:
		return "This hold could not be made: nothing was left."
	case contract.HoldReleased:
	default: // expired, lapsed
		return "The time is over. What was kept for you has gone back."
	}
	switch h.Reason {
	case contract.ReasonShopper:
		return "You gave it back."
	case contract.ReasonLeft:
		return "You have left the line. What was kept for you has gone back."
	case contract.ReasonPaymentFailed:
		return "The payment did not go through, so what was kept for you has gone back."
	case contract.ReasonCompensation:
		return "A part of it was not to be had any more, so all of it has gone back."
	}
	return "The shop has taken back what was kept for you."
}

// entryEnding says how an entry ended; h is its hold, nil when it had none or
// the record is gone.
func entryEnding(e redis.Entry, h *redis.Hold) string {
	switch e.State {
	case contract.EntryBought:
		return "Bought. It is yours."
	case contract.EntryLeft, contract.EntryLapsed:
		if h != nil && h.State.Ended() {
			return ending(*h)
		}
		if e.State == contract.EntryLeft {
			return "You have left the line."
		}
		return "Your turn has passed, and with it your place."
	case contract.EntryExpired:
		return "Your time in this line is over."
	}
	return "You are not in this line any more."
}
