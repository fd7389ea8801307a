package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

// A drill moves only a SKU of its own, which nobody else may sell: by its name, and by
// its title, which tells it from one of the shop's that happens to be named so.
const (
	drillPrefix = "drill-"
	drillSKU    = drillPrefix + "oversell"
	drillTitle  = "A drill of the alarms, not for sale"
	drillUnits  = 2
	drillPoll   = 500 * time.Millisecond
	drillClean  = time.Minute // also after a Ctrl-C
)

func (a *app) drill() *cobra.Command {
	return group("drill", "Prove that an alarm rings", a.drillOversell())
}

func (a *app) drillOversell() *cobra.Command {
	var wait time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use: "oversell", Short: "Promise more than there is, of a SKU made for it, and see what rings",
		Long: `Promise more than there is, of a SKU made for it (` + drillSKU + `), and see what rings: the
tripwire at the gate, its alarm in the book, /readyz, the metric, the report of a pass, and
the event stock.shortfall when the shop has an endpoint. Then everything is put away again,
also after a failure or Ctrl-C; what a crash has left is put away by the next drill.

The alarm is a real one: whoever is on call is called. One drill at a time.

Exit code 0: all that must ring did, and was silent again. 1: something did not.

HOLDFAST_URL             the door; default ` + defaultDoor + `
HOLDFAST_KEY             one of its secrets.api_keys, without its caller
HOLDFAST_WEBHOOK_SECRET  one of its secrets.inventory
HOLDFAST_OPS_URL         where it answers /readyz and /metrics (http.ops_addr); default HOLDFAST_URL`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < time.Second {
				return usagef("--wait is %s; it must be at least 1s", wait)
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			r := &drillRun{
				app: a, door: d, ops: strings.TrimRight(os.Getenv("HOLDFAST_OPS_URL"), "/"), wait: wait, quiet: asJSON,
				report: drillReport{SKU: drillSKU, Bells: []drillBell{}},
			}
			if r.ops == "" {
				r.ops = d.base
			}
			err = r.run(cmd.Context())
			if asJSON {
				err = errors.Join(err, writeJSON(a.std.Out, r.report))
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "how long each alarm may take")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, when all is over")
	return cmd
}

func (r *drillRun) run(ctx context.Context) (err error) {
	if err := r.leftovers(ctx); err != nil {
		return fmt.Errorf("what an earlier drill has left is not put away: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drillClean)
		defer cancel()
		if left := r.putAway(ctx, drillSKU); left != nil {
			err = errors.Join(err, fmt.Errorf("SKU %s is not put away, the next drill tries again: %w", drillSKU, left))
		} else if err == nil {
			err = r.silence(ctx)
		}
	}()
	if err := r.oversell(ctx); err != nil {
		return err
	}
	return r.listen(ctx)
}

type drillRun struct {
	*app
	*door
	ops    string
	wait   time.Duration
	quiet  bool    // only the report is printed
	before float64 // the metric, before anything rang
	report drillReport
}

func (r *drillRun) say(format string, args ...any) {
	if !r.quiet {
		fmt.Fprintf(r.std.Out, format+"\n", args...)
	}
}

// leftovers puts away what an earlier drill has not.
func (r *drillRun) leftovers(ctx context.Context) error {
	skus, err := r.skus(ctx)
	if err != nil {
		return err
	}
	for _, sku := range skus {
		if !strings.HasPrefix(sku, drillPrefix) {
			continue
		}
		s, err := r.counters(ctx, sku)
		switch {
		case err != nil:
			return err
		case s.Title != drillTitle && sku == drillSKU:
			return usagef("SKU %s is yours (%q): a drill would move its units", sku, s.Title)
		case s.Title == drillTitle:
			if err := r.putAway(ctx, sku); err != nil {
				return err
			}
		}
	}
	return nil
}

// oversell brings a shortfall about: units are counted away while they are held.
func (r *drillRun) oversell(ctx context.Context) error {
	r.calm(ctx)
	body, err := json.Marshal(map[string]string{"title": drillTitle, "checkout_url": "https://drill.invalid/"})
	if err != nil {
		return err
	}
	if _, err := r.call(ctx, http.MethodPut, "/v1/stock/"+drillSKU, strings.NewReader(string(body))); err != nil {
		return err
	}
	if err := r.move(ctx, drillSKU, map[string]any{"kind": contract.StockRestock, "units": drillUnits}); err != nil {
		return err
	}
	hold, err := json.Marshal(map[string]any{"sku": drillSKU, "quantity": drillUnits, "customer": "drill"})
	if err != nil {
		return err
	}
	key := http.Header{"Idempotency-Key": {"drill-" + rand.Text()}}
	if _, err := r.callWith(ctx, http.MethodPost, "/v1/holds", strings.NewReader(string(hold)), key); err != nil {
		return err
	}
	return r.move(ctx, drillSKU, map[string]any{"kind": contract.StockCorrection, "delta": -1, "allow_shortfall": true})
}

// move sends a stock event until it is decided.
func (r *drillRun) move(ctx context.Context, sku string, ev map[string]any) error {
	id := "drill_" + rand.Text()
	ev["event_id"], ev["sku"], ev["reason"], ev["actor"] = id, sku, "drill", "operator"
	return r.until(ctx, func() error {
		got, err := r.webhook(ctx, "/v1/webhooks/inventory", id, ev)
		if err != nil {
			return err
		}
		var out struct {
			Applied *bool  `json:"applied"`
			Reason  string `json:"reason"`
		}
		switch err := json.Unmarshal(got.body, &out); {
		case err != nil:
			return fmt.Errorf("the door's answer to %s cannot be read: %w", ev["kind"], err)
		case out.Applied == nil:
			return passing{fmt.Errorf("the %s is not yet applied", ev["kind"])}
		case !*out.Applied:
			return fmt.Errorf("the %s was refused: %s", ev["kind"], out.Reason)
		}
		return nil
	})
}

// until repeats try while its error is a passing one.
func (r *drillRun) until(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, r.wait)
	defer cancel()
	for {
		err := try()
		var later passing
		if !errors.As(err, &later) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", r.wait, err)
		case <-time.After(drillPoll):
		}
	}
}

