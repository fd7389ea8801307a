package starter

import (
	"fmt"
	"time"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

// The sentences of why: what is the matter, and what to do about it. They are for a
// tired person, and no contract; the word is.

func isClosed(sku string) reasonView {
	return reasonView{
		Why: contract.WhyClosed, Detail: "the gate of " + sku + " checks itself, after a restart or a loss of its store",
		Do: "wait a minute: it opens by itself; if it does not, docs/runbook.md, HoldfastGateClosed",
	}
}

func isPaused(sku string) reasonView {
	return reasonView{
		Why: contract.WhyPaused, Detail: "the shop paused the SKU",
		Do: "holdfast resume " + sku,
	}
}

func hasEnded() reasonView {
	return reasonView{
		Why: contract.WhyEnded, Detail: "the sale has ended; who was told before may still press",
		Do: "nothing, or let the sale end later",
	}
}

func noUnits(c redis.Counters) reasonView {
	return reasonView{
		Why: contract.WhyNoUnits, Detail: fmt.Sprintf("nothing is free: %d on hand, %d held, %d offered", c.OnHand, c.Held, c.Offered),
		Do: "restock, or wait until a hold or an offer ends",
	}
}

func isShort(units int64) reasonView {
	return reasonView{
		Why: contract.WhyShortfall, Detail: countOf(units, "unit", "units") + " too many promised; what is freed makes that good first",
		Do: "count the shelf, then restock or correct",
	}
}

func beforeYou(ahead int64) reasonView {
	return reasonView{
		Why: contract.WhyBeforeYou, Detail: countOf(ahead, "person is", "people are") + " before, and what is free is theirs",
		Do: "nothing: first come, first served",
	}
}

func isParked(entryID string, last *redis.Hold) reasonView {
	r := reasonView{
		Why: contract.WhyParked, EntryID: entryID, Detail: "it missed its turn of this restock, and keeps its place",
		Do: "nothing: the next restock brings it back",
	}
	if last != nil && last.Reason == contract.ReasonNotTold {
		r.Detail = "its turn of this restock went by before a text could be sent; it keeps its place, and nothing counts as missed"
	}
	return r
}

func atLimit(entryID string, limit int64) reasonView {
	return reasonView{
		Why: contract.WhyParked, EntryID: entryID, Detail: "its person has as much as one may have: " + countOf(limit, "unit", "units"),
		Do: "nothing until a hold of theirs ends, or raise the limit",
	}
}

func someParked(n int64, first string) reasonView {
	return reasonView{
		Why: contract.WhyParked, EntryID: first, Detail: countOf(n, "person has", "people have") + " had a turn of this restock, or as much as one may have; this is the first",
		Do: "nothing: they keep their places, and the next restock brings them back",
	}
}

// textWaits also says when the unit goes on before the text can be sent.
func textWaits(entryID string, w contract.TextWait, passes *time.Time) reasonView {
	r := reasonView{Why: w.Why, EntryID: entryID, Until: stampIf(w.Until)}
	switch w.Why {
	case contract.WhyQuietHours:
		r.Detail, r.Do = "the text waits for the end of the shop's quiet hours", "nothing: it goes out then, and the window runs from it"
		if passes != nil {
			r.Do = "nothing: quiet.max_wait passes the unit on at " + stamp(*passes) + ", and the place is kept"
		}
	case contract.WhyRateLimited:
		r.Detail, r.Do = "the text waits for its turn, or for tomorrow's budget", "nothing, or raise sms.segments_per_second or sms.segments_a_day"
	default:
		r.Detail, r.Do = "the provider takes no texts of ours", "see the worker's log, then the account at the provider; texts go on by themselves"
	}
	return r
}

// inQueue is a text that no worker has had in hand.
func inQueue(entryID string, q TextQueue, c config.SMS) reasonView {
	r := reasonView{
		Why: contract.WhyRateLimited, EntryID: entryID, Detail: "the text waits for its turn in the queue of texts",
		Do: "nothing, or raise sms.segments_per_second to what the sender may",
	}
	if q.Waiting > 0 {
		r.Detail += ", with some " + countOf(q.Waiting, "text", "texts")
	}
	if c.Provider == "twilio" { // nothing bounds another
		r.Detail += fmt.Sprintf("; at most %g segments go out a second", c.SegmentsPerSecond)
	}
	return r
}

func nobodySends(entryID string) reasonView {
	return reasonView{
		Why: contract.WhySenderDown, EntryID: entryID, Detail: "no worker takes texts from their queue",
		Do: "see that a worker runs, and what its /readyz says of texts; texts go on by themselves",
	}
}

func noAnswer(entryID string) reasonView {
	return reasonView{
		Why: contract.WhySenderDown, EntryID: entryID, Detail: "the text was handed to the provider, which has not answered yet",
		Do: "see the worker's log, then the provider; it is tried again by itself, and never sent twice",
	}
}

func textedStop(at time.Time) reasonView {
	return reasonView{
		Why: contract.WhyOptedOut, Detail: "the person texted STOP; the place ended at " + stamp(at),
		Do: "nothing: only they can take that back, by texting START",
	}
}

func unreachable(at time.Time) reasonView {
	return reasonView{
		Why: contract.WhyUnreachable, Detail: "texts do not reach the number; the place ended at " + stamp(at),
		Do: "nothing: they can join again with a number that takes texts",
	}
}

// noWorkflow is about one entry; lacks is what its workflow does not do.
func noWorkflow(entryID, lacks string) reasonView {
	return reasonView{
		Why: contract.WhyNoWorkflow, EntryID: entryID, Detail: "its workflow " + lacks,
		Do: "see that workers run and Temporal answers; if they do, docs/waitlist.md, \"no-workflow\"",
	}
}

func noTemporal() reasonView {
	return reasonView{
		Why: contract.WhyNoWorkflow, Detail: "Temporal does not answer: nobody can be told",
		Do: "see that Temporal runs; texts go on by themselves",
	}
}

func waits(n int64) string { return countOf(n, "person waits", "people wait") }

func countOf(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
