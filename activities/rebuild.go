package activities

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"holdfast/contract"
	"holdfast/redis"
)

// Rebuilding a SKU whose gate is closed and whose records, counters or places are
// not what its workflows and its book say: Redis came back as it was some time ago,
// or a key of it is gone. Nothing moves meanwhile. Gate and workflows are merged: where
// they differ the later state wins, and a sale stays one.

// RebuildGate is the gate of one closed server.
type RebuildGate interface {
	Inspect(ctx context.Context, sku string) (redis.Inspection, error)
	InspectEvents(ctx context.Context, sku string, eventIDs []string) (map[string]redis.StockOutcome, error)
	ReadRecords(ctx context.Context, sku string) (redis.Records, error)
	ReadSurvey(ctx context.Context, sku string) (redis.Survey, error)
	RepairGone(ctx context.Context, sku, id string, version int64) (redis.Base, error)
	RepairEntry(ctx context.Context, sku string, e redis.LostEntry) (redis.Base, error)
	RepairPlace(ctx context.Context, sku, id string, untold bool) (redis.Base, error)
	RebuildBegin(ctx context.Context, sku string) (time.Time, error)
	RebuildHold(ctx context.Context, sku string, h redis.RebuiltHold) (redis.Base, error)
	RebuildClaims(ctx context.Context, sku string, holds map[string]redis.Hold, entries map[string]redis.Entry) error
	RebuildOpen(ctx context.Context, sku string, t redis.Totals) (redis.Base, error)
}

// Epochs keeps the epoch of a SKU in its book.
type Epochs interface {
	Signal(ctx context.Context, workflowID, signal string, arg any) error
}

// Rebuild merges and opens one closed SKU. Every step can be repeated: what is
// merged is no difference any more, and the sales that it has put in are found by
// the records.
func (a *Passes) Rebuild(ctx context.Context, in contract.ReconcileInput) (contract.ReconcileReport, error) {
	defer beating(ctx)()
	r := &rebuild{Passes: a, sku: in.SKU, agree: in.Agree, report: contract.ReconcileReport{SKU: in.SKU, Closed: true, Checked: time.Now().UTC()}}
	found, err := a.Gate.Inspect(ctx, in.SKU)
	if err != nil {
		return r.report, checkError("inspect", in.SKU, err)
	}
	r.found, r.gate = found, a.Closed(found.ReplID)
	if err := r.run(ctx); err != nil {
		return r.report, checkError("rebuild", in.SKU, err)
	}
	if r.report.Opened {
		a.wake(ctx, in.SKU, redis.Base{Wake: true})
	}
	return r.report, nil
}

type rebuild struct {
	*Passes
	sku    string
	agree  bool
	gate   RebuildGate
	found  redis.Inspection
	report contract.ReconcileReport
	book   contract.StockBook
	redis.Records
	gen     int64
	until   time.Time // what the counters have counted
	missing []gone    // owners that Temporal does not know
}

func (r *rebuild) differ(format string, args ...any) {
	r.report.Found++
	if len(r.report.Differences) < maxDifferences {
		r.report.Differences = append(r.report.Differences, fmt.Sprintf(format, args...))
	}
}

// stays says why the SKU stays closed.
func (r *rebuild) stays(format string, args ...any) error {
	r.report.Alarms = append(r.report.Alarms, "it stays closed: "+fmt.Sprintf(format, args...))
	return nil
}

func (r *rebuild) run(ctx context.Context) error {
	err := r.Books.Status(ctx, contract.StockWorkflowID(r.sku), &r.book)
	switch {
	case err != nil:
		return err
	case !r.book.Opened || r.found.Missing:
		return r.stays("Redis or Temporal does not know its stock")
	}
	if r.Records, err = r.gate.ReadRecords(ctx, r.sku); err != nil {
		return err
	}
	if len(r.Unreadable) > 0 {
		return r.stays("%s", strings.Join(r.Unreadable, "; "))
	}
	r.gen = r.Generation
	if r.until, err = r.gate.RebuildBegin(ctx, r.sku); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{r.holds, r.entries, r.closedHolds, r.sales} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if brake := max(leastBrake, (len(r.Holds)+len(r.Entries))/brakeShare); len(r.missing) > brake && !r.agree {
		r.report.Braked, r.report.Missing = true, len(r.missing)
		return r.stays("Temporal does not know the workflows of %d live records: if they are gone, run: holdfast reconcile %s --agree", len(r.missing), r.sku)
	}
	for _, g := range r.missing {
		r.differ("%s was live in the gate, and Temporal does not know its workflow", g.id)
		if _, err := r.gate.RepairGone(ctx, r.sku, g.id, g.owned.Version); err != nil {
			return err
		}
	}
	return r.open(ctx)
}