// putAway gives the holds of a drill's SKU back, counts its units away and resumes it.
func (r *drillRun) putAway(ctx context.Context, sku string) error {
	return r.until(ctx, func() error {
		s, err := r.counters(ctx, sku)
		if err != nil {
			return err
		}
		switch {
		case s.Title == "" && s.State != string(contract.SKUClosed): // it was never opened
			return nil
		case s.State == string(contract.SKUClosed):
			return passing{errors.New("its gate is closed")}
		case s.Held > 0:
			if err := r.giveBack(ctx, sku); err != nil {
				return err
			}
			return passing{fmt.Errorf("%d units are held", s.Held)}
		case s.OnHand > 0:
			if err := r.move(ctx, sku, map[string]any{"kind": contract.StockCorrection, "delta": -s.OnHand}); err != nil {
				return err
			}
		}
		if s.Paused {
			_, err = r.post(ctx, "/v1/stock/"+sku+"/resume", struct{}{})
		}
		return err
	})
}

// giveBack releases the holds of a SKU; lists of holds are a little behind.
func (r *drillRun) giveBack(ctx context.Context, sku string) error {
	rows, err := listRows(ctx, r.door, "/v1/holds", url.Values{"limit": {mostRows}, "sku": {sku}, "state": {string(contract.HoldHeld)}}, "holds")
	if err != nil {
		return err
	}
	for _, row := range rows {
		var h struct {
			ID string `json:"hold_id"`
		}
		if err := json.Unmarshal(row, &h); err != nil || h.ID == "" {
			return fmt.Errorf("the door's answer is no hold: %.200q", row)
		}
		if _, err := r.post(ctx, "/v1/holds/"+h.ID+"/release", map[string]string{"reason": "drill"}); err != nil {
			return passing{err} // it may just have ended
		}
	}
	return nil
}

// drillStock is what a drill wants to know of a SKU; the zero value of one that the
// door does not know.
type drillStock struct {
	Title  string `json:"title"`
	State  string `json:"state"`
	OnHand int64  `json:"on_hand"`
	Held   int64  `json:"held"`
	Paused bool   `json:"paused"`
}

func (r *drillRun) counters(ctx context.Context, sku string) (s drillStock, err error) {
	skus, err := r.skus(ctx)
	if err != nil || !slices.Contains(skus, sku) {
		return s, err
	}
	got, err := r.get(ctx, "/v1/stock/"+sku)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(got.body, &s); err != nil {
		return s, fmt.Errorf("the door's answer is no stock: %w", err)
	}
	return s, nil
}
