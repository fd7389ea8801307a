package redis

import (
	"context"
	"fmt"
	"strconv"

	"holdfast/contract"
)

// claimed is what the records say that each person has.
type claimed struct {
	units   map[string]int64  // in live holds, and bought and not brought back
	entries map[string]string // the live one
}

func (c claimed) hold(h Hold) {
	switch {
	case h.State.Live():
		c.units[h.Person] += h.Units
	case h.State == contract.HoldSold && h.Units > h.Returned:
		c.units[h.Person] += h.Units - h.Returned
	}
}

func (c claimed) entry(e Entry) {
	if e.State.Live() {
		c.entries[e.Person] = e.ID
	}
}

// compare says for how many persons the tally, which their limit is checked by, and
// the name of their live entry, which keeps them from joining twice, are not what the
// records say.
func (c claimed) compare(ctx context.Context, g *Gate, sku string) (problems []string, err error) {
	for _, part := range []struct {
		name, what string
		want       map[string]string
	}{
		{"tally", "units", decimals(c.units)},
		{"people", "live entry", c.entries},
	} {
		wrong, example := 0, ""
		differ := func(person, is, want string) {
			if wrong++; wrong == 1 {
				example = fmt.Sprintf("%s has %q in place of %q", person, is, want)
			}
		}
		if err := g.scan(ctx, key(sku, part.name), func(person, is string) {
			if want := part.want[person]; is != want {
				differ(person, is, want)
			}
			delete(part.want, person)
		}); err != nil {
			return nil, err
		}
		for person, want := range part.want {
			differ(person, "", want)
		}
		if wrong > 0 {
			problems = append(problems, fmt.Sprintf("the %s of %d persons is not what their records say, such as: %s", part.what, wrong, example))
		}
	}
	return problems, nil
}

func decimals(in map[string]int64) map[string]string {
	out := make(map[string]string, len(in))
	for name, n := range in {
		out[name] = strconv.FormatInt(n, 10)
	}
	return out
}
