package worker

import (
	"context"
	"log/slog"
	"time"
)

// booksRetry is the pause before the books are woken again after a failure.
const booksRetry = 2 * time.Second

// skuMap lists the SKUs that Redis knows.
type skuMap interface {
	SKUs(ctx context.Context) ([]string, error)
}

type waker interface {
	Wake(ctx context.Context, sku string) error
}

// wakeBooks wakes the book of every SKU once, so that no wake that was lost
// leaves an outbox stranded. It tries until it has succeeded or ctx ends.
func wakeBooks(ctx context.Context, skus skuMap, w waker, log *slog.Logger) {
	for told := false; ; told = true {
		n, err := wakeAll(ctx, skus, w)
		if err == nil {
			log.Info("books woken", "skus", n)
			return
		}
		if ctx.Err() != nil {
			return
		}
		if !told {
			log.Warn("books not woken yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(booksRetry):
		}
	}
}

func wakeAll(ctx context.Context, skus skuMap, w waker) (int, error) {
	known, err := skus.SKUs(ctx)
	if err != nil {
		return 0, err
	}
	for _, sku := range known {
		if err := w.Wake(ctx, sku); err != nil {
			return 0, err
		}
	}
	return len(known), nil
}
