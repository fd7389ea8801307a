package redis

import (
	"fmt"
	"strconv"
	"strings"

	"holdfast/contract"
)

// The record of a cart's first line names all its lines, so that who has only the
// hold's id finds the others, however long its workflow has been gone. The
// scripts keep the text and never read it.

// cartText is "SKU:units,SKU:units"; a SKU has neither a colon nor a comma. A hold
// of one line has none.
func cartText(lines []contract.Line) string {
	if len(lines) < 2 {
		return ""
	}
	parts := make([]string, len(lines))
	for i, l := range lines {
		parts[i] = l.SKU + ":" + strconv.FormatInt(l.Quantity, 10)
	}
	return strings.Join(parts, ",")
}

func parseCart(id, text string) ([]contract.Line, error) {
	if text == "" {
		return nil, nil
	}
	var lines []contract.Line
	for part := range strings.SplitSeq(text, ",") {
		sku, units, _ := strings.Cut(part, ":")
		n, err := strconv.ParseInt(units, 10, 64)
		if err != nil || !contract.ValidSKU(sku) {
			return nil, fmt.Errorf("record of %s: %q is no line of a cart", id, part)
		}
		lines = append(lines, contract.Line{SKU: sku, Quantity: n})
	}
	return lines, nil
}
