package activities

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"holdfast/codec"
	"holdfast/contract"
	"holdfast/launch"
	"holdfast/redis"
)

const listPage = 1000 // workflows of one page

// lostRecord is an open workflow without a record.
type lostRecord struct {
	id      string
	started time.Time
}

// gone is a record whose workflow is not open.
type gone struct {
	id    string
	run   string // its last run, "" when Temporal knows none
	owned redis.Owned
}

// owners holds the live records against the open workflows, both ways, and ends the
// records that have no owner. Temporal is asked after the gate: an owner is started
// before its record needs one.
func (p *pass) owners(ctx context.Context, survey redis.Survey) error {
	unseen := maps.Clone(survey.Owned)
	p.report.Owners = len(unseen)
	for _, kind := range []string{contract.HoldWorkflow, contract.WaitlistEntryWorkflow} {
		query := skuQuery(p.in.SKU, kind, "ExecutionStatus = 'Running'")
		err := p.list(ctx, query, func(page []lostRecord) error {
			var unknown []string
			started := map[string]time.Time{}
			for _, w := range page {
				if _, owned := survey.Owned[w.id]; owned {
					p.overdue(w.id, unseen)
					delete(unseen, w.id)
					continue
				}
				unknown = append(unknown, w.id)
				started[w.id] = w.started
			}
			missing, err := p.Gate.InspectRecords(ctx, p.in.SKU, unknown)
			for _, id := range missing {
				p.lost = append(p.lost, lostRecord{id, started[id]})
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	maps.DeleteFunc(unseen, func(_ string, o redis.Owned) bool { return p.young(o.Since) })
	brake := max(leastBrake, p.report.Owners/brakeShare)
	left, err := p.missing(ctx, unseen, brake)
	if err != nil {
		return err
	}
	p.report.Missing = len(left)
	for _, g := range left {
		p.report.DriftUnits += g.owned.Units
	}
	if len(left) > brake && !p.in.Agree {
		p.report.Braked = true
		p.alarm("more than %d of %d owners are missing: an outage of Temporal, or another namespace, is likelier than so many lost workflows, and nothing was given back; if they are gone, run: holdfast reconcile %s --agree",
			brake, p.report.Owners, p.in.SKU)
		return nil
	}
	for _, g := range left {
		if err := p.end(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// overdue notes a hold that its living owner should have ended long ago.
func (p *pass) overdue(id string, unseen map[string]redis.Owned) {
	until := unseen[id].Deadline
	if !until.IsZero() && p.now.Sub(until) > p.Grace+overdueHold {
		p.alarm("%s is held since its deadline %s passed, and its workflow is open: look at it in Temporal", id, until.Format(time.RFC3339))
	}
}

// list visits the pages of a visibility query.
func (p *pass) list(ctx context.Context, query string, visit func([]lostRecord) error) error {
	req := &workflowservice.ListWorkflowExecutionsRequest{PageSize: listPage, Query: query}
	for {
		res, err := p.Owners.ListWorkflow(ctx, req)
		if err != nil {
			return fmt.Errorf("list workflows: %w", err)
		}
		page := make([]lostRecord, len(res.GetExecutions()))
		for i, e := range res.GetExecutions() {
			page[i] = lostRecord{e.GetExecution().GetWorkflowId(), e.GetStartTime().AsTime()}
		}
		if err := visit(page); err != nil {
			return err
		}
		if req.NextPageToken = res.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return nil
		}
	}
}

// missing asks Temporal itself for each owner that its list has not got. Without an
// agreement it asks until more are missing than may be.
func (p *pass) missing(ctx context.Context, unseen map[string]redis.Owned, brake int) ([]gone, error) {
	var left []gone
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(unseen)), askAtOnce) {
		found := make([]*gone, len(ids))
		group, ctx := errgroup.WithContext(ctx)
		for i, id := range ids {
			group.Go(func() error {
				open, run, err := p.owner(ctx, id)
				if err == nil && !open {
					found[i] = &gone{id: id, run: run, owned: unseen[id]}
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		for _, g := range found {
			if g != nil {
				left = append(left, *g)
			}
		}
		if len(left) > brake && !p.in.Agree {
			break
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

// end ends a record without an owner. Money that its Hold was told of gets its
// Payment first, which may sell the unit yet.
func (p *pass) end(ctx context.Context, g gone) error {
	what := g.id + " was live in the gate, and its workflow is not open"
	if g.owned.Units > 0 {
		what = fmt.Sprintf("%s held %d, and its workflow is not open", g.id, g.owned.Units)
		if told, err := p.settleMoney(ctx, g.id, g.run); err != nil || !told {
			return err
		}
	}
	return p.mend(ctx, what, func(ctx context.Context) (redis.Base, error) {
		return p.Gate.RepairGone(ctx, p.in.SKU, g.id, g.owned.Version)
	})
}

// leftMoney looks at Holds that did not end by themselves: what they were told of
// and nobody has is a Payment's.
func (p *pass) leftMoney(ctx context.Context) error {
	query := skuQuery(p.in.SKU, contract.HoldWorkflow, "ExecutionStatus IN ('Terminated', 'Failed', 'TimedOut')")
	if !p.in.Since.IsZero() {
		query += fmt.Sprintf(" AND CloseTime >= '%s'", p.in.Since.UTC().Format(time.RFC3339))
	}
	return p.list(ctx, query, func(page []lostRecord) error {
		for _, w := range page {
			// A run that was reset goes on in a newer one.
			open, run, err := p.owner(ctx, w.id)
			if err == nil && !open {
				_, err = p.settleMoney(ctx, w.id, run)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// settleMoney gives the money of a closed Hold that nobody has to its Payment. One
// that was ever started is not started again: it has settled the money, or does.
// told is false when the history could not be read: its unit must not go back then.
func (p *pass) settleMoney(ctx context.Context, holdID, run string) (told bool, err error) {
	if run == "" {
		return true, nil // Temporal knows nothing of it any more
	}
	left, err := UnsettledPayments(ctx, p.Owners, p.Payloads, holdID, run)
	var key *codec.UnknownKeyError
	if errors.As(err, &key) {
		p.alarm("%s did not end by itself, and what it was told cannot be read: %s", holdID, key)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, in := range left {
		if p.settled[in.PaymentID] {
			continue
		}
		_, known, err := p.owner(ctx, in.PaymentID)
		if err != nil {
			return false, err
		}
		if p.settled[in.PaymentID] = true; known != "" {
			continue
		}
		what := fmt.Sprintf("%s left payment %s without an owner", holdID, in.PaymentID)
		err = p.mend(ctx, what, func(ctx context.Context) (redis.Base, error) {
			_, err := p.Payments.Decide(ctx, in)
			return redis.Base{Verdict: redis.OK}, err
		})
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// restore gives open workflows their records back.
func (p *pass) restore(ctx context.Context) error {
	for _, l := range p.lost {
		if p.young(l.started) {
			p.waits = true
			continue
		}
		open, _, err := p.owner(ctx, l.id)
		if err == nil && open {
			if strings.HasPrefix(l.id, contract.HoldPrefix) {
				err = p.restoreHold(ctx, l.id)
			} else {
				err = p.restoreEntry(ctx, l.id)
			}
		}
		if err != nil && !errors.Is(err, launch.ErrNoOwner) {
			return err
		}
	}
	return nil
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
		p.waits = true
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
	p.report.DriftUnits += lost.Units
	return p.mend(ctx, fmt.Sprintf("%s holds %d, and the gate had no record of it", id, lost.Units), func(ctx context.Context) (redis.Base, error) {
		return p.Gate.RepairHold(ctx, p.in.SKU, lost)
	})
}

func (p *pass) restoreEntry(ctx context.Context, id string) error {
	var s contract.EntryStatus
	if err := p.Books.Status(ctx, id, &s); err != nil || !s.State.Live() {
		return err
	}
	return p.mend(ctx, fmt.Sprintf("%s waits since %s, and the gate had no record of it", id, s.JoinedAt.Format(time.RFC3339)), func(ctx context.Context) (redis.Base, error) {
		return p.Gate.RepairEntry(ctx, p.in.SKU, redis.LostEntry{
			ID: id, Person: s.Person, Units: s.Quantity, JoinedAt: s.JoinedAt, HoldID: s.HoldID, Generation: s.Generation,
		})
	})
}

// skuQuery finds the workflows of a type and a SKU, which has no character that needs
// escaping.
func skuQuery(sku, workflow, and string) string {
	return fmt.Sprintf("WorkflowType = '%s' AND %s = '%s' AND %s", workflow, contract.SKUAttribute, sku, and)
}