// listed visits the workflows that a query finds, with the state that they wrote last.
func (r *rebuild) listed(ctx context.Context, query string, visit func(id, state string) error) error {
	req := &workflowservice.ListWorkflowExecutionsRequest{PageSize: listPage, Query: query}
	for {
		res, err := r.Owners.ListWorkflow(ctx, req)
		if err != nil {
			return fmt.Errorf("list workflows: %w", err)
		}
		for _, e := range res.GetExecutions() {
			if err := visit(e.GetExecution().GetWorkflowId(), stateOf(e)); err != nil {
				return err
			}
		}
		if req.NextPageToken = res.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return nil
		}
	}
}

func stateOf(e *workflowpb.WorkflowExecutionInfo) (state string) {
	p, ok := e.GetSearchAttributes().GetIndexedFields()[contract.StateAttribute]
	if !ok || converter.GetDefaultDataConverter().FromPayload(p, &state) != nil {
		return ""
	}
	return state
}

// holds puts in what open Holds hold. One that is provisional asks the gate itself.
func (r *rebuild) holds(ctx context.Context) error {
	return r.listed(ctx, skuQuery(r.sku, contract.HoldWorkflow, "ExecutionStatus = 'Running'"), func(id, _ string) error {
		if state := r.Holds[id].State; state == contract.HoldHeld || state == contract.HoldSold {
			return nil
		}
		return r.asHoldSays(ctx, id)
	})
}

// asHoldSays merges the record of a Hold, open or closed, with its status.
func (r *rebuild) asHoldSays(ctx context.Context, id string) error {
	var s contract.HoldStatus
	if err := r.Books.Status(ctx, id, &s); err != nil {
		return err
	}
	return r.merge(ctx, s, s.State, s.PaymentRef, false)
}

// merge writes the record of a hold that its workflow, or a Payment, has brought
// further than the gate knows.
func (r *rebuild) merge(ctx context.Context, s contract.HoldStatus, state contract.HoldState, ref string, retaken bool) error {
	i := slices.IndexFunc(s.Lines, func(l contract.Line) bool { return l.SKU == r.sku })
	was := r.Holds[s.HoldID]
	if i < 0 || state == contract.HoldProvisional || was.State == state || was.State == contract.HoldSold ||
		was.State == "" && state.Ended() && state != contract.HoldSold {
		return nil
	}
	if s.Person == "" {
		return fmt.Errorf("the worker of %s is too old to say whose it is: run newer workers", s.HoldID)
	}
	h := redis.RebuiltHold{
		LostHold: redis.LostHold{
			ID: s.HoldID, Person: s.Person, EntryID: s.EntryID, Units: s.Lines[i].Quantity, Generation: s.Generation,
			CreatedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt, Extended: s.Extended,
		},
		Version: was.Version, State: state, Reason: s.EndReason, PaymentRef: ref, Retaken: retaken,
	}
	if i == 0 && len(s.Lines) > 1 {
		h.Cart = s.Lines
	}
	if state.Ended() {
		h.EndedAt = time.Now()
		if s.EndedAt != nil {
			h.EndedAt = *s.EndedAt
		}
	}
	if state == contract.HoldSold {
		h.Reason = ""
		// A record and the counters are of one instant. Of a record that is missing the
		// sale was counted unless it came later.
		h.Uncounted = was.State != "" || h.EndedAt.Truncate(time.Millisecond).Add(time.Millisecond).After(r.until)
	}
	return r.write(ctx, h, was)
}

func (r *rebuild) write(ctx context.Context, h redis.RebuiltHold, was redis.Hold) error {
	known := string(was.State)
	if known == "" {
		known = "nothing"
	}
	r.differ("%s is %s with %d, the gate knew %s", h.ID, h.State, h.Units, known)
	r.gen = max(r.gen, h.Generation)
	base, err := r.gate.RebuildHold(ctx, r.sku, h)
	if err == nil && base.Verdict != redis.OK {
		err = fmt.Errorf("%s has moved while its gate was closed: %s", h.ID, base.Verdict)
	}
	if err == nil {
		r.Holds[h.ID] = redis.Hold{ID: h.ID, State: h.State, Units: h.Units, Version: was.Version + 1}
	}
	return err
}

