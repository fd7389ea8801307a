package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

const (
	screenful     = 30              // SKUs that are shown unless all are asked for
	statusTimeout = 5 * time.Second // of all that is asked, side by side
)

// Exit codes of status, as monitoring plug-ins use them.
const (
	statusWell  = 0
	statusLook  = 1 // a person should look
	statusGrave = 2 // units or money are at stake, or it cannot be told
)

func (a *app) status() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show on one screen how all SKUs are, and what waits for a person",
		Long: `Show on one screen how all SKUs are, and what waits for a person. SKUs in trouble
come first.

Exit code 0: all is well. 1: a person should look: money that only a person can pay
back, a payment of another amount than was announced, events that the shop did not
take, a pass that failed, a SKU that was rebuilt in the last hour. 2: units or money
are at stake, or it cannot be told: a closed gate, a tripwire that rings (a shortfall,
a ledger that does not add up), an alarm of the last pass or units that it did not
mend, no worker or one that does not keep up, no answer of the door, Redis or
Temporal. It takes at most some five seconds.

` + accessByName,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := newDoor()
			if err != nil {
				return err
			}
			s := readOverview(cmd.Context(), d, statusTimeout)
			show := func(w io.Writer) error { return s.print(w, all) }
			if asJSON {
				show = func(w io.Writer) error { return writeJSON(w, s) }
			}
			if err := show(a.std.Out); err != nil {
				return err
			}
			if s.Exit != statusWell {
				return exitError{s.Exit, fmt.Errorf("%d to look at", len(s.Attention))}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&all, "all", false, "every SKU, however many")
	return cmd
}

// overview is how everything is. What could not be read is null and stands in
// Attention.
type overview struct {
	Door      string            `json:"door"`
	Exit      int               `json:"exit"`
	Attention []string          `json:"attention"`
	SKUs      []skuState        `json:"skus"`
	Refunds   []json.RawMessage `json:"open_refunds"`
	Events    []json.RawMessage `json:"parked_events"`
}

type skuState struct {
	stockAnswer
	state   string
	trouble int // an exit code
	note    string
}

func (s skuState) MarshalJSON() ([]byte, error) { return json.Marshal(s.stockAnswer) }

func (o *overview) attend(exit int, format string, args ...any) {
	o.Exit = max(o.Exit, exit)
	o.Attention = append(o.Attention, fmt.Sprintf(format, args...))
}

// readOverview asks for everything side by side, and goes on without what fails: what
// answers is worth more in trouble.
func readOverview(ctx context.Context, d *door, within time.Duration) *overview {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	o := &overview{Door: d.base, Attention: []string{}}
	var asks sync.WaitGroup
	var stock []json.RawMessage
	var looks attentionAnswer
	var noStock, noRefunds, noEvents, noLooks error
	asks.Go(func() { stock, noStock = stockRows(ctx, d) })
	asks.Go(func() {
		o.Refunds, noRefunds = listRows(ctx, d, "/v1/refunds", url.Values{"limit": {mostRows}, "open": {"true"}}, "refunds")
	})
	asks.Go(func() { o.Events, noEvents = eventRows(ctx, d, contract.EventParked) })
	asks.Go(func() { looks, noLooks = readAttention(ctx, d) })
	asks.Wait()

	whyUnknown := func(err error, silent string) string { return whyUnknown(err, silent, within) }
	if noLooks != nil {
		o.attend(statusGrave, "what waits for a person is not known: %s", whyUnknown(noLooks, ""))
	}
	for _, l := range looks.Data {
		o.look(l)
	}
	redis, temporal := looks.silent("Redis", looks.Redis), looks.silent("Temporal", looks.Temporal)
	if noStock != nil {
		o.attend(statusGrave, "the SKUs are not known: %s", whyUnknown(noStock, redis))
	} else {
		o.skus(stock)
	}
	if noRefunds != nil {
		o.attend(statusGrave, "the open refunds are not known: %s", whyUnknown(noRefunds, temporal))
	}
	o.refunds()
	if noEvents != nil {
		o.attend(statusGrave, "the parked events are not known: %s", whyUnknown(noEvents, temporal))
	} else if n := len(o.Events); n > 0 {
		o.attend(statusLook, "%d events were given up: holdfast events parked shows them, holdfast events retry --all delivers them afresh", n)
	}
	return o
}

