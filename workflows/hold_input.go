package workflows

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/contract"
)

// Any client of Temporal may start a Hold. What the gate would refuse, it would
// refuse for ever, and the workflow would ask for ever.

// mostSeconds of one clock of a hold: a day, far above what the settings allow.
const mostSeconds = 24 * 60 * 60

// holdLines answers the merged lines of a hold that can be asked for, or says what
// is wrong with it.
func holdLines(in contract.HoldInput) ([]contract.Line, error) {
	lines, err := contract.MergeLines(in.Lines)
	if err != nil {
		return nil, err
	}
	if number, err := contract.HoldNumber(in.HoldID); err != nil || number != contract.SKUNumber(lines[0].SKU) {
		// Nobody could find it, or its other lines, by its id.
		return nil, fmt.Errorf("the id must begin with the number of its first SKU, %s", lines[0].SKU)
	}
	if in.Person == "" {
		return nil, errors.New("person is empty: whose hold is it?")
	}
	s := in.Settings
	return lines, errors.Join(
		within("hold_seconds", s.HoldSeconds, 1, mostSeconds),
		within("extension_seconds", s.ExtensionSeconds, 0, mostSeconds),
		within("grace_seconds", s.GraceSeconds, 0, mostSeconds),
	)
}

// isWord says that a reason can stand in the record, the ledger and every list, as the
// door's can.
func isWord(reason string) bool {
	return reason != "" && utf8.RuneCountInString(reason) <= maxReason && !strings.ContainsFunc(reason, unicode.IsControl)
}

const maxReason = 64 // characters
