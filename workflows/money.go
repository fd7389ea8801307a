package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"

	"go.temporal.io/sdk/converter"

	"holdfast/contract"
)

// payment is money that somebody says has arrived.
type payment struct {
	ref   string
	money *contract.Money // nil when the amount was not told
}

// What may travel on: longer references are no references of a payment, and a
// payload beyond maxRaw stays in the history of the hold that got it.
const (
	maxRef = 200       // characters
	maxRaw = 32 * 1024 // bytes
)

// newPayment refuses what is no payment.
func newPayment(ref string, amount *int64, currency string) (payment, error) {
	if ref == "" {
		return payment{}, errors.New("payment_ref is empty: send the reference of the payment")
	}
	if n := utf8.RuneCountInString(ref); n > maxRef {
		return payment{}, fmt.Errorf("payment_ref has %d characters: at most %d", n, maxRef)
	}
	money, err := newMoney(amount, currency)
	return payment{ref: ref, money: money}, err
}

func newMoney(amount *int64, currency string) (*contract.Money, error) {
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
	return &contract.Money{Amount: *amount, Currency: currency}, nil
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

// decode reads a signal's payload by hand: the SDK would drop one that it
// cannot read, and money with it.
func decode(raw converter.RawValue, into any) error {
	if len(raw.Payload().GetData()) == 0 {
		return errors.New("the signal has no payload")
	}
	return converter.GetDefaultDataConverter().FromPayload(raw.Payload(), into)
}

func amountOf(m *contract.Money) (amount *int64, currency string) {
	if m == nil {
		return nil, ""
	}
	return &m.Amount, m.Currency
}

func paymentInput(holdID, sku string, p payment, cause string) contract.PaymentInput {
	amount, currency := amountOf(p.money)
	return contract.PaymentInput{
		PaymentID:  contract.PaymentID(holdID, p.ref),
		HoldID:     holdID,
		SKU:        sku,
		PaymentRef: p.ref,
		Amount:     amount,
		Currency:   currency,
		Cause:      cause,
	}
}

// undecodable is the Payment of a payload that nobody could read; the same
// bytes always make the same one. Of a large one it carries the beginning.
func undecodable(holdID, sku string, data []byte) contract.PaymentInput {
	sum := sha256.Sum256(data)
	in := paymentInput(holdID, sku, payment{ref: "raw-" + hex.EncodeToString(sum[:])}, contract.CauseUndecodable)
	in.Raw = data[:min(len(data), maxRaw)]
	return in
}

// outcomeOf is the confirm outcome that tells a caller why their money made no
// sale.
func outcomeOf(cause string) string {
	switch cause {
	case contract.CauseSecond:
		return contract.ConfirmConflict
	case contract.CauseMismatched:
		return contract.ConfirmAmountMismatch
	default:
		return contract.ConfirmHoldEnded
	}
}