func stockRows(ctx context.Context, d *door) ([]json.RawMessage, error) {
	return listRows(ctx, d, "/v1/stock", url.Values{"limit": {mostRows}}, "SKUs")
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (o *overview) skus(rows []json.RawMessage) {
	o.SKUs = []skuState{}
	for _, row := range rows {
		var s skuState
		if err := json.Unmarshal(row, &s.stockAnswer); err != nil {
			o.attend(statusGrave, "the door's answer is no stock: %.200q", row)
			continue
		}
		s.judge()
		if s.trouble > statusWell {
			o.attend(s.trouble, "%v: %s", s.stockAnswer["sku"], s.note)
		}
		o.SKUs = append(o.SKUs, s)
	}
	slices.SortStableFunc(o.SKUs, func(a, b skuState) int { return cmp.Compare(b.rank(), a.rank()) })
}

// rank puts trouble first, then what has a note.
func (s skuState) rank() int {
	if s.note != "" {
		return 2*s.trouble + 1
	}
	return 2 * s.trouble
}

func (s *skuState) judge() {
	s.state, _ = s.stockAnswer["state"].(string)
	switch {
	case s.state == string(contract.SKUClosed):
		s.trouble, s.note = statusGrave, "closed: nothing is sold until the gate was checked; see its Reconcile workflow"
	case s.number("shortfall") > 0 || len(s.rings()) > 0:
		s.trouble, s.note = statusGrave, s.alarm()
	case s.state == string(contract.SKUPaused):
		s.note = "paused: holdfast resume"
	case s.state == string(contract.SKULine) && s.number("available") > 0:
		s.note = "free units while people wait: a moment's work, or see holdfast why"
	}
}

// rings are the wires of the tripwire that ring.
func (s skuState) rings() []string {
	var wires []string
	list, _ := s.stockAnswer["rings"].([]any)
	for _, wire := range list {
		wires = append(wires, fmt.Sprint(wire))
	}
	return wires
}

// alarm names all that rings. A shortfall may be what somebody asked for; anything else
// no call does.
func (s skuState) alarm() string {
	var says []string
	if n := s.number("shortfall"); n > 0 {
		says = append(says, fmt.Sprintf("shortfall: %d promised that are not there; restock, or give holds back", n))
	}
	wires := slices.DeleteFunc(s.rings(), func(wire string) bool { return wire == contract.WireShortfall })
	if len(wires) > 0 {
		says = append(says, fmt.Sprintf("%s: the books contradict each other; holdfast pause %[2]v, then holdfast statement %[2]v says where", strings.Join(wires, ", "), s.stockAnswer["sku"]))
	}
	return strings.Join(says, "; ")
}

func (s skuState) number(field string) int64 {
	n, ok := s.stockAnswer[field].(json.Number)
	if !ok {
		return 0
	}
	i, _ := n.Int64()
	return i
}

var overviewFields = []string{"on_hand", "held", "offered", "open_to_all", "sold", "waiting"}

func (o *overview) print(out io.Writer, all bool) error {
	verdict := map[int]string{statusWell: "all is well", statusLook: "a person should look", statusGrave: "units or money are at stake, or it cannot be told"}[o.Exit]
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s: %s\n", o.Door, verdict)
	for _, line := range o.Attention {
		fmt.Fprintf(w, "! %s\n", line)
	}
	fmt.Fprintf(w, "open refunds: %s   parked events: %s   SKUs: %s\n", amount(o.Refunds), amount(o.Events), amount(o.SKUs))
	shown := o.SKUs
	if !all && len(shown) > screenful {
		shown = shown[:screenful]
	}
	if len(shown) > 0 {
		fmt.Fprintln(w, "\nsku\tstate\t"+strings.Join(overviewFields, "\t")+"\t")
	}
	for _, s := range shown {
		fmt.Fprintf(w, "%v\t%s", s.stockAnswer["sku"], s.state)
		for _, field := range overviewFields {
			v, known := s.stockAnswer[field]
			if !known {
				v = "-" // a closed gate has no numbers
			}
			fmt.Fprintf(w, "\t%v", v)
		}
		fmt.Fprintf(w, "\t%s\n", s.note)
	}
	if rest := len(o.SKUs) - len(shown); rest > 0 {
		fmt.Fprintf(w, "and %d more; --all shows them\n", rest)
	}
	return w.Flush()
}

func amount[Row any](rows []Row) string {
	if rows == nil {
		return "not known"
	}
	return fmt.Sprint(len(rows))
}

// exitError ends the program with a code of its own.
type exitError struct {
	code int
	error
}

func (e exitError) Unwrap() error { return e.error }

// exitCodeOf is the code that err asks for.
func exitCodeOf(err error) (int, bool) {
	var own exitError
	if errors.As(err, &own) {
		return own.code, true
	}
	return 0, false
}
