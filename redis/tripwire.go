package redis

import (
	"context"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"holdfast/contract"
)

// Rings are the wires of the tripwire that ring by the counters alone.
func (c Counters) Rings() (rings []contract.Ring) {
	ring := func(wire, format string, args ...any) {
		rings = append(rings, contract.Ring{Wire: wire, Says: fmt.Sprintf(format, args...)})
	}
	if c.Sold > c.Received+c.Corrected {
		ring(contract.WireOversold, "%d units are sold, and only %d have ever been there (received %d, corrected %d)",
			c.Sold, c.Received+c.Corrected, c.Received, c.Corrected)
	}
	if c.Shortfall > 0 {
		ring(contract.WireShortfall, "more is promised than there is, by %d", c.Shortfall)
	}
	if min(c.OnHand, c.Held, c.Offered, c.Sold, c.Returned) < 0 {
		ring(contract.WireNegative, "a counter is negative: on_hand %d, held %d, offered %d, sold %d, returned %d",
			c.OnHand, c.Held, c.Offered, c.Sold, c.Returned)
	}
	if c.Received+c.Corrected != c.OnHand+c.Sold {
		ring(contract.WireLedger, "received + corrected is %d, on_hand + sold is %d", c.Received+c.Corrected, c.OnHand+c.Sold)
	}
	return rings
}

// Tripwire is a Snapshot with the wires that ring: by the counters, and by the last
// line of the ledger, which must lead to them. The rest of the ledger is not read, so
// it may be asked for often.
func (g *Gate) Tripwire(ctx context.Context, sku string) (Counters, []contract.Ring, error) {
	c, _, err := g.Snapshot(ctx, sku)
	if err != nil {
		return c, nil, err
	}
	rings, err := g.Rings(ctx, c)
	return c, rings, err
}

// Rings are the wires of Tripwire, of a SKU whose counters were just read.
func (g *Gate) Rings(ctx context.Context, c Counters) ([]contract.Ring, error) {
	says, err := g.lastLine(ctx, c.SKU)
	if err != nil {
		return nil, fmt.Errorf("%w: last line of %s: %w", ErrUnavailable, c.SKU, err)
	}
	return withLedger(c.Rings(), says), nil
}

// TripwireAndLedger is Tripwire with the last page of the ledger, line by line.
func (g *Gate) TripwireAndLedger(ctx context.Context, sku string) (Counters, []contract.Ring, error) {
	c, _, err := g.Snapshot(ctx, sku)
	if err != nil {
		return c, nil, err
	}
	st, _, err := g.CompareCounters(ctx, sku)
	if err != nil {
		return c, nil, err
	}
	return c, withLedger(c.Rings(), st.Ledger()), nil
}

// Ledger says where the ledger does not lead to the counters, or cannot be read; ""
// when it is right since the counters were last counted anew.
func (st Statement) Ledger() string {
	says := append([]string{}, st.Faults[:st.Recent]...)
	for _, d := range st.Drift {
		if d.Against == AgainstLedger {
			says = append(says, fmt.Sprintf("%s is %d, by the ledger %d", d.Part, d.Counter, d.Adds))
		}
	}
	return strings.Join(says, "; ")
}

func withLedger(rings []contract.Ring, says string) []contract.Ring {
	if says == "" {
		return rings
	}
	if n := len(rings); n > 0 && rings[n-1].Wire == contract.WireLedger {
		rings[n-1].Says += "; " + says
		return rings
	}
	return append(rings, contract.Ring{Wire: contract.WireLedger, Says: says})
}

// lastLine says in what the counters are not those that the newest line has left; ""
// when they are. Both are of one instant.
func (g *Gate) lastLine(ctx context.Context, sku string) (says string, err error) {
	var stock *goredis.MapStringStringCmd
	var newest *goredis.XMessageSliceCmd
	_, err = g.rdb.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		stock = p.HGetAll(ctx, key(sku, "stock"))
		newest = p.XRevRangeN(ctx, key(sku, "ledger"), "+", "-", 1)
		return nil
	})
	if err != nil || len(stock.Val()) == 0 || len(newest.Val()) == 0 {
		return "", err
	}
	r := statementReader{g: g, sku: sku}
	c, l := r.countersOf(stock.Val()), g.parseLine(newest.Val()[0])
	now, line := Movement{OnHand: c.OnHand, Held: c.Held, Offered: c.Offered, Sold: c.Sold}, l.after()
	if now == line {
		return "", nil
	}
	return fmt.Sprintf("the ledger's last line, no. %d of epoch %d, leaves on_hand %d, held %d, offered %d, sold %d, and the counters are %d, %d, %d, %d",
		l.N, l.Epoch, line.OnHand, line.Held, line.Offered, line.Sold, now.OnHand, now.Held, now.Offered, now.Sold), nil
}
