package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"

	"holdfast/codec"
	"holdfast/config"
)

const (
	// How long a start waits for Temporal: a stack that comes up together needs
	// some seconds, an address that is wrong should be named soon.
	temporalWait = 30 * time.Second
	temporalPoll = 500 * time.Millisecond
)

// ClientOption changes what a Temporal client is made with.
type ClientOption func(*client.Options)

// Metered sends the client's metrics, and those of a worker over it, to h.
func Metered(h client.MetricsHandler) ClientOption {
	return func(o *client.Options) { o.MetricsHandler = h }
}

// Temporal dials Temporal and checks that the namespace exists. The standard
// TEMPORAL_* variables and profile file count (TLS, API key and the rest);
// temporal.address and temporal.namespace win over them when set. It waits at
// most 30 s, and less when ctx ends, and then names the address.
func Temporal(ctx context.Context, cfg *config.Config, log *slog.Logger, more ...ClientOption) (client.Client, error) {
	opts, err := clientOptions(cfg, log)
	if err != nil {
		return nil, err
	}
	for _, change := range more {
		change(&opts)
	}
	ctx, cancel := context.WithTimeout(ctx, temporalWait)
	defer cancel()
	var why error
	for {
		c, err := dial(ctx, opts)
		if err == nil {
			return c, nil
		}
		if why == nil {
			log.Warn("waiting for Temporal", "address", opts.HostPort, "namespace", opts.Namespace, "error", err)
		}
		if why == nil || ctx.Err() == nil { // an attempt that the end of the wait cut off says nothing new
			why = err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("temporal at %s, namespace %q: %w; is it running, and are temporal.address and TEMPORAL_ADDRESS right?",
				opts.HostPort, opts.Namespace, why)
		case <-time.After(temporalPoll):
		}
	}
}

// LazyTemporal returns a client that connects at its first call, by the same
// settings. The door uses it: joins and pages go on while Temporal is away, also
// in a door that starts meanwhile.
func LazyTemporal(cfg *config.Config, log *slog.Logger, more ...ClientOption) (client.Client, error) {
	opts, err := clientOptions(cfg, log)
	if err != nil {
		return nil, err
	}
	for _, change := range more {
		change(&opts)
	}
	return client.NewLazyClient(opts)
}

// Codec makes the codec of secrets.payload_keys. Without a key it encrypts
// nothing, and still knows what was encrypted once.
func Codec(cfg *config.Config) (*codec.Codec, error) {
	ring := make([]codec.Key, len(cfg.Secrets.PayloadKeys))
	for i, item := range cfg.Secrets.PayloadKeys {
		id, secret, ok := config.PayloadKey(item)
		if !ok {
			return nil, fmt.Errorf("secrets.payload_keys: item %d is not an id, a colon and a key in base64", i+1)
		}
		ring[i] = codec.Key{ID: id, Secret: secret}
	}
	c, err := codec.New(ring...)
	if err != nil {
		return nil, fmt.Errorf("secrets.payload_keys: %w", err)
	}
	return c, nil
}

// clientOptions are those of every client of ours: none may write in clear what
// another encrypts.
func clientOptions(cfg *config.Config, log *slog.Logger) (client.Options, error) {
	opts, err := temporalOptions(cfg)
	if err != nil {
		return opts, err
	}
	payloads, err := Codec(cfg)
	if err != nil {
		return opts, err
	}
	opts.Logger = sdklog.NewStructuredLogger(log)
	opts.DataConverter, opts.FailureConverter = payloads.DataConverter(), payloads.FailureConverter()
	opts.Interceptors = append(opts.Interceptors, payloads.Signals())
	return opts, nil
}

func dial(ctx context.Context, opts client.Options) (client.Client, error) {
	c, err := client.DialContext(ctx, opts)
	if err != nil {
		return nil, err
	}
	_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: opts.Namespace})
	if err == nil {
		return c, nil
	}
	c.Close()
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) {
		return nil, fmt.Errorf("the namespace does not exist: create it with `temporal operator namespace create --namespace %s`", opts.Namespace)
	}
	return nil, err
}

// temporalOptions merges the defaults, the TEMPORAL_* settings and cfg.
func temporalOptions(cfg *config.Config) (client.Options, error) {
	opts, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{})
	if err != nil {
		return opts, fmt.Errorf("the TEMPORAL_* variables or their profile file: %w", err)
	}
	if cfg.Temporal.Address != "" {
		opts.HostPort = cfg.Temporal.Address
	}
	if cfg.Temporal.Namespace != "" {
		opts.Namespace = cfg.Temporal.Namespace
	}
	if opts.HostPort == "" {
		opts.HostPort = "127.0.0.1:7233"
	}
	if opts.Namespace == "" {
		opts.Namespace = client.DefaultNamespace
	}
	return opts, nil
}