// entries puts in open entries and their offers.
func (r *rebuild) entries(ctx context.Context) error {
	open := map[string]bool{}
	err := r.listed(ctx, skuQuery(r.sku, contract.WaitlistEntryWorkflow, "ExecutionStatus = 'Running'"), func(id, state string) error {
		open[id] = true
		e, known := r.Entries[id]
		if known && string(e.State) == state && (e.State != contract.EntryOffered || r.Holds[e.HoldID].State != "") {
			return nil
		}
		var s contract.EntryStatus
		if err := r.Books.Status(ctx, id, &s); err != nil || !s.State.Live() {
			return err
		}
		r.gen = max(r.gen, s.Generation)
		if !known {
			r.differ("%s waits since %s, the gate knew nothing", id, s.JoinedAt.Format(time.RFC3339))
			if _, err := r.gate.RepairEntry(ctx, r.sku, redis.LostEntry{
				ID: id, Person: s.Person, Units: s.Quantity, JoinedAt: s.JoinedAt, HoldID: s.HoldID, Generation: s.Generation,
			}); err != nil {
				return err
			}
		}
		was := r.Holds[s.HoldID]
		if s.State != contract.EntryOffered || was.State != "" {
			return nil
		}
		until := s.JoinedAt.Add(time.Hour)
		if s.OfferUntil != nil {
			until = *s.OfferUntil
		}
		return r.write(ctx, redis.RebuiltHold{State: contract.HoldOffered, LostHold: redis.LostHold{
			ID: s.HoldID, Person: s.Person, EntryID: id, Units: s.Quantity, Generation: s.Generation, CreatedAt: r.report.Checked, ExpiresAt: until,
		}}, was)
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.Entries)) {
		e := r.Entries[id]
		if !e.State.Live() || !e.Acknowledged || e.Leaving || open[id] {
			continue
		}
		if err := r.withoutOwner(ctx, id, e.Version, false); err != nil {
			return err
		}
	}
	return nil
}

// withoutOwner looks for the workflow of a live record that the list has not got.
func (r *rebuild) withoutOwner(ctx context.Context, id string, version int64, hold bool) error {
	d := pass{Passes: r.Passes}
	open, run, err := d.owner(ctx, id)
	switch {
	case err != nil || open && !hold:
		return err
	case run == "" && r.Holds[id].State == contract.HoldProvisional:
		return nil // its lease ends by itself
	case run == "":
		r.missing = append(r.missing, gone{id: id, owned: redis.Owned{Version: version}})
		return nil
	case hold:
		return r.asHoldSays(ctx, id)
	}
	r.differ("%s was live in the gate, and its workflow has closed", id)
	_, err = r.gate.RepairGone(ctx, r.sku, id, version)
	return err
}

// closedHolds looks after live records whose Hold the list has not got.
func (r *rebuild) closedHolds(ctx context.Context) error {
	open := map[string]bool{}
	err := r.listed(ctx, skuQuery(r.sku, contract.HoldWorkflow, "ExecutionStatus = 'Running'"), func(id, _ string) error {
		open[id] = true
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.Holds)) {
		h := r.Holds[id]
		if h.State != contract.HoldHeld && h.State != contract.HoldProvisional || open[id] {
			continue
		}
		if err := r.withoutOwner(ctx, id, h.Version, true); err != nil {
			return err
		}
	}
	return nil
}

// sales puts in what Holds and Payments have sold.
func (r *rebuild) sales(ctx context.Context) error {
	sold := fmt.Sprintf("%s = '%s'", contract.StateAttribute, contract.HoldSold)
	err := r.listed(ctx, skuQuery(r.sku, contract.HoldWorkflow, sold), func(id, _ string) error {
		if r.Holds[id].State == contract.HoldSold {
			return nil
		}
		return r.asHoldSays(ctx, id)
	})
	if err != nil {
		return err
	}
	return r.listed(ctx, skuQuery(r.sku, contract.PaymentWorkflow, sold), func(id, _ string) error {
		var p contract.PaymentStatus
		if err := r.Books.Status(ctx, id, &p); err != nil || p.State != contract.PaymentSold || r.Holds[p.HoldID].State == contract.HoldSold {
			return err
		}
		var s contract.HoldStatus
		if err := r.Books.Status(ctx, p.HoldID, &s); err != nil {
			return err
		}
		return r.merge(ctx, s, contract.HoldSold, p.PaymentRef, true)
	})
}
