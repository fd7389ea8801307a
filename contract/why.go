package contract

import "time"

// Why is a reason why somebody in line has not been told of a unit. The words are
// part of the contract of the door and of the command line.
type Why string

// Reasons, of a SKU or of one entry.
const (
	WhyPaused      Why = "paused"       // the shop paused the SKU
	WhyEnded       Why = "ended"        // its sale has ended
	WhyClosed      Why = "closed"       // its gate checks itself
	WhyNoUnits     Why = "no-units"     // nothing is free
	WhyShortfall   Why = "shortfall"    // what is freed makes a shortfall good first
	WhyBeforeYou   Why = "before-you"   // what is free is for those before
	WhyParked      Why = "parked"       // missed a turn of this generation, or at the limit
	WhyQuietHours  Why = "quiet-hours"  // the text waits for the morning
	WhySenderDown  Why = "sender-down"  // the provider takes no texts of ours
	WhyRateLimited Why = "rate-limited" // the text waits for its turn or for the budget
	WhyOptedOut    Why = "opted-out"    // the person texted STOP
	WhyUnreachable Why = "unreachable"  // texts do not reach the number
	WhyNoWorkflow  Why = "no-workflow"  // the entry's workflow does not run or has not acknowledged
)

// TextWait says what keeps a text from being sent. Until is when that is looked at
// again, the zero time when nobody knows.
type TextWait struct {
	Why   Why       `json:"why"`
	Until time.Time `json:"until,omitzero"`
}
