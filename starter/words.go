package starter

import (
	"html/template"
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

// told is how something ended: a heading, empty for one that only says what is
// gone, and a sentence.
type told struct {
	heading, text template.HTML
}

// ending says how a hold that made no sale ended. Who gets its units is left
// open: the next in line, or the shop when nobody waits.
func (w *words) ending(h redis.Hold) told {
	key := "shop"
	switch {
	case h.State == contract.HoldRefused:
		key = "refused"
	case h.State != contract.HoldReleased: // expired, lapsed
		return told{"", w.say("end_over")}
	case h.Reason == contract.ReasonShopper:
		key = "shopper"
	case h.Reason == contract.ReasonLeft:
		return told{w.say("end_left_heading"), w.say("end_left_offer")}
	case h.Reason == contract.ReasonPaymentFailed:
		key = "failed"
	case h.Reason == contract.ReasonCompensation:
		key = "cart"
	}
	return told{w.say("end_" + key + "_heading"), w.say("end_" + key)}
}

// entryEnding says how an entry ended; h is its hold, nil when it had none or
// the record is gone.
func (w *words) entryEnding(e redis.Entry, h *redis.Hold) told {
	key := "removed"
	switch e.State {
	case contract.EntryLeft, contract.EntryLapsed:
		if h != nil && h.State.Ended() && h.State != contract.HoldSold {
			return w.ending(*h)
		}
		key = string(e.State)
	case contract.EntryExpired, contract.EntryOptedOut, contract.EntryUnreachable:
		key = string(e.State)
	}
	return told{w.say("end_" + key + "_heading"), w.say("end_" + key)}
}

// Problems that have words of their own for shoppers; every other one says that
// it did not work.
var problemWords = map[string]string{
	unknownSKU: "unknown_sku", unknownLink: "unknown_link", unknownEntry: "unknown_page", unknownHold: "unknown_page", unknownPath: "unknown_page",
	paused: "paused", saleEnded: "ended", unavailable: "unavailable", "opted-out": "opted_out", limitReached: "at_limit",
	soldOut: "end_refused", justGone: "end_refused", reservedForLine: "end_refused",
}

// problemCard says a problem in a shopper's words. from is the page to go on from;
// one that nobody knows says nothing of its address.
func (w *words) problemCard(p *Problem, from string) card {
	key, ok := problemWords[p.Code]
	switch {
	case p.Code == tooManyRequests && p.retryAfter > shedFor:
		key = "limit"
	case p.Code == tooManyRequests:
		key = "crowd"
	case !ok:
		key = "problem"
	}
	c := card{Kind: "problem-" + key, Mood: moodOver, Heading: w.say(key + "_heading"), Says: says(w.say(key))}
	switch key {
	case "unavailable":
		c.Mood, c.Again = moodWait, max(againSoon, int(p.retryAfter/time.Second))
		fallthrough
	case "crowd", "limit", "at_limit", "paused", "opted_out", "problem":
		c.from, c.Main = from, &action{Label: w.say("retry"), URL: from}
	}
	return c
}
