package activities

import (
	"context"
	"maps"
	"slices"

	"holdfast/contract"
	"holdfast/redis"
)

// bookTotals are what came in: as the book says, and what of its pending events the
// gate has decided. One that the gate decided no later than the book's last was
// counted there already.
type bookTotals struct{ received, returned, corrected int64 }

func totalsOf(book contract.StockBook, outcomes map[string]redis.StockOutcome) bookTotals {
	t := bookTotals{book.Received, book.Returned, book.Corrected}
	for _, ev := range book.Pending {
		switch out := outcomes[ev.EventID]; {
		case out.N <= book.DecidedN:
		case ev.Kind == contract.StockRestock:
			t.received += out.Delta
		case ev.Kind == contract.StockReturn:
			t.returned += out.Delta
		default:
			t.corrected += out.Delta
		}
	}
	return t
}

// eventReader reads the outcomes of stock events that the gate has decided.
type eventReader interface {
	InspectEvents(ctx context.Context, sku string, eventIDs []string) (map[string]redis.StockOutcome, error)
}

func eventOutcomes(ctx context.Context, gate eventReader, sku string, ids []string) (map[string]redis.StockOutcome, error) {
	all := make(map[string]redis.StockOutcome, len(ids))
	for batch := range slices.Chunk(ids, checkBatch) {
		part, err := gate.InspectEvents(ctx, sku, batch)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, part)
	}
	return all, nil
}
