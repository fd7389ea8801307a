package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

func (a *app) events() *cobra.Command {
	return group("events", "See to what the shop's endpoint has not taken", a.eventsParked(), a.eventsRetry(), a.eventsTest())
}

// eventAnswer is an event as the door shows it. The door leaves out what it could
// not learn.
type eventAnswer struct {
	EventID    string `json:"event_id"`
	Type       string `json:"type"`
	Subject    string `json:"subject"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	HappenedAt string `json:"happened_at"`
	ParkedAt   string `json:"parked_at"`
}

func readEvent(body []byte) (e eventAnswer, err error) {
	if err := json.Unmarshal(body, &e); err != nil || e.EventID == "" {
		return e, fmt.Errorf("the door's answer is no event: %.200q", body)
	}
	return e, nil
}

func eventRows(ctx context.Context, d *door, state string) ([]json.RawMessage, error) {
	return listRows(ctx, d, "/v1/events", url.Values{"limit": {mostRows}, "state": {state}}, "events")
}

// eventState is what --sending names: events that are still tried, with pauses of up to
// ten minutes, or an hour when the endpoint asked for it.
func eventState(sending bool) string {
	if sending {
		return contract.EventSending
	}
	return contract.EventParked
}

func (a *app) eventsParked() *cobra.Command {
	var asJSON, sending bool
	cmd := &cobra.Command{
		Use: "parked", Short: "List the events that were given up after three days",
		Long: `List the events that the shop's endpoint did not take in three days, or will not
take at all, newest first. Mend the endpoint, then "holdfast events retry". With
--sending list those that are still tried.

` + accessByName,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := newDoor()
			if err != nil {
				return err
			}
			rows, err := eventRows(cmd.Context(), d, eventState(sending))
			if err != nil {
				return err
			}
			if asJSON {
				return rowsJSON(a.std.Out, rows)
			}
			return eventTable(a.std.Out, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&sending, "sending", false, "those that are still tried")
	return cmd
}

func eventTable(out io.Writer, rows []json.RawMessage) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "event_id\ttype\tsubject\thappened_at\tparked_at\treason")
	for _, row := range rows {
		e, err := readEvent(row)
		if err != nil {
			return err
		}
		cells := []string{e.EventID, e.Type, e.Subject, e.HappenedAt, e.ParkedAt, e.Reason}
		for i, c := range cells {
			cells[i] = inTable(c)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

func (a *app) eventsRetry() *cobra.Command {
	var all, sending, asJSON bool
	cmd := &cobra.Command{
		Use: "retry ID | --all [--sending]", Short: "Deliver events afresh",
		Long: `Deliver an event afresh, or with --all every parked one, with --all --sending every
one that waits for its next attempt: at once, and then again for three days. It is
safe to repeat: the shop knows an event by its id.

` + accessByName,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return usagef("name one event, or --all; \"holdfast events parked\" lists them")
			}
			if sending && !all {
				return usagef("--sending goes with --all; one event is tried in either state")
			}
			if len(args) == 1 && !contract.ValidEventID(args[0]) {
				return usagef("%q is no id of an event, which is event_ and 26 letters; \"holdfast events parked\" lists them", args[0])
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			ids := args
			if all {
				if ids, err = eventIDs(cmd.Context(), d, eventState(sending)); err != nil {
					return err
				}
			}
			return a.retryEvents(cmd.Context(), d, ids, asJSON)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every parked event")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON: a list of what each event is then")
	cmd.Flags().BoolVar(&sending, "sending", false, "with --all: every event that is still tried, in place of the parked ones")
	return cmd
}

func eventIDs(ctx context.Context, d *door, state string) (ids []string, err error) {
	rows, err := eventRows(ctx, d, state)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		e, err := readEvent(row)
		if err != nil {
			return nil, err
		}
		ids = append(ids, e.EventID)
	}
	return ids, nil
}

// retryEvents goes on after a failure: one event says nothing of the next.
func (a *app) retryEvents(ctx context.Context, d *door, ids []string, asJSON bool) error {
	var failed []error
	rows := []json.RawMessage{}
	for _, id := range ids {
		got, err := d.post(ctx, "/v1/events/"+id+"/retry", struct{}{})
		var e eventAnswer
		if err == nil {
			if e, err = readEvent(got.body); err == nil {
				rows = append(rows, got.body)
			}
		}
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", id, err))
		case e.State == contract.EventParked, e.State == contract.EventDiscarded:
			failed = append(failed, fmt.Errorf("%s is %s: %s", id, e.State, e.Reason))
		case !asJSON:
			fmt.Fprintf(a.std.Out, "%s is %s\n", id, e.State)
		}
	}
	if asJSON {
		failed = append(failed, rowsJSON(a.std.Out, rows))
	}
	return errors.Join(failed...)
}

func (a *app) eventsTest() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "test", Short: "Send a test event to the shop's endpoint and show what it says",
		Long: `Send one event of type holdfast.test to the endpoint of events.url, once, and show
what it says. The door sends it, with the configuration that it runs with.

` + accessByName,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := newDoor()
			if err != nil {
				return err
			}
			got, err := d.post(cmd.Context(), "/v1/events/test", struct{}{})
			if err != nil {
				return err
			}
			var t struct {
				EventID      string `json:"event_id"`
				Acknowledged bool   `json:"acknowledged"`
				Status       int    `json:"status"`
				Answer       string `json:"answer"`
				Reason       string `json:"reason"`
				Do           string `json:"do"`
			}
			if err := json.Unmarshal(got.body, &t); err != nil || t.EventID == "" {
				return fmt.Errorf("the door's answer is no test: %.200q", got.body)
			}
			if asJSON {
				if err := indent(a.std.Out, got.body); err != nil {
					return err
				}
			}
			if t.Acknowledged {
				if !asJSON {
					_, err = fmt.Fprintf(a.std.Out, "the endpoint took %s\n", t.EventID)
				}
				return err
			}
			text := "the endpoint did not take " + t.EventID + ": " + t.Reason
			if t.Answer != "" {
				text += fmt.Sprintf("\n  it said: %q", t.Answer)
			}
			if t.Do != "" {
				text += "\n  what to do: " + t.Do
			}
			return errors.New(text)
		},
	}
	return jsonFlag(cmd, &asJSON)
}
