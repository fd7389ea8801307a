package redis

import (
	"context"
	"fmt"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"holdfast/contract"
)

// Owned is a record that needs an open workflow: a held hold, or a live entry that
// has acknowledged or cannot be started any more.
type Owned struct {
	ID       string
	Version  int64
	Since    time.Time // when it came
	Deadline time.Time // of a held hold
	Units    int64     // of a held hold
}

// Untold is an offer that no text was tried for and that no outbox holds: its entry
// may not know.
type Untold struct{ Hold, Entry string }

// Survey is what an open SKU holds, read bite by bite while it moves. Whatever it
// names is to be looked at again under a script.
type Survey struct {
	Owned []Owned
	// Places are records, or ids of none, that something points at wrongly.
	Places []string
	Untold []Untold
	// Unreadable says which records do not parse.
	Unreadable []string
}

// surveyPage is about how many records or places a page has: no command of one keeps
// Redis for a millisecond.
const surveyPage = 200

// surveyParts are the keys that a survey reads, in this order: the records, with what
// points at each, and then what points at records, for pointers at nothing.
var surveyParts = []struct {
	name string
	read func(*surveyor, context.Context, []string) error // what a scan answered: members and their values
}{
	{"holds", (*surveyor).holds},
	{"entries", (*surveyor).entries},
	{"line", (*surveyor).waiting},
	{"back", (*surveyor).waiting},
	{"fresh", (*surveyor).waiting},
	{"parked", (*surveyor).waiting},
	{"limited", (*surveyor).waiting},
	{"leases", (*surveyor).leased},
	{"people", (*surveyor).named},
}

// SurveyAt is where a survey goes on, from the zero value until it is Done. It is good
// for as long as the Redis server runs that it came from: another one has its records
// in another order.
type SurveyAt struct {
	Part   int    `json:"part"`
	Cursor uint64 `json:"cursor"`
}

// Done says that nothing is left to be read.
func (at SurveyAt) Done() bool { return at.Part >= len(surveyParts) }

// SurveyPage reads a page of a SKU's records, or of what points at them, and answers
// where the next one begins. Redis may hand a record out twice while it grows or
// shrinks its table.
func (g *Gate) SurveyPage(ctx context.Context, sku string, at SurveyAt) (Survey, SurveyAt, error) {
	s := surveyor{g: g, sku: sku}
	next, err := s.page(ctx, at)
	if err != nil {
		return Survey{}, at, fmt.Errorf("%w: survey of %s: %w", ErrUnavailable, sku, err)
	}
	return s.out, next, nil
}

// ReadSurvey reads all pages of a SKU.
func (g *Gate) ReadSurvey(ctx context.Context, sku string) (Survey, error) {
	var all Survey
	for at := (SurveyAt{}); !at.Done(); {
		page, next, err := g.SurveyPage(ctx, sku, at)
		if err != nil {
			return Survey{}, err
		}
		at = next
		all.Owned = append(all.Owned, page.Owned...)
		all.Places = append(all.Places, page.Places...)
		all.Untold = append(all.Untold, page.Untold...)
		all.Unreadable = append(all.Unreadable, page.Unreadable...)
	}
	return all, nil
}

// Records answers how many records a SKU has, ended ones with them.
func (g *Gate) Records(ctx context.Context, sku string) (int64, error) {
	holds, err := g.rdb.HLen(ctx, key(sku, "holds")).Result()
	if err != nil {
		return 0, fmt.Errorf("%w: records of %s: %w", ErrUnavailable, sku, err)
	}
	entries, err := g.rdb.HLen(ctx, key(sku, "entries")).Result()
	if err != nil {
		return 0, fmt.Errorf("%w: records of %s: %w", ErrUnavailable, sku, err)
	}
	return holds + entries, nil
}

type surveyor struct {
	g   *Gate
	sku string
	out Survey
}

func (s *surveyor) page(ctx context.Context, at SurveyAt) (next SurveyAt, err error) {
	part := surveyParts[at.Part]
	scan := s.g.rdb.ZScan
	if part.name == "holds" || part.name == "entries" || part.name == "people" {
		scan = s.g.rdb.HScan
	}
	pairs, cursor, err := scan(ctx, key(s.sku, part.name), at.Cursor, "", surveyPage).Result()
	if err == nil {
		err = part.read(s, ctx, pairs)
	}
	if cursor == 0 {
		return SurveyAt{Part: at.Part + 1}, err
	}
	return SurveyAt{Part: at.Part, Cursor: cursor}, err
}

// holds wants a lease for a provisional hold, and an outbox' item for an offer that
// nobody was told of.
func (s *surveyor) holds(ctx context.Context, pairs []string) error {
	var leased, offers, items []string
	entryOf := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		h, err := s.g.parseHold(s.sku, pair[0], pair[1])
		switch {
		case err != nil:
			s.out.Unreadable = append(s.out.Unreadable, err.Error())
		case h.State == contract.HoldHeld:
			s.out.Owned = append(s.out.Owned, Owned{ID: h.ID, Version: h.Version, Since: h.CreatedAt, Deadline: h.Deadline, Units: h.Units})
		case h.State == contract.HoldProvisional:
			leased = append(leased, h.ID)
		case h.State == contract.HoldOffered && h.ToldAt.IsZero():
			offers, items = append(offers, h.ID), append(items, "o:"+h.ID)
			entryOf[h.ID] = h.EntryID
		}
	}
	var leases, outbox scores
	err := s.ask(ctx, func(p goredis.Pipeliner) {
		leases, outbox = s.scores(ctx, p, "leases", leased), s.scores(ctx, p, "offers", items)
	})
	if err != nil {
		return err
	}
	for i, id := range leased {
		if leases.of(i) == 0 {
			s.out.Places = append(s.out.Places, id)
		}
	}
	for i, id := range offers {
		if outbox.of(i) == 0 {
			s.out.Untold = append(s.out.Untold, Untold{Hold: id, Entry: entryOf[id]})
		}
	}
	return nil
}

