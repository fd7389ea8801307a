// The demo plays two stories against a running `make dev`: through HTTP alone,
// as a shop and its shoppers would. It shows what each person sees, and fails
// when anything is not as it should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"time"

	"holdfast/e2e/shop"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	url := flags.String("url", env("HOLDFAST_URL", "http://127.0.0.1:8080"), "the door's address")
	key := flags.String("key", "dev", "bearer key of the shop")
	secret := flags.String("secret", "whsec_aG9sZGZhc3QtZGV2LXdlYmhvb2s=", "secret of the inventory webhook")
	texts := flags.String("texts", ".dev/texts.jsonl", "file in which the console sender writes down each text")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p := &play{shop: shop.New(*url, *key, *secret), outbox: &shop.Outbox{Path: *texts}, out: out, step: "look for the door"}
	if err := p.ready(ctx); err != nil {
		return err
	}
	for _, story := range []func(context.Context) error{p.fourChairs, p.declinedCard} {
		if err := story(ctx); err != nil {
			return fmt.Errorf("step %q: %w", p.step, err)
		}
	}
	fmt.Fprintf(out, "\nBoth stories went as they should.\n")
	return nil
}

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// ready finds the door and the texts, so that a demo without `make dev` says
// what is missing.
func (p *play) ready(ctx context.Context) error {
	a, err := p.shop.Call(ctx, http.MethodGet, "/readyz", nil)
	if err != nil {
		return fmt.Errorf("nobody answers at %s; start `make dev` first, or set HOLDFAST_URL: %w", p.shop.URL, err)
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("the door at %s is not ready: %s", p.shop.URL, a)
	}
	if _, err := os.Stat(p.outbox.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	old, err := p.outbox.Texts()
	p.seen = len(old)
	return err
}
