package contract

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

// Prefixes of the public ids, which are workflow ids as well.
const (
	HoldPrefix    = "hold_"
	EntryPrefix   = "entry_"
	PaymentPrefix = "payment_"
	EventPrefix   = "event_"
	OptOutPrefix  = "optout_"
	stockPrefix   = "stock."
	recPrefix     = "reconcile."
)

const (
	numberBytes = 5  // 40 bits: eight base32 characters exactly
	idBytes     = 16 // number + 88 bits
	// IDTailBytes is how many bytes of an id follow the SKU number.
	IDTailBytes = idBytes - numberBytes
	idChars     = 26
	numberChars = 8
)

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ErrBadID says that a text is no id of the kind asked for.
var ErrBadID = errors.New("not a valid id")

// ValidSKU says whether s is a SKU: 1 to 64 of A-Z, a-z, 0-9, ".", "_", "-", and
// not "." or "..".
func ValidSKU(s string) bool {
	if len(s) == 0 || len(s) > 64 || s == "." || s == ".." { // the dots are no segment of a path
		return false
	}
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
		default:
			return false
		}
	}
	return true
}

// SKUNumber is the first 40 bits of SHA-256(sku) in base32: the eight
// characters that begin every id of the SKU's entries and holds.
func SKUNumber(sku string) string {
	sum := sha256.Sum256([]byte(sku))
	return idEncoding.EncodeToString(sum[:numberBytes])
}

// HoldID builds a hold's id from the SKU and the first IDTailBytes of tail.
func HoldID(sku string, tail []byte) string { return newID(HoldPrefix, sku, tail) }

// EntryID builds an entry's id from the SKU and the first IDTailBytes of tail.
func EntryID(sku string, tail []byte) string { return newID(EntryPrefix, sku, tail) }

func newID(prefix, sku string, tail []byte) string {
	sum := sha256.Sum256([]byte(sku))
	raw := make([]byte, 0, idBytes)
	raw = append(raw, sum[:numberBytes]...)
	raw = append(raw, tail[:IDTailBytes]...)
	return prefix + idEncoding.EncodeToString(raw)
}

// HoldIDFromBytes builds a hold's id from its 16 raw bytes.
func HoldIDFromBytes(raw [idBytes]byte) string { return HoldPrefix + idEncoding.EncodeToString(raw[:]) }

// HoldIDBytes returns the 16 raw bytes of a hold's id, or ErrBadID.
func HoldIDBytes(id string) ([idBytes]byte, error) { return parseID(HoldPrefix, id) }

// HoldNumber returns the SKU number that a hold's id begins with, or ErrBadID.
func HoldNumber(id string) (string, error) { return numberOf(HoldPrefix, id) }

// EntryNumber returns the SKU number that an entry's id begins with, or
// ErrBadID.
func EntryNumber(id string) (string, error) { return numberOf(EntryPrefix, id) }

func numberOf(prefix, id string) (string, error) {
	if _, err := parseID(prefix, id); err != nil {
		return "", err
	}
	return id[len(prefix):][:numberChars], nil
}

// parseID accepts one spelling of an id only: the last letter has two bits to
// spare, and a decoder alone would pass over them.
func parseID(prefix, id string) ([idBytes]byte, error) {
	var out [idBytes]byte
	rest, ok := strings.CutPrefix(id, prefix)
	if ok && len(rest) == idChars {
		raw, err := idEncoding.DecodeString(rest)
		if err == nil && idEncoding.EncodeToString(raw) == rest {
			copy(out[:], raw)
			return out, nil
		}
	}
	return out, fmt.Errorf("%w: %.60q", ErrBadID, id)
}

// PaymentID is the workflow id of the Payment of one payment reference at one
// hold: "payment_" and base32 of the first 16 bytes of
// SHA-256(hold id, newline, payment_ref), so that a stranger can build it.
func PaymentID(holdID, paymentRef string) string {
	sum := sha256.Sum256([]byte(holdID + "\n" + paymentRef))
	return PaymentPrefix + idEncoding.EncodeToString(sum[:idBytes])
}

// ValidPaymentID says whether id is the workflow id of a Payment.
func ValidPaymentID(id string) bool {
	_, err := parseID(PaymentPrefix, id)
	return err == nil
}

// EventID is the workflow id of an event and its webhook-id: "event_" and base32
// of the first 16 bytes of SHA-256(subject, newline, type, newline, nth). nth
// tells apart what may happen to a subject more than once; where nothing can, it
// is empty. So whoever tells of the same thing again makes the same event.
func EventID(subject, kind, nth string) string {
	sum := sha256.Sum256([]byte(subject + "\n" + kind + "\n" + nth))
	return EventPrefix + idEncoding.EncodeToString(sum[:idBytes])
}

// ValidEventID says whether id is the workflow id of an Event.
func ValidEventID(id string) bool {
	_, err := parseID(EventPrefix, id)
	return err == nil
}

// OptOutID is the workflow id of a person's OptOut: open means opted out.
func OptOutID(person string) string { return OptOutPrefix + person }

// StockWorkflowID is the workflow id of a SKU's durable book.
func StockWorkflowID(sku string) string { return stockPrefix + sku }

// ReconcileWorkflowID is the workflow id of the one repair of a SKU that may
// run at a time.
func ReconcileWorkflowID(sku string) string { return recPrefix + sku }

// SKUOfStockWorkflow is the SKU of a Stock's workflow id.
func SKUOfStockWorkflow(id string) (string, bool) {
	sku, ok := strings.CutPrefix(id, stockPrefix)
	return sku, ok && ValidSKU(sku)
}
