package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/codec"
	"holdfast/contract"
	"holdfast/redis"
)

// leftMoney looks at Holds that did not end by themselves: what they were told of
// and nobody has is a Payment's. A run that was reset goes on in a newer one.
func (p *pass) leftMoney(ctx context.Context) error {
	return p.leftBehind(ctx, contract.HoldWorkflow, func(w listed, run string) error {
		_, err := p.settleMoney(ctx, w.id, run)
		return err
	})
}

// leftBehind visits the workflows of a type that did not end by themselves since the
// last pass and are not open again, with their latest run.
func (p *pass) leftBehind(ctx context.Context, workflow string, visit func(w listed, run string) error) error {
	return p.visitLeft(ctx, skuQuery(p.in.SKU, workflow, p.notByItself()), p.at.Page, visit, func(next []byte) error {
		p.at.Page = next
		p.save(ctx)
		return p.look(ctx)
	})
}

// notByItself finds what did not end by itself since the last pass.
func (p *pass) notByItself() string {
	query := "ExecutionStatus IN ('Terminated', 'Failed', 'TimedOut')"
	if !p.in.Since.IsZero() {
		query += fmt.Sprintf(" AND CloseTime >= '%s'", p.in.Since.UTC().Format(time.RFC3339))
	}
	return query
}

func (p *pass) visitLeft(ctx context.Context, query string, token []byte, visit func(w listed, run string) error, after func(next []byte) error) error {
	return p.list(ctx, query, token, func(page []listed, next []byte) error {
		for _, w := range page {
			began := time.Now()
			open, run, err := p.owner(ctx, w.id)
			if err == nil && !open {
				err = visit(w, run)
			}
			if err == nil {
				err = p.pace.worked(ctx, began)
			}
			if err != nil {
				return err
			}
		}
		return after(next)
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
