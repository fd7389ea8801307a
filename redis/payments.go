package redis

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"holdfast/contract"
)

//go:embed registry/claim_payment.lua
var claimPaymentText string

var claimPayment = goredis.NewScript(claimPaymentText)

// PaymentOwner says whose a payment is, and whether its money went back.
type PaymentOwner struct {
	HoldID    string
	Settled   bool
	Reference string // the provider's, of a settled refund; may be empty
}

// ClaimPayment gives a payment reference to the first hold that it is told for,
// before it may sell that hold or be marked for refund, and answers whose it is. So
// one payment never pays for two holds, and one that made a sale is never refunded
// because it was also told for another. A claim by a hold that the gate does not know
// is given up to the next. Claims are kept for the retention of sales. ErrUnavailable.
func (g *Gate) ClaimPayment(ctx context.Context, holdID, paymentRef string) (PaymentOwner, error) {
	owner, err := g.claimPayment(ctx, holdID, paymentRef, "", "", "")
	if err != nil || owner.HoldID == holdID || owner.Settled {
		return owner, err
	}
	known, err := g.knowsHold(ctx, owner.HoldID)
	if err != nil || known {
		return owner, err
	}
	return g.claimPayment(ctx, holdID, paymentRef, owner.HoldID, "", "")
}

// SettlePayment notes that the money of a payment went back, so that a repeat is known
// when its Payment is long forgotten. A payment of another hold is left as it is.
func (g *Gate) SettlePayment(ctx context.Context, holdID, paymentRef, reference string) (PaymentOwner, error) {
	return g.claimPayment(ctx, holdID, paymentRef, "", "settle", reference)
}

// ReopenPayment takes SettlePayment back: the refund failed after all.
func (g *Gate) ReopenPayment(ctx context.Context, holdID, paymentRef string) (PaymentOwner, error) {
	return g.claimPayment(ctx, holdID, paymentRef, "", "reopen", "")
}

func (g *Gate) claimPayment(ctx context.Context, holdID, paymentRef, replace, move, reference string) (PaymentOwner, error) {
	if err := invalid("claim payment", named("hold id", holdID), named("payment ref", paymentRef)); err != nil {
		return PaymentOwner{}, err
	}
	raw, err := claimPayment.Run(ctx, g.rdb, []string{g.paymentKey(paymentRef)},
		holdID, g.opts.SaleRetention.Milliseconds(), replace, move, g.opts.Refs.Seal(reference)).Slice()
	if err != nil {
		return PaymentOwner{}, fmt.Errorf("%w: whose payment: %w", ErrUnavailable, err)
	}
	r := reply(raw)
	return PaymentOwner{HoldID: r.str(0), Settled: r.int(1) == 1, Reference: g.opts.Refs.Open(r.str(2))}, nil
}

// paymentKey has a fixed length, whatever the reference.
func (g *Gate) paymentKey(ref string) string {
	sum := sha256.Sum256([]byte(g.opts.Refs.Seal(ref)))
	return keyPayment + hex.EncodeToString(sum[:16])
}

// knowsHold says whether the gate has a record of a hold of any SKU.
func (g *Gate) knowsHold(ctx context.Context, holdID string) (bool, error) {
	number, err := contract.HoldNumber(holdID)
	if err != nil {
		return false, nil // no id of ours
	}
	sku, whole, err := g.LookupSKU(ctx, number)
	switch {
	case err != nil:
		return false, err
	case sku == "" && !whole:
		return false, fmt.Errorf("%w: the SKU of %s is not known yet", ErrUnavailable, holdID)
	case sku == "":
		return false, nil
	}
	_, known, err := g.ReadHold(ctx, sku, holdID)
	return known, err
}

// RestorePayment gives a payment reference to the hold that it has sold, when Redis has
// lost whose it was. One that it gives to another stays there. ErrUnavailable.
func (g *Gate) RestorePayment(ctx context.Context, holdID, paymentRef string) error {
	_, err := g.claimPayment(ctx, holdID, paymentRef, "", "", "")
	return err
}
