package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

const (
	ledgerPage   = "200"       // lines of one call, the most that the door gives
	followPause  = time.Second // between two looks for new lines
	accessByName = `HOLDFAST_URL  the door; default ` + defaultDoor + `
HOLDFAST_KEY  one of the door's secrets.api_keys, without its caller

For a door on this machine a key that is not set is the published one of
"make dev". For any other door it must be set.`
)

func (a *app) ledger() *cobra.Command {
	var since, until, format string
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use: "ledger SKU", Short: "Show what moved the counters of a SKU, and why",
		Long: `Show what moved the counters of a SKU, and why, oldest line first.

In csv each counter has a column of what each line moves it by. From the first
line on, the sum of a column is the counter; for a span it is what the span moved.
Lines that were trimmed stand in one opening line.

--follow goes on until it is interrupted, and waits while the door is away.

` + accessByName,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeSKU,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !contract.ValidSKU(args[0]) {
				return badSKU(args[0])
			}
			r := ledgerReader{app: a, sku: args[0], query: url.Values{"limit": {ledgerPage}}}
			now := time.Now()
			for _, bound := range [][2]string{{"since", since}, {"until", until}} {
				name, value := bound[0], bound[1]
				if value == "" {
					continue
				}
				t, err := instant(value, now)
				if err != nil {
					return usagef("--%s is %q; it must be an instant such as 2026-01-31T12:00:00Z, or how long ago as in 90m or 24h", name, value)
				}
				r.query.Set(name, t.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
			}
			if follow && until != "" {
				return usagef("--follow and --until exclude each other: what is followed has no end")
			}
			if asJSON {
				if cmd.Flags().Changed("format") {
					return usagef("--json is --format jsonl: say one of them")
				}
				format = "jsonl"
			}
			var err error
			if r.out, err = newLedgerWriter(a.std.Out, format); err != nil {
				return err
			}
			if r.door, err = newDoor(); err != nil {
				return err
			}
			if follow {
				return r.follow(cmd.Context())
			}
			return r.pages(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only lines from this instant on; an instant, or how long ago")
	cmd.Flags().StringVar(&until, "until", "", "only lines before this instant; an instant, or how long ago")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with new lines until interrupted")
	cmd.Flags().StringVar(&format, "format", "table", "table, jsonl or csv")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format jsonl: each line of the ledger is one of JSON")
	return cmd
}

// instant reads an instant, or a duration back from now.
func instant(s string, now time.Time) (time.Time, error) {
	if back, err := time.ParseDuration(s); err == nil && back >= 0 {
		return now.Add(-back), nil
	}
	return time.Parse(time.RFC3339, s)
}

// ledgerLine is a line as the door shows it.
type ledgerLine struct {
	ID         string           `json:"id"`
	At         string           `json:"at"`
	Epoch      int64            `json:"epoch"`
	N          int64            `json:"n"`
	Verb       string           `json:"verb"`
	Kind       string           `json:"kind"`
	Units      int64            `json:"units"`
	RefID      string           `json:"ref_id"`
	OtherID    string           `json:"other_id"`
	Person     string           `json:"person"`
	Actor      string           `json:"actor"`
	Reason     string           `json:"reason"`
	Generation int64            `json:"generation"`
	PaymentRef string           `json:"payment_ref"`
	Amount     *int64           `json:"amount"`
	Currency   string           `json:"currency"`
	OnHand     int64            `json:"on_hand"`
	Held       int64            `json:"held"`
	Offered    int64            `json:"offered"`
	Sold       int64            `json:"sold"`
	Moves      map[string]int64 `json:"moves"`

	raw json.RawMessage
}

func (l *ledgerLine) UnmarshalJSON(body []byte) error {
	type plain ledgerLine
	l.raw = append(json.RawMessage{}, body...)
	return json.Unmarshal(body, (*plain)(l))
}

type ledgerReader struct {
	app   *app
	door  *door
	sku   string
	query url.Values
	out   ledgerWriter
}

// follow reads on until ctx ends, which is the only good end. An outage is told
// once.
func (r *ledgerReader) follow(ctx context.Context) error {
	told := ""
	for {
		err := r.pages(ctx)
		var later passing
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &later):
			if text := err.Error(); text != told {
				fmt.Fprintf(r.app.std.Err, "holdfast: %s\nholdfast: trying again each second\n", text)
				told = text
			}
		case err != nil:
			return err
		default:
			told = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

// pages reads on from the last line that was shown until there is no more. The
// cursor moves only past what was shown.
func (r *ledgerReader) pages(ctx context.Context) error {
	for more := true; more; {
		got, err := r.door.get(ctx, "/v1/stock/"+r.sku+"/ledger?"+r.query.Encode())
		if err != nil {
			return err
		}
		var page struct {
			Data []ledgerLine `json:"data"`
			Next *string      `json:"next_cursor"`
		}
		if err := json.Unmarshal(got.body, &page); err != nil || page.Data == nil {
			return fmt.Errorf("the door's answer is no ledger: %.200q", got.body)
		}
		if err := r.out.write(page.Data); err != nil {
			return err
		}
		if n := len(page.Data); n > 0 {
			r.query.Set("cursor", page.Data[n-1].ID)
		}
		more = page.Next != nil
	}
	return nil
}
