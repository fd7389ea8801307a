package contract

import (
	"cmp"
	"fmt"
	"slices"
)

// Bounds of a hold's lines, after those of one SKU were put together.
const (
	MaxLines = 20
	MaxUnits = 1_000_000_000 // of one line
)

// LineError says which of the lines that were asked for is wrong. Index counts
// from 0; -1 when it is none of them alone.
type LineError struct {
	Index  int
	Detail string
}

func (e *LineError) Error() string {
	if e.Index < 0 {
		return "lines " + e.Detail
	}
	return fmt.Sprintf("line %d %s", e.Index+1, e.Detail)
}

// MergeLines puts the lines of one SKU together and answers them in the order of
// their SKUs, in which a hold takes them: two carts that name the same SKUs never
// wait for each other crosswise. An error is a *LineError: no lines, more than
// MaxLines SKUs, or a quantity that is not 1 to MaxUnits, alone or together.
func MergeLines(lines []Line) ([]Line, error) {
	if len(lines) == 0 {
		return nil, &LineError{Index: -1, Detail: "are missing; a hold has at least one"}
	}
	var out []Line
	for i, l := range lines {
		if !ValidSKU(l.SKU) {
			return nil, &LineError{Index: i, Detail: fmt.Sprintf("names %q, which is no SKU", l.SKU)}
		}
		if l.Quantity < 1 || l.Quantity > MaxUnits {
			return nil, &LineError{Index: i, Detail: fmt.Sprintf("asks for %d units; from 1 to %d", l.Quantity, MaxUnits)}
		}
		at := slices.IndexFunc(out, func(o Line) bool { return o.SKU == l.SKU })
		if at < 0 {
			out = append(out, l)
			continue
		}
		if out[at].Quantity += l.Quantity; out[at].Quantity > MaxUnits {
			return nil, &LineError{Index: i, Detail: fmt.Sprintf("makes %d units of SKU %s together; at most %d", out[at].Quantity, l.SKU, MaxUnits)}
		}
	}
	if len(out) > MaxLines {
		return nil, &LineError{Index: -1, Detail: fmt.Sprintf("name %d SKUs; a hold has at most %d", len(out), MaxLines)}
	}
	slices.SortFunc(out, func(a, b Line) int { return cmp.Compare(a.SKU, b.SKU) })
	return out, nil
}

// CartState is the state of a hold from the states of its lines' records, in the
// order of the lines. It is sold, or held, only when every line is; while some are
// sold and others are not, somebody is between two lines, and it is held. Without a
// live or a sold line it is refused when a line was, else as its first line ended.
func CartState(lines ...HoldState) HoldState {
	count := map[HoldState]int{}
	for _, s := range lines {
		count[s]++
	}
	switch first := lines[0]; {
	case count[first] == len(lines):
		return first
	case count[HoldSold] > 0:
		return HoldHeld
	case count[HoldProvisional] > 0, count[HoldHeld] > 0 && count[HoldSwept] > 0:
		return HoldProvisional
	case count[HoldHeld] > 0:
		return HoldHeld
	case count[HoldRefused] > 0:
		return HoldRefused
	default:
		return first
	}
}

// CartStateOf is CartState where a sold line whose units have all come back follows
// the lines of its cart that were given back: there is nothing of its sale to undo.
// back says so of each line.
func CartStateOf(lines []HoldState, back []bool) HoldState {
	unsold := func(s HoldState) bool { return s.Ended() && s != HoldSold }
	if !slices.ContainsFunc(lines, unsold) {
		return CartState(lines...)
	}
	lines = slices.Clone(lines)
	for i, s := range lines {
		if s == HoldSold && back[i] {
			lines[i] = HoldReleased
		}
	}
	return CartState(lines...)
}
