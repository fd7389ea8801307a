package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"golang.org/x/sync/errgroup"

	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

const askAtOnce = 8 // questions to Temporal side by side, between two rests

// gone is a record whose workflow is not open.
type gone struct {
	id    string
	run   string // its last run, "" when Temporal knows none
	owned redis.Owned
}

// owners holds the live records against the open workflows, both ways, and ends the
// records that have no owner: with an agreement as it meets them, and without one when
// it has met all and knows that they are few enough. Temporal's list only says whose
// owner need not be asked for; that one is missing says Temporal's answer about it alone.
func (p *pass) owners(ctx context.Context) error {
	if err := p.known(ctx); err != nil {
		return err
	}
	waited := p.at.Waits // by an attempt before: what was missing then may be back
	p.at.Waits = false
	if err := p.listOpen(ctx); err != nil {
		return err
	}
	p.lost, p.at.Waits = p.at.Waits, p.at.Waits || waited
	records, err := p.Gate.Records(ctx, p.in.SKU)
	if err != nil {
		return err
	}
	p.most = max(leastBrake, int(records)/brakeShare)
	if p.at.Survey == (redis.SurveyAt{}) {
		p.report.Owners = 0
	}
	for !p.at.Survey.Done() {
		began := time.Now()
		page, next, err := p.Gate.SurveyPage(ctx, p.in.SKU, p.at.Survey)
		if err != nil {
			return err
		}
		if err := p.look(ctx); err != nil {
			return err
		}
		if err := p.pace.worked(ctx, began); err != nil {
			return err
		}
		for _, step := range []func(context.Context, redis.Survey) error{p.ownersOf, p.places, p.untold} {
			if err := step(ctx, page); err != nil {
				return err
			}
		}
		p.at.Survey = next
		p.save(ctx)
	}
	return p.endGone(ctx)
}

// known asks for the SKU's book. A Temporal that has not even that is another one, and
// what it says of owners, agreed or not, is nothing to go by.
func (p *pass) known(ctx context.Context) error {
	var book contract.StockBook
	err := p.Books.Status(ctx, contract.StockWorkflowID(p.in.SKU), &book)
	p.ours = err == nil && book.Opened
	if errors.Is(err, launch.ErrNoOwner) {
		return nil
	}
	return err
}

// atOnce says that a missing owner's record is ended when it is met.
func (p *pass) atOnce() bool { return p.in.Agree && p.ours }

