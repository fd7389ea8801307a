package starter

import (
	"context"
	"time"
)

const (
	// workerWait is for what a workflow must do before the door can answer. A task that
	// a worker had just been given when it went is given to another after ten seconds,
	// Temporal's default: the door waits for that, and less than the command line does.
	workerWait = 13 * time.Second

	// tellWait is for what an operator told a workflow to show. It is shorter than
	// updateTimeout, which bounds the whole call.
	tellWait = 3 * time.Second

	lookSoon = 25 * time.Millisecond
	lookLate = 400 * time.Millisecond
)

// watch looks until it is done, or until end, which is no error: what the last look saw
// counts. It looks once in any case. The looks become rare: with all workers away
// everybody waits, and Redis has others to serve.
func watch(ctx context.Context, end time.Time, look func() (done bool, err error)) error {
	for wait := lookSoon; ; wait = min(wait*3/2, lookLate) {
		if done, err := look(); done || err != nil {
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if err := pause(ctx, min(wait, left)); err != nil {
			return err
		}
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
