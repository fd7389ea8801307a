package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

func (a *app) texts() *cobra.Command {
	var since string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "texts SKU", Short: "List the offers that lapsed without a text that arrived",
		Long: `List the offers of a SKU that lapsed and whose person had no text of it, as far as
anybody knows, newest first: not-told when none was taken in time or it was lost,
not-delivered when the provider took it and never said that it arrived. At most 200
are shown; all are counted.

` + accessByName,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeSKU,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !contract.ValidSKU(args[0]) {
				return badSKU(args[0])
			}
			query := url.Values{"limit": {mostRows}}
			if since != "" {
				t, err := instant(since, time.Now())
				if err != nil {
					return usagef("--since is %q; it must be an instant such as 2026-01-31T12:00:00Z, or how long ago as in 90m or 24h", since)
				}
				query.Set("since", t.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			got, err := d.get(cmd.Context(), "/v1/stock/"+args[0]+"/texts?"+query.Encode())
			if err != nil {
				return err
			}
			if asJSON {
				return indent(a.std.Out, got.body)
			}
			var m missedTexts
			if err := json.Unmarshal(got.body, &m); err != nil || m.Data == nil {
				return fmt.Errorf("the door's answer is no list of texts: %.200q", got.body)
			}
			return m.print(a.std.Out, args[0])
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only offers that lapsed since an instant, or in the last 90m, 24h")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the door's answer as JSON")
	return cmd
}

// missedTexts is what the door says.
type missedTexts struct {
	Data []struct {
		At      string `json:"at"`
		EntryID string `json:"entry_id"`
		Why     string `json:"why"`
		ToldAt  string `json:"told_at"`
		Detail  string `json:"detail"`
	} `json:"data"`
	Lapsed int  `json:"lapsed"`
	Missed int  `json:"missed"`
	Whole  bool `json:"whole"`
}

func (m missedTexts) print(out io.Writer, sku string) error {
	if _, err := fmt.Fprintf(out, "%s: %d of %d lapsed offers without a text that arrived\n", sku, m.Missed, m.Lapsed); err != nil {
		return err
	}
	if len(m.Data) > 0 {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "LAPSED\tENTRY\tTEXT TRIED\tWHY")
		for _, t := range m.Data {
			tried := t.ToldAt
			if tried == "" {
				tried = "-"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s: %s\n", t.At, t.EntryID, tried, inTable(t.Why), inTable(t.Detail))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	switch {
	case m.Missed > len(m.Data):
		fmt.Fprintf(out, "The newest %d are shown.\n", len(m.Data))
	case !m.Whole:
		fmt.Fprintln(out, "Older lines of the ledger were not read; there may be more before.")
	}
	return nil
}
