package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

// maxUnits is the most units that one stock event moves.
const maxUnits = 1_000_000_000

func (a *app) stock() *cobra.Command {
	var asJSON bool
	cmd := group("stock", "Read, restock and steer a SKU through a running door", a.stockGet(&asJSON), a.stockRestock(&asJSON), a.stockPolicy(&asJSON))
	cmd.Long = `Read, restock and steer a SKU through a running door.

HOLDFAST_URL             the door; default ` + defaultDoor + `
HOLDFAST_KEY             for get and policy: one of the door's secrets.api_keys, without its caller
HOLDFAST_WEBHOOK_SECRET  for restock: one of the door's secrets.inventory

For a door on this machine, one that is not set is the published one of
"make dev". For any other door it must be set.`
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print the door's answer as JSON")
	return cmd
}

func (a *app) stockGet(asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use: "get SKU", Short: "Show the counters of a SKU", Args: cobra.ExactArgs(1), ValidArgsFunction: completeSKU,
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := ofSKU(cmd.Context(), args[0], "", nil)
			if err != nil {
				return err
			}
			return a.show(got, *asJSON, got.printStock)
		},
	}
}

func (a *app) stockRestock(asJSON *bool) *cobra.Command {
	var eventID, reason string
	cmd := &cobra.Command{
		Use: "restock SKU UNITS", Short: "Add units to a SKU",
		Long: `Add units to a SKU. The event id makes it safe to repeat: the same id is
applied once. It is printed before anything is sent; when the outcome stays
unknown, repeat the command with it.`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: completeSKU,
		RunE: func(cmd *cobra.Command, args []string) error {
			ev := restockEvent{EventID: eventID, SKU: args[0], Kind: contract.StockRestock, Reason: reason, Actor: "operator"}
			if !contract.ValidSKU(ev.SKU) {
				return badSKU(ev.SKU)
			}
			var err error
			if ev.Units, err = strconv.ParseInt(args[1], 10, 64); err != nil || ev.Units < 1 || ev.Units > maxUnits {
				return usagef("%q is no number of units: 1 to %d", args[1], maxUnits)
			}
			if ev.EventID == "" {
				ev.EventID = "cli_" + rand.Text()
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			fmt.Fprintln(a.std.Err, "event id", ev.EventID)
			got, err := d.webhook(cmd.Context(), "/v1/webhooks/inventory", ev.EventID, ev)
			var unsent usageError
			if errors.As(err, &unsent) {
				return err
			}
			if err != nil {
				return fmt.Errorf("%w\nTo try again without restocking twice, add --event-id %s", err, ev.EventID)
			}
			return a.printRestock(got, ev, *asJSON)
		},
	}
	cmd.Flags().StringVar(&eventID, "event-id", "", "id of the event; default a fresh random one")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the ledger")
	return cmd
}

// restockEvent is the body of the inventory webhook.
type restockEvent struct {
	EventID string `json:"event_id"`
	SKU     string `json:"sku"`
	Kind    string `json:"kind"`
	Units   int64  `json:"units"`
	Reason  string `json:"reason,omitempty"`
	Actor   string `json:"actor"`
}

func (a *app) printRestock(got answer, ev restockEvent, asJSON bool) error {
	var out struct {
		Applied *bool       `json:"applied"`
		Reason  string      `json:"reason"`
		Stock   stockAnswer `json:"stock"`
	}
	if err := json.Unmarshal(got.body, &out); err != nil && got.status != http.StatusAccepted {
		return fmt.Errorf("the door's answer to event %s cannot be read: %w", ev.EventID, err)
	}
	if asJSON {
		if err := indent(a.std.Out, got.body); err != nil {
			return err
		}
	}
	switch {
	case got.status == http.StatusAccepted || out.Applied == nil:
		fmt.Fprintf(a.std.Err, "recorded, not yet applied; to see the outcome, repeat with --event-id %s\n", ev.EventID)
		return nil
	case !*out.Applied:
		return fmt.Errorf("event %s was refused: %s", ev.EventID, out.Reason)
	case asJSON:
		return nil
	}
	fmt.Fprintf(a.std.Out, "%s: %d more\n", ev.SKU, ev.Units)
	return out.Stock.print(a.std.Out)
}

// stockAnswer is a SKU as the door shows it. A door whose gate is closed leaves
// the counters out; they must not look like zeros.
type stockAnswer map[string]any

var stockFields = []string{
	"sku", "title", "state", "on_hand", "held", "offered", "available", "open_to_all",
	"sold", "returned", "waiting", "shortfall", "rings", "generation", "as_of",
}

func (s *stockAnswer) UnmarshalJSON(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // counts stay as they were written
	return dec.Decode((*map[string]any)(s))
}

func (got answer) printStock(w io.Writer) error {
	var s stockAnswer
	if err := json.Unmarshal(got.body, &s); err != nil {
		return fmt.Errorf("the door's answer is no stock: %w", err)
	}
	return s.print(w)
}

func (s stockAnswer) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, name := range stockFields {
		if v, ok := s[name]; ok {
			fmt.Fprintf(t, "%s\t%v\n", name, v)
		}
	}
	return t.Flush()
}

func badSKU(sku string) error {
	return usagef("%q is no SKU: 1 to 64 of A-Z, a-z, 0-9, \".\", \"_\", \"-\"", sku)
}

// indent passes the door's JSON on, made readable.
func indent(w io.Writer, body []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", "  "); err != nil {
		return fmt.Errorf("the door's answer is no JSON: %w", err)
	}
	b.WriteByte('\n')
	_, err := b.WriteTo(w)
	return err
}
