package starter

import (
	"context"
	"crypto/rand"
	"fmt"

	"holdfast/contract"
	"holdfast/redis"
)

// textCopies is how often the same word on a text is handed to its entry. One is
// enough; a copy may be lost between here and Temporal, and whoever calls back again
// and again must not fill the entry's history.
const textCopies = 3

// isNews says whether a word on an entry's text is still to be handed on. When Redis
// does not answer it is: a word lost is worse than one too many.
func (d *Door) isNews(ctx context.Context, entry string, s contract.TextStatus) bool {
	mine := rand.Text()
	for i := range textCopies {
		got, err := d.gate.ClaimKey(ctx, fmt.Sprintf("text:%s:%d", digest(entry, s.HoldID, s.Status), i), redis.Claim{BodyHash: mine}, claimKeep)
		if err != nil || got.BodyHash == mine {
			return true
		}
	}
	return false
}
