package worker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/config"
	"holdfast/contract"
	"holdfast/keys"
	"holdfast/launch"
	"holdfast/payment"
	"holdfast/redis"
	"holdfast/sms"
	"holdfast/workflows"
)

func version(build string) *config.Config {
	return &config.Config{Worker: config.Worker{Deployment: "shop", BuildID: build}}
}

func TestAWorkerWithoutABuildIDIsUnversioned(t *testing.T) {
	require.Zero(t, deploymentOptions(version("")))
	require.Equal(t, worker.DeploymentOptions{
		UseVersioning: true, Version: worker.WorkerDeploymentVersion{DeploymentName: "shop", BuildID: "v2"},
	}, deploymentOptions(version("v2")))
}

// behaviors notes what a registry is told of open runs.
type behaviors map[string]workflow.VersioningBehavior

func (b behaviors) RegisterWorkflowWithOptions(_ any, options workflow.RegisterOptions) {
	b[options.Name] = options.VersioningBehavior
}

// The SDK refuses a versioned worker with a workflow that does not say what
// becomes of its open runs.
func TestEveryWorkflowSaysWhatBecomesOfItsOpenRuns(t *testing.T) {
	told := behaviors{}
	workflows.Register(told)
	require.NotEmpty(t, told)
	for name, open := range told {
		want := workflow.VersioningBehaviorAutoUpgrade
		if name == contract.HoldWorkflow || name == contract.PaymentWorkflow {
			want = workflow.VersioningBehaviorPinned
		}
		require.Equal(t, want, open, name)
	}

	c, err := client.NewLazyClient(client.Options{})
	require.NoError(t, err)
	defer c.Close()
	require.NotPanics(t, func() {
		newWorkers(c, version("v2"), redis.New(nil, redis.Options{}), launch.New(c), &keys.Ring{}, &sms.Console{}, &sms.Words{}, activities.QuietHours{}, payment.None(), nil, nil)
	})
}

// slowRoutes is a Temporal that knows the deployment only when asked again.
type slowRoutes struct {
	failures int
	routes   client.WorkerDeploymentRoutingConfig
}

func (s *slowRoutes) Describe(context.Context, client.WorkerDeploymentDescribeOptions) (client.WorkerDeploymentDescribeResponse, error) {
	if s.failures > 0 {
		s.failures--
		return client.WorkerDeploymentDescribeResponse{}, errors.New("no such deployment")
	}
	return client.WorkerDeploymentDescribeResponse{Info: client.WorkerDeploymentInfo{RoutingConfig: s.routes}}, nil
}

func TestAVersionWithoutWorkNamesTheCommand(t *testing.T) {
	v1, v2 := &worker.WorkerDeploymentVersion{DeploymentName: "shop", BuildID: "v1"}, &worker.WorkerDeploymentVersion{DeploymentName: "shop", BuildID: "v2"}
	for name, c := range map[string]struct {
		routes client.WorkerDeploymentRoutingConfig
		want   string
	}{
		"current":          {client.WorkerDeploymentRoutingConfig{CurrentVersion: v2}, "level=INFO msg=\"this version is current"},
		"ramping":          {client.WorkerDeploymentRoutingConfig{CurrentVersion: v1, RampingVersion: v2, RampingVersionPercentage: 5}, "percent=5"},
		"another":          {client.WorkerDeploymentRoutingConfig{CurrentVersion: v1}, "temporal worker deployment set-current-version --namespace ns --deployment-name shop --build-id v2"},
		"none was current": {client.WorkerDeploymentRoutingConfig{}, "level=WARN"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				began := time.Now()
				sayVersion(t.Context(), &slowRoutes{failures: 2, routes: c.routes}, version("v2"), "ns", slog.New(slog.NewTextHandler(&out, nil)))
				require.Contains(t, out.String(), c.want)
				require.Equal(t, 2*versionRetry, time.Since(began))
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sayVersion(ctx, &slowRoutes{failures: 1}, version("v2"), "ns", slog.New(slog.DiscardHandler))
}
