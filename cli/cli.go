// Package cli is the command line of holdfast.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"holdfast/config"
	"holdfast/connect"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // what was asked for did not happen
	exitUsage   = 2 // the command line or the configuration is wrong
)

// Service runs until ctx ends, or fails.
type Service func(ctx context.Context, cfg *config.Config, log *slog.Logger) error

// Services are the parts of the program that stand on servers.
type Services struct {
	Worker  Service
	Starter Service
	SetUp   SetUp
}

// Streams are where a command writes: results to Out, all else to Err.
type Streams struct {
	Out, Err io.Writer
	In       io.Reader // read only when Terminal
	Terminal bool      // a person sits at In
}

// Main runs the command that args (without the program's name) ask for and
// answers the exit code: 0, 1 for a failure, 2 for a wrong command line or
// configuration.
func Main(ctx context.Context, args []string, std Streams, services Services) int {
	a := &app{std: std, services: services}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(std.Err, "holdfast:", err)
	if !a.began {
		fmt.Fprintf(std.Err, "  usage: %s; see %s --help\n", cmd.UseLine(), cmd.CommandPath())
	}
	if code, own := exitCodeOf(err); own {
		return code
	}
	var wrong *config.Error
	var usage usageError
	if !a.began || errors.As(err, &wrong) || errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}

// usageError is a command line that cannot be meant.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

type app struct {
	std      Streams
	services Services
	began    bool // the command line was understood
	file     string
	set      []string
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Sells exactly what a shop has, and keeps the line for what comes back",
		Long: `Holdfast sells exactly what a shop has, and keeps the line for what comes back.

Configuration: defaults, then the file of --config or HOLDFAST_CONFIG, then
HOLDFAST_* variables, then --set. "holdfast config" shows the result.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRun:  func(*cobra.Command, []string) { a.began = true },
	}
	root.PersistentFlags().StringVar(&a.file, "config", "", "configuration file (.yaml, .toml, .json); default HOLDFAST_CONFIG")
	root.PersistentFlags().StringArrayVar(&a.set, "set", nil, "key=value of the configuration, repeatable; wins over everything. Others on this machine can read it: no place for secrets")
	root.AddCommand(
		a.service("worker", "Run the workflows and activities", a.services.Worker),
		a.service("starter", "Run the door: the HTTP service for shoppers, shops and webhooks", a.services.Starter),
		a.status(), a.find(), a.hold(),
		a.pause("pause", "Make no new offers and take no new holds of a SKU", "Make no new offers and take no new walk-in holds of a SKU. Offers that were told and live\nholds go on, and people can still join its line."),
		a.pause("resume", "Go on with a paused SKU", "Go on with a paused SKU: free units are offered to the line, in its order."),
		a.config(), a.version(), a.stock(), a.ledger(), a.why(), a.texts(), a.statement(), a.reconcile(), a.drill(), a.ttlAdvice(), a.refunds(), a.events(),
		a.init(), a.setup(), a.healthcheck(),
	)
	return root
}

func (a *app) service(name, short string, run Service) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(a.file, a.set)
			if err != nil {
				return err
			}
			log := logger(a.std.Err).With("service", name)
			connect.LogRedis(log)
			log.Info("starting", "version", ownVersion(), "config", cfg)
			if cfg.Mode != config.ModeDev && len(cfg.Secrets.PayloadKeys) == 0 {
				log.Warn("secrets.payload_keys is not set: Temporal is told phone numbers, names and payment references in clear")
			}
			if err := run(cmd.Context(), cfg, log); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			log.Info("stopped")
			return nil
		},
	}
}

// group is a command that only has others below it.
func group(use, short string, sub ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s needs one more word; see %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return usagef("%s does not know %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
		},
	}
	cmd.AddCommand(sub...)
	return cmd
}

// logger writes text for a person at a terminal and JSON for machines.
func logger(w io.Writer) *slog.Logger {
	if f, ok := w.(*os.File); ok && IsTerminal(f) {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(slog.NewJSONHandler(w, nil))
}

// IsTerminal says whether a person may sit at the other end of f.
func IsTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
