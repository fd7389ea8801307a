package starter

import (
	"context"
	"slices"
	"time"

	"holdfast/contract"
)

const noteTimeout = time.Second // for what only helps to find things later

// noteNames lets a hold be found by its order and its customer. That it could not be
// noted is no reason to refuse a hold that has been promised.
func (d *Door) noteNames(ctx context.Context, in contract.HoldInput) {
	names := d.keys.NamesOf(contract.HoldStatus{Customer: in.Customer, OrderRef: in.OrderRef, Person: in.Person, EntryID: in.EntryID})
	if err := d.gate.NoteHold(ctx, in.HoldID, names...); err != nil {
		d.log.Warn("a hold will not be found by the shop's names", "error", err)
	}
}

// notePaying lets a hold be found by a payment that was told for it and has not sold it:
// one that has begun, failed, was of another amount or was never answered. holdID may be
// no hold's at all, for money that met none.
func (d *Door) notePaying(ctx context.Context, holdID, ref string) {
	if ref == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	if err := d.gate.NotePaying(ctx, holdID, d.keys.PaymentPrint(ref)); err != nil {
		d.log.Warn("a hold will not be found by its payment", "error", err)
	}
}

// seekNames finds holds by what the shop calls them: a payment, an order, a customer.
func (f *finding) seekNames(ctx context.Context, term string) error {
	paid, err := f.d.gate.HoldOfPayment(ctx, term)
	if err != nil {
		return err
	}
	told, err := f.holdsNamed(ctx, f.d.keys.PaymentPrint(term))
	if err != nil {
		return err
	}
	if paid != "" && !slices.Contains(told, paid) {
		told = append(told, paid)
	}
	for _, id := range told {
		f.paymentIfKnown(ctx, contract.PaymentID(id, term)) // also when there is no such hold
	}
	for _, print := range []string{f.d.keys.OrderPrint(term), f.d.keys.CustomerPrint(term)} {
		if _, err := f.holdsNamed(ctx, print); err != nil {
			return err
		}
	}
	f.hold(paid)
	return nil
}

// holdsNamed notes the holds of a name.
func (f *finding) holdsNamed(ctx context.Context, print string) ([]string, error) {
	ids, err := f.d.gate.HoldsNamed(ctx, print)
	slices.Sort(ids)
	for _, id := range ids {
		f.hold(id)
	}
	return ids, err
}
