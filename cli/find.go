package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

const maxTerm = 255 // characters

func (a *app) find() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "find TERM", Short: "Tell the story of a phone number, hold, entry, payment, order, customer or event",
		Long: `Tell what a term stands for and what happened to it, in the order of time, what
happens next, and where its workflow stands in Temporal's UI.

TERM is a phone number however it is written, the id of a hold, an entry, a payment or
an event, or the shop's own reference of a payment, an order, a customer or a stock
event. The exit code is 1 when nothing is found.

` + accessByName,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			term := strings.TrimSpace(args[0])
			if n := len([]rune(term)); n < 1 || n > maxTerm {
				return usagef("the term has %d characters; it must have 1 to %d", n, maxTerm)
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			got, err := d.post(cmd.Context(), "/v1/find", map[string]string{"term": term})
			if err != nil {
				return err
			}
			var f findAnswer
			if err := json.Unmarshal(got.body, &f); err != nil || f.Things == nil || f.Story == nil {
				return fmt.Errorf("the door's answer tells no story: %.200q", got.body)
			}
			if err := a.show(got, asJSON, f.print); err != nil {
				return err
			}
			if len(f.Things)+len(f.Story) == 0 {
				return fmt.Errorf("nothing is known of %q%s", term, f.unread())
			}
			return nil
		},
	}
	return jsonFlag(cmd, &asJSON)
}

type findAnswer struct {
	Things []struct {
		Kind  string `json:"kind"`
		ID    string `json:"id"`
		SKU   string `json:"sku"`
		State string `json:"state"`
		Next  string `json:"next"`
		UI    string `json:"ui"`
	} `json:"things"`
	Story []struct {
		At     string `json:"at"`
		SKU    string `json:"sku"`
		ID     string `json:"id"`
		What   string `json:"what"`
		By     string `json:"by"`
		Reason string `json:"reason"`
	} `json:"story"`
	Missing []string `json:"missing"`
	Whole   bool     `json:"whole"`
	More    bool     `json:"more"`
}

func (f findAnswer) unread() string {
	if f.Whole {
		return ""
	}
	return " in what was read: only the newest lines of each ledger; holdfast ledger reads all of one"
}

func (f findAnswer) print(out io.Writer) error {
	for _, who := range f.Missing {
		fmt.Fprintf(out, "! %s\n", inTable(who))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range f.Story {
		by := ""
		if s.By != "" {
			by = "by " + s.By
		}
		if s.Reason != "" {
			by = strings.TrimSpace(by + " (" + s.Reason + ")")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.At, inTable(s.SKU), inTable(s.What), inTable(by), inTable(s.ID))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, thing := range f.Things {
		fmt.Fprintf(out, "\n%s %s: %s\n  next: %s\n", thing.Kind, thing.ID, thing.State, inTable(thing.Next))
		if thing.UI != "" {
			fmt.Fprintf(out, "  %s\n", thing.UI)
		}
	}
	if f.More {
		fmt.Fprintln(out, "\nThere is more: only the first are shown.")
	}
	if !f.Whole && len(f.Things)+len(f.Story) > 0 {
		fmt.Fprintln(out, "\nOlder lines were not read; there may be more before.")
	}
	return nil
}
