package activities

import (
	"context"
	"net/http"
	"time"

	"go.temporal.io/sdk/activity"

	"holdfast/contract"
	"holdfast/sms"
)

// waitsMost is how often an entry is told of what keeps one text: a provider whose
// answer changes each time must not fill its history.
const waitsMost = 20

// soonAgain is how soon a second attempt comes that an entry need not hear of.
const soonAgain = 5 * time.Second

// waitsTold is what an entry was told, from attempt to attempt.
type waitsTold struct {
	Last  contract.TextWait `json:"last"`
	Times int               `json:"times"`
}

// waits tells the entry what keeps the text of its offer, once for each cause. The
// attempts themselves leave no trace in its history, however long they go on. What may
// pass at the second attempt, and that one soon, is not worth a word.
func (a *Texts) waits(ctx context.Context, t sms.Text, refusal *sms.Error) {
	if t.Cause != sms.CauseOffer || refusal.Class == sms.Later && activity.GetInfo(ctx).Attempt == 1 && refusal.RetryAfter <= soonAgain {
		return
	}
	wait := contract.TextWait{Why: contract.WhySenderDown, Until: refusal.Until}
	if refusal.Ours || refusal.Status == http.StatusTooManyRequests {
		wait.Why = contract.WhyRateLimited
	}
	var told waitsTold
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &told); err != nil {
			activity.GetLogger(ctx).Warn("what an entry was told of its text is not known", "entry", t.EntryID, "error", err)
		}
	}
	if told.Times > 0 && told.Last.Why == wait.Why && told.Last.Until.Equal(wait.Until) || told.Times >= waitsMost {
		return
	}
	if err := a.Entries.Signal(ctx, t.EntryID, contract.SignalTextWaits, wait); err != nil {
		activity.GetLogger(ctx).Warn("an entry does not learn that its text waits", "entry", t.EntryID, "why", wait.Why, "error", err)
		return
	}
	activity.RecordHeartbeat(ctx, waitsTold{Last: wait, Times: told.Times + 1})
}
