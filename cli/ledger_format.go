package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// ledgerWriter shows pages of a ledger.
type ledgerWriter interface {
	write(lines []ledgerLine) error
}

func newLedgerWriter(w io.Writer, format string) (ledgerWriter, error) {
	switch format {
	case "table":
		return &tableLedger{out: w}, nil
	case "jsonl":
		return jsonLedger{w}, nil
	case "csv":
		return &csvLedger{out: csv.NewWriter(w)}, nil
	}
	return nil, usagef("--format is %q; it must be table, jsonl or csv", format)
}

// movedCounters are what a line may move, in the order of the columns.
var movedCounters = []string{"on_hand", "held", "offered", "sold", "received", "corrected", "returned"}

// tableLedger is for a person: what moved, where that led, of what and of whom.
type tableLedger struct {
	out   io.Writer
	begun bool
}

func (t *tableLedger) write(lines []ledgerLine) error {
	if len(lines) == 0 && t.begun {
		return nil
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	if !t.begun {
		fmt.Fprintln(w, "at\tseq\tverb\tkind\tunits\ton_hand\theld\toffered\tsold\tof\tperson\tactor\treason\tgeneration\tpayment_ref\tamount")
		t.begun = true
	}
	for _, l := range lines {
		amount := ""
		if l.Amount != nil {
			amount = fmt.Sprintf("%d %s", *l.Amount, l.Currency)
		}
		fmt.Fprintf(w, "%s\t%d/%d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			l.At, l.Epoch, l.N, l.Verb, l.Kind, l.Units, l.OnHand, l.Held, l.Offered, l.Sold,
			inTable(l.RefID), inTable(l.Person), inTable(l.Actor), inTable(l.Reason), l.Generation, inTable(l.PaymentRef), inTable(amount))
	}
	return w.Flush()
}

// inTable keeps a text from outside on its line and in its column, and from
// speaking to the terminal. An empty one is shown, or columns would be hard to
// tell apart.
func inTable(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// jsonLedger passes each line on as the door wrote it.
type jsonLedger struct{ out io.Writer }

func (j jsonLedger) write(lines []ledgerLine) error {
	for _, l := range lines {
		var text bytes.Buffer
		if err := json.Compact(&text, l.raw); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(j.out, text.String()); err != nil {
			return err
		}
	}
	return nil
}

// csvLedger is for a spreadsheet.
type csvLedger struct {
	out   *csv.Writer
	begun bool
}

func (c *csvLedger) write(lines []ledgerLine) error {
	if !c.begun {
		head := []string{
			"at", "epoch", "n", "verb", "kind", "units", "ref_id", "other_id", "person", "actor", "reason", "generation",
			"payment_ref", "amount", "currency", "on_hand", "held", "offered", "sold",
		}
		for _, name := range movedCounters {
			head = append(head, name+"_moves")
		}
		if err := c.out.Write(head); err != nil {
			return err
		}
		c.begun = true
	}
	for _, l := range lines {
		amount := ""
		if l.Amount != nil {
			amount = whole(*l.Amount)
		}
		row := []string{
			l.At, whole(l.Epoch), whole(l.N), cell(l.Verb), cell(l.Kind), whole(l.Units), cell(l.RefID), cell(l.OtherID), cell(l.Person),
			cell(l.Actor), cell(l.Reason), whole(l.Generation), cell(l.PaymentRef), amount, cell(l.Currency),
			whole(l.OnHand), whole(l.Held), whole(l.Offered), whole(l.Sold),
		}
		for _, name := range movedCounters {
			row = append(row, whole(l.Moves[name]))
		}
		if err := c.out.Write(row); err != nil {
			return err
		}
	}
	c.out.Flush()
	return c.out.Error()
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

// cell keeps a spreadsheet from taking a text for a formula: reasons, actors and
// ids come from outside. Some take the wide signs of Asian keyboards as well.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(s)[0]) {
		return "'" + s
	}
	return s
}
