package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/config"
)

const healthTimeout = 5 * time.Second

// healthcheck is what a container asks of itself: the image has no other
// program that could.
func (a *app) healthcheck() *cobra.Command {
	services := map[string]func(*config.Config) string{
		"worker":  func(c *config.Config) string { return c.Worker.OpsAddr },
		"starter": func(c *config.Config) string { return c.HTTP.OpsAddr },
	}
	return &cobra.Command{
		Use: "healthcheck worker|starter", Short: "Ask the worker or the door of this machine whether it is ready (exit code 0 or 1)",
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: []string{"worker", "starter"},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.Load(a.file, a.set)
			if err != nil {
				return err
			}
			answer, err := askReady(cmd.Context(), services[args[0]](cfg))
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			_, err = fmt.Fprintln(a.std.Out, answer)
			return err
		},
	}
}

// askReady asks /readyz of a listener of this machine and answers what it says;
// an error when it is not ready.
func askReady(ctx context.Context, listens string) (string, error) {
	host, port, err := net.SplitHostPort(listens)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // one of all addresses
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return "", err
	}
	// A transport of its own: no proxy is between a process and itself.
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 4096))
	if err != nil {
		return "", err
	}
	body := strings.TrimSpace(string(raw))
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("not ready (%d): %s", res.StatusCode, body)
	}
	return body, nil
}
