package redis

import (
	"context"
	"fmt"
	"time"

	"holdfast/contract"
)

// Owned is a record that needs an open workflow: a held hold, or a live entry that
// has acknowledged or cannot be started any more.
type Owned struct {
	Version  int64
	Since    time.Time // when it came
	Deadline time.Time // of a held hold
	Units    int64     // of a held hold
}

// Survey is what an open SKU holds, read bite by bite while it moves. Whatever it
// names is to be looked at again under a script.
type Survey struct {
	Owned map[string]Owned
	// Places are records, or ids of none, that something points at wrongly.
	Places []string
	// Untold are offers that no text was tried for and that no outbox holds, with
	// their entries: those may not know.
	Untold map[string]string
	// Unreadable says which records do not parse.
	Unreadable []string
}

type surveyor struct {
	g   *Gate
	sku string
	out Survey
	// What points at records, by the key's name. A member is taken out when its
	// record was met.
	points map[string]map[string]bool
	people map[string]string
	live   map[string]bool // entries
}

// ReadSurvey reads the records of a SKU and what points at them.
func (g *Gate) ReadSurvey(ctx context.Context, sku string) (Survey, error) {
	s := surveyor{
		g: g, sku: sku, out: Survey{Owned: map[string]Owned{}, Untold: map[string]string{}},
		points: map[string]map[string]bool{}, people: map[string]string{}, live: map[string]bool{},
	}
	if err := s.read(ctx); err != nil {
		return Survey{}, fmt.Errorf("%w: survey of %s: %w", ErrUnavailable, sku, err)
	}
	return s.out, nil
}

func (s *surveyor) read(ctx context.Context) error {
	for _, name := range []string{"line", "fresh", "parked", "limited", "leases", "outbox", "offers"} {
		s.points[name] = map[string]bool{}
		iter := s.g.rdb.ZScan(ctx, key(s.sku, name), 0, "", 1000).Iterator()
		for iter.Next(ctx) {
			s.points[name][iter.Val()] = true
			iter.Next(ctx) // its score
		}
		if err := iter.Err(); err != nil {
			return err
		}
	}
	parcels := map[string]bool{}
	if err := s.g.scan(ctx, key(s.sku, "parcels"), func(member, _ string) { parcels[member] = true }); err != nil {
		return err
	}
	if err := s.g.scan(ctx, key(s.sku, "people"), func(person, id string) { s.people[person] = id }); err != nil {
		return err
	}
	if err := s.g.scan(ctx, key(s.sku, "holds"), s.hold); err != nil {
		return err
	}
	err := s.g.scan(ctx, key(s.sku, "entries"), func(id, raw string) { s.entry(id, raw, parcels) })
	if err != nil {
		return err
	}
	for _, name := range []string{"line", "fresh", "parked", "limited", "leases"} {
		for id := range s.points[name] {
			s.out.Places = append(s.out.Places, id)
		}
	}
	for _, id := range s.people {
		if !s.live[id] {
			s.out.Places = append(s.out.Places, id)
		}
	}
	return nil
}

// met says whether something of that name points at id, once.
func (s *surveyor) met(name, id string) bool {
	was := s.points[name][id]
	delete(s.points[name], id)
	return was
}

func (s *surveyor) hold(id, raw string) {
	h, err := s.g.parseHold(s.sku, id, raw)
	if err != nil {
		s.out.Unreadable = append(s.out.Unreadable, err.Error())
		return
	}
	switch h.State {
	case contract.HoldHeld:
		s.out.Owned[id] = Owned{Version: h.Version, Since: h.CreatedAt, Deadline: h.Deadline, Units: h.Units}
	case contract.HoldProvisional:
		if !s.met("leases", id) {
			s.out.Places = append(s.out.Places, id)
		}
	case contract.HoldOffered:
		if h.ToldAt.IsZero() && !s.points["offers"]["o:"+id] {
			s.out.Untold[id] = h.EntryID
		}
	}
}

func (s *surveyor) entry(id, raw string, parcels map[string]bool) {
	e, err := parseEntry(s.sku, id, raw, 0)
	if err != nil {
		s.out.Unreadable = append(s.out.Unreadable, err.Error())
		return
	}
	if !e.State.Live() {
		return // what still points at it is left over
	}
	s.live[id] = true
	right := s.people[e.Person] == id
	if e.State == contract.EntryWaiting {
		places := 0
		for name, acknowledged := range map[string]bool{"line": true, "parked": true, "limited": true, "fresh": false} {
			switch {
			case acknowledged == e.Acknowledged && s.met(name, id):
				places++
			case s.met(name, id):
				right = false
			}
		}
		right = right && places == 1
	}
	starts := !e.Acknowledged && parcels["s:"+id]
	if starts && !s.points["outbox"]["s:"+id] {
		right = false
	}
	if !right {
		s.out.Places = append(s.out.Places, id)
	}
	if !starts && !e.Leaving {
		s.out.Owned[id] = Owned{Version: e.Version, Since: e.JoinedAt}
	}
}
