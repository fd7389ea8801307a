package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

func (a *app) why() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "why SKU|ENTRY", Short: "Say why nobody was told of a unit, or why one person was not",
		Long: `Say why nobody was told of a unit of a SKU, or why the person of one entry was
not: one line a reason, and what to do about it. Without a reason it says what
goes on. docs/waitlist.md has an example of each.

` + accessByName,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeSKU,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "/v1/waitlist/" + args[0] + "/why"
			if _, err := contract.EntryNumber(args[0]); err != nil {
				if !contract.ValidSKU(args[0]) {
					return usagef("%q is neither a SKU nor the id of an entry", args[0])
				}
				path = "/v1/stock/" + args[0] + "/why"
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			got, err := d.get(cmd.Context(), path)
			if err != nil {
				return err
			}
			var w whyAnswer
			if err := json.Unmarshal(got.body, &w); err != nil || w.Data == nil {
				return fmt.Errorf("the door's answer gives no reasons: %.200q", got.body)
			}
			return a.show(got, asJSON, func(out io.Writer) error { return w.print(out, args[0]) })
		},
	}
	return jsonFlag(cmd, &asJSON)
}

// whyAnswer is what the door says.
type whyAnswer struct {
	Data []struct {
		Why     string `json:"why"`
		EntryID string `json:"entry_id"`
		More    int    `json:"more"`
		Detail  string `json:"detail"`
		Do      string `json:"do"`
		Until   string `json:"until"`
	} `json:"data"`
	Happening string `json:"happening"`
}

func (w whyAnswer) print(out io.Writer, of string) error {
	if _, err := fmt.Fprintf(out, "%s: %s\n", of, inTable(w.Happening)); err != nil {
		return err
	}
	for _, r := range w.Data {
		line := r.Why
		if r.EntryID != "" && r.EntryID != of {
			line += " (" + r.EntryID
			if r.More > 0 {
				line += fmt.Sprintf(" and %d more", r.More)
			}
			line += ")"
		}
		line += ": " + r.Detail
		if r.Until != "" {
			line += ", until " + r.Until
		}
		if r.Do != "" {
			line += ". To do: " + r.Do
		}
		if _, err := fmt.Fprintln(out, inTable(line)); err != nil {
			return err
		}
	}
	return nil
}
