package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"
)

// What may travel on: longer references are no references of a payment, and a
// payload beyond MaxRaw stays in the history of the hold that got it.
const (
	MaxPaymentRef = 200       // characters
	MaxRaw        = 32 * 1024 // bytes
)

// CheckPaymentRef says what is wrong with the reference of a payment, or nil.
func CheckPaymentRef(ref string) error {
	if ref == "" {
		return errors.New("payment_ref is empty: send the reference of the payment")
	}
	if n := utf8.RuneCountInString(ref); n > MaxPaymentRef {
		return fmt.Errorf("payment_ref has %d characters: at most %d", n, MaxPaymentRef)
	}
	return nil
}

// NewMoney reads an amount as messages carry it: nil when none was told, an error
// for one that is none.
func NewMoney(amount *int64, currency string) (*Money, error) {
	switch {
	case amount == nil && currency == "":
		return nil, nil
	case amount == nil:
		return nil, fmt.Errorf("currency %q without amount: send both or neither", currency)
	case currency == "":
		return nil, fmt.Errorf("amount %d without currency: send both or neither", *amount)
	case *amount < 0:
		return nil, fmt.Errorf("amount %d is below 0: send minor units, 0 or more", *amount)
	case !isCurrency(currency):
		return nil, fmt.Errorf("currency %q is not three capital letters, such as EUR", currency)
	}
	return &Money{Amount: *amount, Currency: currency}, nil
}

func isCurrency(s string) bool {
	if len(s) != 3 {
		return false
	}
	for _, r := range s {
		if r < 'A' || r > 'Z' {
			return false
		}
	}
	return true
}

// UndecodablePayment is the Payment of a payload that nobody could read; the
// same bytes always make the same one. Of a large one it carries the beginning.
func UndecodablePayment(holdID, sku string, data []byte) PaymentInput {
	sum := sha256.Sum256(data)
	ref := "raw-" + hex.EncodeToString(sum[:])
	return PaymentInput{
		PaymentID: PaymentID(holdID, ref), HoldID: holdID, SKU: sku, PaymentRef: ref, Cause: CauseUndecodable, Raw: data[:min(len(data), MaxRaw)],
	}
}
