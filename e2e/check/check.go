package check

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// lookAgain is the pause between two looks: longer than an ending takes from the
// gate to the workflow's close.
const lookAgain = time.Second

// Checker reads one running Holdfast.
type Checker struct {
	Redis    goredis.UniversalClient
	Temporal client.Client
	Lease    time.Duration // gate.lease
	Texts    func() ([]Text, error)
	Codec    converter.PayloadCodec // decrypts payloads; nil when they are plain
}

// Read collects the facts of a SKU.
func (c *Checker) Read(ctx context.Context, sku string) (Facts, error) {
	f, err := c.Gate(ctx, sku)
	if err != nil {
		return f, err
	}
	if err := readCarts(ctx, c.Redis, &f); err != nil {
		return f, err
	}
	if err := readWorkflows(ctx, c, &f); err != nil {
		return f, err
	}
	texts, err := c.Texts()
	if err != nil {
		return f, err
	}
	for _, t := range texts {
		// The file has the texts of every SKU, and perhaps newer ones than the
		// records that were just read.
		if _, ours := f.Entries[t.Entry]; ours {
			f.Texts = append(f.Texts, t)
		}
	}
	return f, nil
}

// Check answers what is broken at a SKU. What the gate's own keys show is read
// in one transaction and true at once. Redis and Temporal cannot be read in one
// instant: what a second and a third look do not find again there was a
// movement in between.
func (c *Checker) Check(ctx context.Context, sku string) ([]Violation, error) {
	found, _, err := c.CheckLive(ctx, sku)
	return found, err
}

// CheckLive is Check of a SKU that is in use. It also answers how many live holds with
// an owner the first look saw: without any, I6 was asked of nothing.
func (c *Checker) CheckLive(ctx context.Context, sku string) (found []Violation, owned int, err error) {
	for look := range 3 {
		f, err := c.Read(ctx, sku)
		if err != nil {
			return nil, owned, err
		}
		if broken := JudgeGate(f); len(broken) > 0 {
			return broken, owned, nil
		}
		if look == 0 {
			owned = f.Owned()
		}
		found = again(found, JudgeOwners(f), look == 0)
		if len(found) == 0 {
			return nil, owned, nil
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil, owned, ctx.Err()
		}
	}
	return found, owned, nil
}

// again keeps of now what was found before as well.
func again(before, now []Violation, first bool) []Violation {
	if first {
		return now
	}
	seen := map[string]bool{}
	for _, v := range before {
		seen[v.key()] = true
	}
	var out []Violation
	for _, v := range now {
		if seen[v.key()] {
			out = append(out, v)
		}
	}
	return out
}

// JudgeGate applies the rules over records and ledger: I1 to I4, I7, I8.
func JudgeGate(f Facts) []Violation {
	r := &report{sku: f.SKU}
	s := r.replay(f)
	r.parts(f, s)
	r.agree(f, s)
	r.people(f)
	r.places(f)
	return r.found
}

// JudgeOwners applies the rules that need workflows or texts: I5, I6, I8.
func JudgeOwners(f Facts) []Violation {
	s := (&report{}).replay(f)
	r := &report{sku: f.SKU}
	r.owners(f)
	r.carts(f)
	r.order(f, s.before)
	r.unserved(f)
	r.texts(f)
	return r.found
}
