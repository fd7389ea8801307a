package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

func (a *app) reconcile() *cobra.Command {
	var dryRun, agree, yes, asJSON bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "reconcile [SKU]", Short: "Look for what gate and workflows differ in, and mend it",
		Long: `Look through a SKU, or all, for live records without an open workflow, open
workflows without a record, places in the line that are nobody's, and counters that
are not their parts, and mend what is found. The same is done every minute by itself.

More than three missing workflows and more than one in twenty are rather an outage of
Temporal: then nothing is given back until --agree says that they are gone, which
cannot be undone and asks for a yes.

A worker does it. While the report is not there the command says what it waits for; a
pass that is no longer waited for goes on.

The exit code is 1 when something is left that no machine mends, or when the report
is not there in time.

` + accessByName,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeSKU,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !contract.ValidSKU(args[0]) {
				return badSKU(args[0])
			}
			if agree && len(args) == 0 {
				return usagef("--agree needs the SKU whose workflows are gone")
			}
			if wait < time.Second {
				return usagef("--wait is %s; it must be at least 1s", wait)
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			if agree && !dryRun {
				if err := a.sure(yes, "What the missing workflows of "+args[0]+" held is given back, to the next in line; the pass without --agree, or with --dry-run, says how many are missing"); err != nil {
					return err
				}
			}
			skus := args
			if len(skus) == 0 {
				if skus, err = d.skus(cmd.Context()); err != nil {
					return err
				}
			}
			alarms := 0
			for _, sku := range skus {
				p, err := d.reconcile(cmd.Context(), sku, dryRun, agree, passWait{most: wait, word: passWord, say: func(word string) { fmt.Fprintln(a.std.Err, word) }})
				if err != nil {
					return fmt.Errorf("%s: %w", sku, err)
				}
				alarms += len(p.Alarms)
				if err := a.show(answer{body: p.body}, asJSON, p.print); err != nil {
					return err
				}
			}
			if alarms > 0 {
				return fmt.Errorf("%d alarms", alarms)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing")
	cmd.Flags().BoolVar(&agree, "agree", false, "the missing workflows are gone: give back what they held")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --agree: do not ask")
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Minute, "how long to wait for the report of a SKU; the pass goes on without")
	return jsonFlag(cmd, &asJSON)
}

type passAnswer struct {
	RunID       string   `json:"run_id"`
	Done        bool     `json:"done"`
	SKU         string   `json:"sku"`
	DryRun      bool     `json:"dry_run"`
	Closed      bool     `json:"closed"`
	Found       int      `json:"found"`
	Repaired    int      `json:"repaired"`
	Owners      int      `json:"owners"`
	Missing     int      `json:"missing"`
	DriftUnits  int64    `json:"drift_units"`
	CheckedAt   string   `json:"checked_at"`
	Differences []string `json:"differences"`
	Alarms      []string `json:"alarms"`
	body        []byte
}

func (p passAnswer) print(w io.Writer) error {
	state := "open"
	if p.Closed {
		state = "closed: nothing is sold until its gate was checked"
	}
	_, err := fmt.Fprintf(w, "%s\t%s, %d differences, %d mended\n", p.SKU, state, p.Found, p.Repaired)
	for _, list := range []struct {
		name string
		rows []string
	}{{"difference", p.Differences}, {"alarm", p.Alarms}} {
		for _, row := range list.rows {
			if err == nil {
				_, err = fmt.Fprintf(w, "\t%s: %s\n", list.name, inTable(row))
			}
		}
	}
	return err
}

// skus lists every SKU that the door knows.
func (d *door) skus(ctx context.Context) ([]string, error) {
	var skus []string
	for cursor := ""; ; {
		query := url.Values{"limit": {"200"}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		got, err := d.get(ctx, "/v1/stock?"+query.Encode())
		if err != nil {
			return nil, err
		}
		var page struct {
			Data []struct {
				SKU string `json:"sku"`
			} `json:"data"`
			Next *string `json:"next_cursor"`
		}
		if err := json.Unmarshal(got.body, &page); err != nil || page.Data == nil {
			return nil, fmt.Errorf("the door's answer is no list of SKUs: %.200q", got.body)
		}
		for _, s := range page.Data {
			skus = append(skus, s.SKU)
		}
		if page.Next == nil {
			return skus, nil
		}
		cursor = *page.Next
	}
}
