package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	goredis "github.com/redis/go-redis/v9"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"holdfast/contract"
)

func probeRedis(rdb *goredis.Client) func(context.Context, *process) error {
	return func(ctx context.Context, _ *process) error { return rdb.Ping(ctx).Err() }
}

func probeTemporal(c client.Client, namespace string) func(context.Context, *process) error {
	return func(ctx context.Context, p *process) error {
		if !p.lines.saidReady() {
			return errors.New("not serving yet")
		}
		_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
		return err
	}
}

// probeWorker asks Temporal who polls. The server remembers pollers for
// minutes, so only polls of this very process count.
func probeWorker(c client.Client) func(context.Context, *process) error {
	return func(ctx context.Context, p *process) error {
		for queue, kind := range map[string]enumspb.TaskQueueType{
			contract.TaskQueue:    enumspb.TASK_QUEUE_TYPE_WORKFLOW,
			contract.SMSTaskQueue: enumspb.TASK_QUEUE_TYPE_ACTIVITY,
		} {
			resp, err := c.DescribeTaskQueue(ctx, queue, kind)
			if err != nil {
				return err
			}
			if !polledSince(resp, p.started) {
				return fmt.Errorf("nobody polls the task queue %s", queue)
			}
		}
		return nil
	}
}

func polledSince(resp *workflowservice.DescribeTaskQueueResponse, t time.Time) bool {
	for _, poller := range resp.GetPollers() {
		if poller.GetLastAccessTime().AsTime().After(t) {
			return true
		}
	}
	return false
}

func probeDoor(url string) func(context.Context, *process) error {
	return func(ctx context.Context, _ *process) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("GET /healthz answers %s", resp.Status)
		}
		return nil
	}
}
