package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"holdfast/config"
)

// SetUp makes what the worker wants to find in Temporal.
type SetUp func(ctx context.Context, cfg *config.Config, retention time.Duration, log *slog.Logger) error

const (
	leastRetentionDays, mostRetentionDays = 1, 3650
	defaultRetentionDays                  = 30
)

func (a *app) setup() *cobra.Command {
	var days int
	cmd := &cobra.Command{
		Use: "setup", Short: "Make the namespace and the search attributes in Temporal, unless they are there", Args: cobra.NoArgs,
		Long: `Make the namespace and the search attributes in Temporal, unless they are there.

May be run as often as you like: what is there stays as it is. It waits up to
two minutes for a Temporal that is still starting. Temporal Cloud makes its
namespaces elsewhere; there, make both with its own tools.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < leastRetentionDays || days > mostRetentionDays {
				return usagef("--retention-days is %d, it must be %d to %d", days, leastRetentionDays, mostRetentionDays)
			}
			cfg, err := config.Load(a.file, a.set)
			if err != nil {
				return err
			}
			return a.services.SetUp(cmd.Context(), cfg, time.Duration(days)*24*time.Hour, logger(a.std.Err).With("service", "setup"))
		},
	}
	cmd.Flags().IntVar(&days, "retention-days", defaultRetentionDays, "of a new namespace: how long Temporal keeps closed workflows")
	return cmd
}
