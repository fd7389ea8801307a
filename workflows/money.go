package workflows

import (
	"errors"

	"go.temporal.io/sdk/converter"

	"holdfast/contract"
)

// payment is money that somebody says has arrived.
type payment struct {
	ref   string
	money *contract.Money // nil when the amount was not told
}

// newPayment refuses what is no payment.
func newPayment(ref string, amount *int64, currency string) (payment, error) {
	if err := contract.CheckPaymentRef(ref); err != nil {
		return payment{}, err
	}
	money, err := newMoney(amount, currency)
	return payment{ref: ref, money: money}, err
}

func newMoney(amount *int64, currency string) (*contract.Money, error) {
	return contract.NewMoney(amount, currency)
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

// askable says that the gate can be asked about this money. It would refuse the rest
// for ever, whoever sent it.
func askable(in contract.PaymentInput) bool {
	return contract.ValidSKU(in.SKU) && in.HoldID != "" && contract.CheckPaymentRef(in.PaymentRef) == nil
}

func undecodable(holdID, sku string, data []byte) contract.PaymentInput {
	return contract.UndecodablePayment(holdID, sku, data)
}

// outcomeOf is the confirm outcome that tells a caller why their money made no
// sale.
func outcomeOf(cause string) string {
	switch cause {
	case contract.CauseSecond, contract.CauseOtherHold:
		return contract.ConfirmConflict
	case contract.CauseMismatched:
		return contract.ConfirmAmountMismatch
	default:
		return contract.ConfirmHoldEnded
	}
}
