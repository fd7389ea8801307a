package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// beat is how often an activity that reads for long says that its worker lives. The
// time-out of its heartbeats is a few of these: Temporal's SDK holds most back.
const beat = 2 * time.Second

// beating says so until stopped, whatever the activity waits for.
func beating(ctx context.Context) (stop func()) {
	return beatingWith(ctx, func() { activity.RecordHeartbeat(ctx) })
}

// beatingWith has a heartbeat recorded until stopped, by an activity that says with it
// how far it has got.
func beatingWith(ctx context.Context, record func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(beat)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				record()
			}
		}
	}()
	return func() { cancel(); <-stopped }
}
