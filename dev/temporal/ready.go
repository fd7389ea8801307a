package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// startTimeout bounds each wait of the start. It is long for a machine that is
// busy with a build.
const startTimeout = 60 * time.Second

// awaitNamespace returns when the frontend knows the namespace, and adds the
// search attributes that a namespace of an older start lacks.
func awaitNamespace(ctx context.Context, o options) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	conn, err := grpc.NewClient(hostPort(o.ip, o.port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	frontend, operator := workflowservice.NewWorkflowServiceClient(conn), operatorservice.NewOperatorServiceClient(conn)

	err = poll(ctx, func() error {
		_, err := frontend.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: o.namespace})
		return err
	})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", o.namespace, err)
	}
	known, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: o.namespace})
	if err != nil {
		return fmt.Errorf("list search attributes: %w", err)
	}
	missing := attributes{}
	for name, kind := range o.attributes {
		if had, ok := known.CustomAttributes[name]; !ok {
			missing[name] = kind
		} else if had != kind {
			return fmt.Errorf("search attribute %s is a %s in this store, not a %s: remove the folder to start over", name, had, kind)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: o.namespace, SearchAttributes: missing})
	if err != nil {
		return fmt.Errorf("add search attributes: %w", err)
	}
	return nil
}

// newUI starts the UI, which is reached through awaitPort.
func newUI(o options) *uiserver.Server {
	ui := uiserver.NewServer(server_options.WithConfigProvider(&uiconfig.Config{
		Host:                o.ip,
		Port:                o.uiPort,
		TemporalGRPCAddress: hostPort(o.ip, o.port),
		DefaultNamespace:    o.namespace,
		EnableUI:            true,
		HideLogs:            true,
		DisableNewsFetch:    true,
		CORS:                uiconfig.CORS{CookieInsecure: true},
		Codec:               uiconfig.Codec{Endpoint: o.uiCodec},
	}))
	go func() {
		// A failure to listen ends the process from within; a stop is no error.
		_ = ui.Start()
	}()
	return ui
}

func awaitPort(ctx context.Context, ip string, port int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return poll(ctx, func() error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", hostPort(ip, port))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// poll calls f until it succeeds. When ctx ends the last error of f is
// returned.
func poll(ctx context.Context, f func() error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// stopWith stops the server because of err.
func stopWith(s temporal.Server, err error) error { return errors.Join(err, s.Stop()) }