// entries wants for each live entry its person's name, one place in the right line
// while it waits, and its start in the outbox until it has acknowledged.
func (s *surveyor) entries(ctx context.Context, pairs []string) error {
	var live []Entry
	var ids, people, starts []string
	for pair := range slices.Chunk(pairs, 2) {
		e, err := parseEntry(s.sku, pair[0], pair[1], 0)
		if err != nil {
			s.out.Unreadable = append(s.out.Unreadable, err.Error())
		} else if e.State.Live() { // what still points at an ended one is left over
			live, ids, people, starts = append(live, e), append(ids, e.ID), append(people, e.Person), append(starts, "s:"+e.ID)
		}
	}
	standing := make([]scores, len(places))
	var outbox scores
	var named, parcels *goredis.SliceCmd
	err := s.ask(ctx, func(p goredis.Pipeliner) {
		if len(live) == 0 {
			return
		}
		for i, place := range places {
			standing[i] = s.scores(ctx, p, place.name, ids)
		}
		outbox = s.scores(ctx, p, "outbox", starts)
		named, parcels = p.HMGet(ctx, key(s.sku, "people"), people...), p.HMGet(ctx, key(s.sku, "parcels"), starts...)
	})
	if err != nil {
		return err
	}
	for i, e := range live {
		var found, right int
		for n, place := range places {
			if score := standing[n].of(i); score != 0 {
				found++
				if int64(score) == e.JoinedAt.UnixMicro() && (place.in == PlaceFresh) != e.Acknowledged {
					right++
				}
			}
		}
		lost := e.State == contract.EntryWaiting && (found != 1 || right != 1)
		starts := !e.Acknowledged && parcels.Val()[i] != nil
		if lost || named.Val()[i] != e.ID || starts && outbox.of(i) == 0 {
			s.out.Places = append(s.out.Places, e.ID)
		}
		if !starts && !e.Leaving {
			s.out.Owned = append(s.out.Owned, Owned{ID: e.ID, Version: e.Version, Since: e.JoinedAt})
		}
	}
	return nil
}

// waiting names the places of those who do not wait.
func (s *surveyor) waiting(ctx context.Context, pairs []string) error {
	return s.pointers(ctx, "entries", everyOther(pairs, 0), func(id, raw string) bool {
		e, err := parseEntry(s.sku, id, raw, 0)
		return err != nil || e.State == contract.EntryWaiting // what cannot be read is told of as that
	})
}

// leased names the leases of holds that have none.
func (s *surveyor) leased(ctx context.Context, pairs []string) error {
	return s.pointers(ctx, "holds", everyOther(pairs, 0), func(id, raw string) bool {
		h, err := s.g.parseHold(s.sku, id, raw)
		return err != nil || h.State == contract.HoldProvisional
	})
}

// named names the entries that are no person's live one any more.
func (s *surveyor) named(ctx context.Context, pairs []string) error {
	return s.pointers(ctx, "entries", everyOther(pairs, 1), func(id, raw string) bool {
		e, err := parseEntry(s.sku, id, raw, 0)
		return err != nil || e.State.Live()
	})
}

func everyOther(pairs []string, from int) []string {
	var out []string
	for i := from; i < len(pairs); i += 2 {
		out = append(out, pairs[i])
	}
	return out
}

// pointers adds those of ids to the wrong places whose record is none, or not right.
func (s *surveyor) pointers(ctx context.Context, records string, ids []string, right func(id, raw string) bool) error {
	if len(ids) == 0 {
		return nil
	}
	found, err := s.g.rdb.HMGet(ctx, key(s.sku, records), ids...).Result()
	if err != nil {
		return err
	}
	for i, id := range ids {
		if raw, is := found[i].(string); !is || !right(id, raw) {
			s.out.Places = append(s.out.Places, id)
		}
	}
	return nil
}

// ask sends what build puts together, if it is anything.
func (s *surveyor) ask(ctx context.Context, build func(goredis.Pipeliner)) error {
	_, err := s.g.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
		build(p)
		return nil
	})
	return err
}

// scores are those that a sorted set has for some members.
type scores struct{ cmd *goredis.FloatSliceCmd }

func (s *surveyor) scores(ctx context.Context, p goredis.Pipeliner, name string, members []string) scores {
	if len(members) == 0 {
		return scores{}
	}
	return scores{p.ZMScore(ctx, key(s.sku, name), members...)}
}

// of answers the score of the member at i, 0 when it has none: all scores are times.
func (s scores) of(i int) float64 { return s.cmd.Val()[i] }
