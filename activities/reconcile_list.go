package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"holdfast/contract"
	"holdfast/launch"
)

const listPage = 1000 // workflows of one page

// listed is a workflow as Temporal's list has it, which may be behind.
type listed struct {
	id, run string
	started time.Time
	state   string // that it wrote last
}

// listOpen notes the open workflows, and gives those their records back that have
// none.
func (p *pass) listOpen(ctx context.Context) error {
	for _, kind := range []string{contract.HoldWorkflow, contract.WaitlistEntryWorkflow} {
		query := skuQuery(p.in.SKU, kind, "ExecutionStatus = 'Running'")
		err := p.list(ctx, query, nil, func(page []listed, _ []byte) error {
			ids := make([]string, len(page))
			for i, w := range page {
				ids[i] = w.id
				p.open.add(p.open.listed, w.id)
				if w.state == string(contract.EntryOffered) {
					p.open.add(p.open.offered, w.id)
				}
			}
			missing, err := p.Gate.InspectRecords(ctx, p.in.SKU, ids)
			if err != nil {
				return err
			}
			for _, w := range page {
				if slices.Contains(missing, w.id) {
					if err := p.restore(ctx, w); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// list visits the pages of a visibility query, from that of a token on; visit gets the
// token of the next one, too.
func (p *pass) list(ctx context.Context, query string, token []byte, visit func(page []listed, next []byte) error) error {
	req := &workflowservice.ListWorkflowExecutionsRequest{PageSize: listPage, Query: query, NextPageToken: token}
	for {
		began := time.Now()
		res, err := p.Owners.ListWorkflow(ctx, req)
		if err != nil {
			return fmt.Errorf("list workflows: %w", err)
		}
		found := launch.OfSKU(p.in.SKU, res.GetExecutions())
		page := make([]listed, len(found))
		for i, e := range found {
			page[i] = listed{e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId(), e.GetStartTime().AsTime(), stateOf(e)}
		}
		req.NextPageToken = res.GetNextPageToken()
		if err := visit(page, req.NextPageToken); err != nil {
			return err
		}
		if err := p.pace.worked(ctx, began); err != nil {
			return err
		}
		if len(req.NextPageToken) == 0 {
			return nil
		}
	}
}

// skuQuery finds the workflows of a type and a SKU, which has no character that needs
// escaping.
func skuQuery(sku, workflow, and string) string {
	return fmt.Sprintf("WorkflowType = '%s' AND %s = '%s' AND %s", workflow, contract.SKUAttribute, sku, and)
}
