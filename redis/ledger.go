package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Ledger reads at most limit lines after the stream id after ("" from the
// beginning), oldest first. It reads while the gate is closed, too.
func (g *Gate) Ledger(ctx context.Context, sku, after string, limit int64) ([]LedgerLine, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	messages, err := g.rdb.XRangeN(ctx, key(sku, "ledger"), from, "+", limit).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: ledger of %s: %w", ErrUnavailable, sku, err)
	}
	lines := make([]LedgerLine, len(messages))
	for i, m := range messages {
		lines[i] = parseLine(m)
	}
	return lines, nil
}

func parseLine(m goredis.XMessage) LedgerLine {
	str := func(name string) string {
		s, _ := m.Values[name].(string)
		return s
	}
	num := func(name string) int64 {
		n, err := strconv.ParseInt(str(name), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return LedgerLine{
		ID: m.ID, At: time.UnixMilli(num("t")).UTC(), Epoch: num("e"), N: num("n"), Verb: str("v"), Kind: str("k"), Units: num("u"),
		RefID: str("i"), Person: str("p"), Actor: str("a"), Reason: str("r"), Generation: num("g"), PaymentRef: str("f"),
		Amount: num("m"), Currency: str("c"), OnHand: num("oh"), Held: num("h"), Offered: num("o"), Sold: num("s"),
	}
}
