package starter

import (
	"context"

	"holdfast/contract"
)

// roomInBook refuses a stock event while too many of its SKU wait for the gate: the
// book carries them from run to run, and one that has grown too large ends. It asks
// the book only after an event that was not decided at once. A book that does not
// answer has no worker, and takes the event as a signal all the same.
func (d *Door) roomInBook(ctx context.Context, sku string) error {
	if _, behind := d.behind.Load(sku); !behind {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var book contract.StockBook
	if err := d.launcher.Status(ctx, contract.StockWorkflowID(sku), &book); err != nil {
		d.log.Warn("a book did not say what waits in it", "sku", sku, "error", err)
		return nil
	}
	switch n := len(book.Pending); {
	case n >= contract.MaxPendingEvents:
		return tryLater(retryClosed, "%d stock events of SKU %s wait for its gate; this one is not recorded, repeat the request as it was", n, sku)
	case n == 0:
		d.behind.Delete(sku)
	}
	return nil
}
