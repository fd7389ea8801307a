package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"holdfast/config"
)

// deploymentOptions make this worker a version of its deployment, when it has a
// build id. Each workflow says itself what becomes of its open runs.
func deploymentOptions(cfg *config.Config) worker.DeploymentOptions {
	if cfg.Worker.BuildID == "" {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{
		UseVersioning: true,
		Version:       worker.WorkerDeploymentVersion{DeploymentName: cfg.Worker.Deployment, BuildID: cfg.Worker.BuildID},
	}
}

// deployment tells how Temporal routes work to the versions of a worker.
type deployment interface {
	Describe(ctx context.Context, options client.WorkerDeploymentDescribeOptions) (client.WorkerDeploymentDescribeResponse, error)
}

// versionRetry is the pause before Temporal is asked again: it knows a version
// some moments after its worker has begun to poll.
const versionRetry = time.Second

// sayVersion logs what work this version gets, and when it gets no new work the
// command that changes it: a worker that idles by mistake looks like one that
// has nothing to do.
func sayVersion(ctx context.Context, d deployment, cfg *config.Config, namespace string, log *slog.Logger) {
	for {
		desc, err := d.Describe(ctx, client.WorkerDeploymentDescribeOptions{})
		if err == nil {
			routes := desc.Info.RoutingConfig
			v := worker.WorkerDeploymentVersion{DeploymentName: cfg.Worker.Deployment, BuildID: cfg.Worker.BuildID}
			switch {
			case routes.CurrentVersion != nil && *routes.CurrentVersion == v:
				log.Info("this version is current: it gets all new work", "deployment", v.DeploymentName, "build_id", v.BuildID)
			case routes.RampingVersion != nil && *routes.RampingVersion == v:
				log.Info("this version is ramping: it gets a part of the new work", "deployment", v.DeploymentName, "build_id", v.BuildID, "percent", routes.RampingVersionPercentage)
			default:
				log.Warn("this version gets no new work until it is made current", "deployment", v.DeploymentName, "build_id", v.BuildID, "command",
					fmt.Sprintf("temporal worker deployment set-current-version --namespace %s --deployment-name %s --build-id %s", namespace, v.DeploymentName, v.BuildID))
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(versionRetry):
		}
	}
}
