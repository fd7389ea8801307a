package activities

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// An attempt that fails because something is away is tried again until it is back:
// thousands of errors in the log would bury what needs a person. Temporal's SDK logs
// every failed attempt as an error unless it is benign, so that is what these are;
// they stand in the UI all the same.

// passing are the options of a failure that passes by itself.
func passing(cause error) temporal.ApplicationErrorOptions {
	return temporal.ApplicationErrorOptions{Cause: cause, Category: temporal.ApplicationErrorCategoryBenign}
}

// attempt is which one of an activity's attempts this is, from 1.
func attempt(ctx context.Context) int32 {
	if !activity.IsActivity(ctx) {
		return 1
	}
	return max(1, activity.GetInfo(ctx).Attempt)
}

// worthALine says whether an attempt that failed is told in the log: the first one,
// and then each time that there were twice as many.
func worthALine(attempt int32) bool { return attempt&(attempt-1) == 0 }
