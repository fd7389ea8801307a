package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

// restore gives an open workflow its record back.
func (p *pass) restore(ctx context.Context, w listed) error {
	if p.young(w.started) {
		p.at.Waits = true
		return nil
	}
	open, _, err := p.owner(ctx, w.id)
	if err == nil && open {
		if strings.HasPrefix(w.id, contract.HoldPrefix) {
			err = p.restoreHold(ctx, w.id)
		} else {
			err = p.restoreEntry(ctx, w.id)
		}
	}
	if errors.Is(err, launch.ErrNoOwner) {
		return nil
	}
	return err
}

func (p *pass) restoreHold(ctx context.Context, id string) error {
	var s contract.HoldStatus
	if err := p.Books.Status(ctx, id, &s); err != nil {
		return err
	}
	i := slices.IndexFunc(s.Lines, func(l contract.Line) bool { return l.SKU == p.in.SKU })
	switch {
	case i < 0 || s.State == contract.HoldProvisional || s.State.Ended():
		return nil // its own adopt, or its own end, is on its way
	case s.Person == "":
		p.at.Waits = true
		p.alarm("%s has lost its record, and its worker is too old to say whose it is: run newer workers", id)
		return nil
	}
	lost := redis.LostHold{
		ID: id, Person: s.Person, EntryID: s.EntryID, Units: s.Lines[i].Quantity, Generation: s.Generation,
		CreatedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt, Extended: s.Extended,
	}
	if i == 0 && len(s.Lines) > 1 {
		lost.Cart = s.Lines
	}
	found := p.report.Found
	err := p.mend(ctx, fmt.Sprintf("%s holds %d, and the gate had no record of it", id, lost.Units), func(ctx context.Context) (redis.Base, error) {
		return p.Gate.RepairHold(ctx, p.in.SKU, lost)
	})
	if p.report.Found > found {
		p.report.DriftUnits += lost.Units
	}
	return err
}

func (p *pass) restoreEntry(ctx context.Context, id string) error {
	var s contract.EntryStatus
	if err := p.Books.Status(ctx, id, &s); err != nil || !s.State.Live() {
		return err
	}
	return p.mend(ctx, fmt.Sprintf("%s waits since %s, and the gate had no record of it", id, s.JoinedAt.Format(time.RFC3339)), func(ctx context.Context) (redis.Base, error) {
		return p.Gate.RepairEntry(ctx, p.in.SKU, lostEntry(s))
	})
}

// lostEntry is an entry as its workflow knows it.
func lostEntry(s contract.EntryStatus) redis.LostEntry {
	return redis.LostEntry{
		ID: s.EntryID, Person: s.Person, Units: s.Quantity, JoinedAt: s.JoinedAt, HoldID: s.HoldID, Generation: s.Generation,
		Missed: s.Missed, Leaving: s.Leaving, Unheard: s.State != contract.EntryWaiting, Language: languageOf(s.Locale),
	}
}

// languageOf is the language of a locale, without region or script: whether the pages
// speak it is the door's to say.
func languageOf(locale string) string {
	tag, err := language.Parse(locale)
	if err != nil || tag.IsRoot() {
		return ""
	}
	base, _ := tag.Base()
	return base.String()
}

// places puts right what points at records.
func (p *pass) places(ctx context.Context, page redis.Survey) error {
	slices.Sort(page.Places)
	for _, id := range slices.Compact(page.Places) {
		if p.in.DryRun {
			return nil // a script alone can tell what is wrong from what has just moved
		}
		began := time.Now()
		err := p.mend(ctx, id+" had a place that was not its own, or none", func(ctx context.Context) (redis.Base, error) {
			return p.Gate.RepairPlace(ctx, p.in.SKU, id, false)
		})
		if err == nil {
			err = p.pace.worked(ctx, began)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// untold looks for offers whose entry does not know of them, though nothing is left
// that would tell it. An entry that is listed as offered knows: those that wait for the
// morning with their text need no question each.
func (p *pass) untold(ctx context.Context, page redis.Survey) error {
	for _, u := range page.Untold {
		if p.open.has(p.open.offered, u.Entry) {
			continue
		}
		began := time.Now()
		var entry contract.EntryStatus
		err := p.Books.Status(ctx, u.Entry, &entry)
		switch {
		case errors.Is(err, launch.ErrNoOwner): // found by its owner
			continue
		case err != nil:
			return err
		case entry.HoldID == u.Hold && entry.State != contract.EntryWaiting: // else it has heard an end that was lost
			continue
		}
		err = p.mend(ctx, u.Hold+" is an offer that "+u.Entry+" did not know of", func(ctx context.Context) (redis.Base, error) {
			return p.Gate.RepairPlace(ctx, p.in.SKU, u.Hold, true)
		})
		if err == nil {
			err = p.pace.worked(ctx, began)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