// ownersOf looks for the owners of a page's records.
func (p *pass) ownersOf(ctx context.Context, page redis.Survey) error {
	for _, why := range page.Unreadable {
		p.alarm("%s", why)
	}
	p.report.Owners += len(page.Owned)
	var unseen []redis.Owned
	for _, o := range page.Owned {
		switch {
		case p.open.has(p.open.listed, o.ID):
			if err := p.overdue(ctx, o); err != nil {
				return err
			}
		case !p.young(o.Since):
			unseen = append(unseen, o)
		case len(p.fresh) <= p.most:
			p.fresh = append(p.fresh, o)
		}
	}
	if len(p.gone) > p.most {
		return nil // too many already
	}
	err := p.askFor(ctx, unseen, func(missing []gone) error {
		if !p.atOnce() {
			if p.gone = append(p.gone, missing...); len(p.gone) > p.most {
				return errEnough
			}
			return nil
		}
		for _, g := range missing {
			if err := p.end(ctx, g); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// overdue notes a hold that its living owner should have ended long ago.
func (p *pass) overdue(ctx context.Context, o redis.Owned) error {
	if o.Deadline.IsZero() || p.now.Sub(o.Deadline) <= p.Grace+overdueHold || len(p.report.Alarms) == maxDifferences {
		return nil
	}
	open, _, err := p.owner(ctx, o.ID)
	if err == nil && open {
		p.alarm("%s is held since its deadline %s passed, and its workflow is open: look at it in Temporal", o.ID, o.Deadline.Format(time.RFC3339))
	}
	return err
}

// missing asks Temporal itself for owners that its list has not got, a few at a time.
func (p *pass) missing(ctx context.Context, unseen []redis.Owned) ([]gone, error) {
	found := make([]*gone, len(unseen))
	group, ctx := errgroup.WithContext(ctx)
	for i, o := range unseen {
		group.Go(func() error {
			open, run, err := p.owner(ctx, o.ID)
			if err == nil && !open {
				found[i] = &gone{id: o.ID, run: run, owned: o}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var left []gone
	for _, g := range found {
		if g != nil {
			left = append(left, *g)
		}
	}
	return left, nil
}

// owner says whether a workflow is open. That its namespace is missing is an outage,
// and an error.
func (p *pass) owner(ctx context.Context, id string) (open bool, run string, err error) {
	d, err := p.Owners.DescribeWorkflowExecution(ctx, id, "")
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return false, "", nil
	case err != nil:
		return false, "", fmt.Errorf("look for %s: %w", id, err)
	}
	info := d.GetWorkflowExecutionInfo()
	return info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, info.GetExecution().GetRunId(), nil
}

// endGone ends the records that were met without an owner, if so few are that it is no
// outage. Their owners are asked for once more: a door that repeats a request may have
// started one since.
func (p *pass) endGone(ctx context.Context) error {
	if len(p.gone) == 0 {
		return nil
	}
	brake := max(leastBrake, p.report.Owners/brakeShare)
	few, err := p.few(ctx, brake)
	switch {
	case err != nil:
		return err
	case !p.ours:
		p.alarm("Temporal knows neither the book of this SKU nor the owners of its records: it is another namespace, or it has lost its data, and nothing was given back, agreed or not")
	case !few:
		p.alarm("more than %d of %d owners are missing: an outage of Temporal, or another namespace, is likelier than so many lost workflows, and nothing was given back; if they are gone, run: holdfast reconcile %s --agree",
			brake, p.report.Owners, p.in.SKU)
	default:
		return p.askFor(ctx, owned(p.gone), func(missing []gone) error {
			for _, g := range missing {
				if err := p.end(ctx, g); err != nil {
					return err
				}
			}
			return nil
		})
	}
	p.report.Braked = true
	for _, g := range p.gone {
		p.isMissing(g)
	}
	return nil
}

// few says whether no more owners are missing than may be. Young records count, though
// none of them is ended yet: else an outage would be let through in small helpings, as
// its records grow old.
func (p *pass) few(ctx context.Context, brake int) (bool, error) {
	missing := len(p.gone)
	if missing <= brake {
		err := p.askFor(ctx, p.fresh, func(young []gone) error {
			if missing += len(young); missing > brake {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return false, err
		}
	}
	return missing <= brake, nil
}

// errEnough ends the search for missing owners.
var errEnough = errors.New("enough are missing")

func owned(of []gone) []redis.Owned {
	out := make([]redis.Owned, len(of))
	for i, g := range of {
		out[i] = g.owned
	}
	return out
}

// askFor asks for the owners of records, a few at a time, and rests between.
func (p *pass) askFor(ctx context.Context, owned []redis.Owned, visit func(missing []gone) error) error {
	for some := range slices.Chunk(owned, askAtOnce) {
		began := time.Now()
		missing, err := p.missing(ctx, some)
		if err == nil {
			err = visit(missing)
		}
		if err == nil {
			err = p.pace.asked(ctx, began)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) isMissing(g gone) {
	p.report.Missing++
	p.report.DriftUnits += g.owned.Units
}

// counted brings the counters together with the records before a pass ends the first
// one. A record that a hand has made up is in no counter, and its end would free a
// unit that somebody else holds, until the counters are corrected. Where they cannot be
// brought together none is ended; and none while a record is missing that may be on its
// way, for nobody can tell the two apart.
func (p *pass) counted(ctx context.Context) (ok bool, err error) {
	switch {
	case p.in.DryRun:
		return true, nil
	case p.lost:
		p.alarm("records without an owner are not ended while a record is missing that may be on its way: the next pass does, or run it again in a minute")
		return false, nil
	case p.compared:
		return p.agree, nil
	}
	st, ok, err := p.Gate.CompareCounters(ctx, p.in.SKU)
	if err == nil && ok {
		st, ok, err = p.count(ctx, st)
	}
	if err != nil {
		return false, err
	}
	part, _, _ := apart(st)
	p.compared, p.agree = true, ok && part == ""
	return p.agree, nil
}

// end ends a record without an owner. Money that its Hold was told of gets its
// Payment first, which may sell the unit yet.
func (p *pass) end(ctx context.Context, g gone) error {
	if ok, err := p.counted(ctx); err != nil || !ok {
		return err
	}
	p.isMissing(g)
	what := g.id + " was live in the gate, and its workflow is not open"
	if g.owned.Units > 0 {
		what = fmt.Sprintf("%s held %d, and its workflow is not open", g.id, g.owned.Units)
		if told, err := p.settleMoney(ctx, g.id, g.run); err != nil || !told {
			return err
		}
		if sold, err := p.soldAfterAll(ctx, g.id, g.run); err != nil || sold {
			return err
		}
	}
	return p.mend(ctx, what, func(ctx context.Context) (redis.Base, error) {
		return p.Gate.RepairGone(ctx, p.in.SKU, g.id, g.owned.Version)
	})
}
