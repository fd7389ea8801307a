package activities

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"holdfast/contract"
	"holdfast/redis"
)

// slowGate is read for as long as a test wants.
type slowGate struct {
	CheckGate
	until <-chan struct{}
}

func (slowGate) Snapshot(context.Context, string) (redis.Counters, contract.About, error) {
	return redis.Counters{}, contract.About{}, &redis.ClosedError{SKU: "CHAIR"}
}

func (g slowGate) Inspect(ctx context.Context, _ string) (redis.Inspection, error) {
	select {
	case <-g.until:
		return redis.Inspection{}, errors.New("read to its end")
	case <-ctx.Done():
		return redis.Inspection{}, ctx.Err()
	}
}

// A SKU's records may take longer to read than Temporal waits for a word of the
// worker, and a worker that died must not keep the SKU closed for as long as that.
func TestTheCheckOfAGateBeatsWhileItReads(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	beats := make(chan struct{})
	var once bool
	env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) {
		if !once {
			once = true
			close(beats)
		}
	})
	check := &Reconciles{Gate: slowGate{until: beats}}
	env.RegisterActivity(check)
	_, err := env.ExecuteActivity(check.CheckAndOpen, SKURef{SKU: "CHAIR"})
	require.ErrorContains(t, err, "read to its end")
}
