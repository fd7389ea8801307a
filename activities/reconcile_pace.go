package activities

import (
	"context"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	restShare = 3                     // how much longer a pass rests than it works
	leastRest = 50 * time.Millisecond // shorter ones are saved up: a small SKU needs none
	mostAsked = 10 * time.Millisecond // what askAtOnce questions and their repairs cost, at most
)

// pace keeps a pass, and all of them together, from taking more than its share of
// Temporal, Redis and the machine, however many records there are: shoppers come
// first. Work that takes longer, because others work too, makes for longer rests.
type pace struct {
	looking *atomic.Int32 // passes under way
	owed    time.Duration
}

// worked makes the pass rest for what began then.
func (p *pace) worked(ctx context.Context, began time.Time) error {
	return p.rest(ctx, time.Since(began))
}

// asked is worked for a few questions to Temporal. On a busy machine they wait far
// longer than they work, and to rest for that, too, would keep a hundred thousand
// records without an owner from the line for hours.
func (p *pace) asked(ctx context.Context, began time.Time) error {
	return p.rest(ctx, min(time.Since(began), mostAsked))
}

func (p *pace) rest(ctx context.Context, work time.Duration) error {
	p.owed += restShare * time.Duration(p.looking.Load()) * work
	if p.owed < leastRest {
		return ctx.Err()
	}
	rest := time.NewTimer(p.owed)
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-rest.C:
		p.owed = 0
		return nil
	}
}

// openSet are the workflows that Temporal's list has as open, in little memory: by a
// hash, of another seed in each pass. Whoever is not in it is asked for; of a record
// whose hash is another's by chance the next pass finds that it has no owner.
type openSet struct {
	seed    maphash.Seed
	listed  map[uint64]struct{}
	offered map[uint64]struct{} // entries that know of an offer
}

func newOpenSet() openSet {
	return openSet{seed: maphash.MakeSeed(), listed: map[uint64]struct{}{}, offered: map[uint64]struct{}{}}
}

func (s openSet) add(to map[uint64]struct{}, id string) { to[maphash.String(s.seed, id)] = struct{}{} }

func (s openSet) has(in map[uint64]struct{}, id string) bool {
	_, has := in[maphash.String(s.seed, id)]
	return has
}

// rung remembers what alarms of each SKU the log was told of: those of every minute
// would bury what else needs a person.
type rung struct {
	mu   sync.Mutex
	last map[string]rang
}

type rang struct {
	alarms string
	passes int32 // one after the other that found them
}

// worthALine says whether the alarms of a pass are told in the log: when they are
// others than the last one's, and then each time that twice as many passes had them.
func (r *rung) worthALine(sku string, alarms []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(alarms) == 0 {
		delete(r.last, sku)
		return false
	}
	if r.last == nil {
		r.last = map[string]rang{}
	}
	is := rang{alarms: strings.Join(alarms, "\n"), passes: 1}
	if last := r.last[sku]; last.alarms == is.alarms {
		is.passes = last.passes + 1
	}
	r.last[sku] = is
	return worthALine(is.passes)
}
