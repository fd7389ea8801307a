package workflows_test

import (
	"context"
	"sync"

	"holdfast/contract"
	"holdfast/payment"
)

// provider answers refund requests in turn, the last answer for ever; without
// any it is nobody.
type provider struct {
	payment.Port
	mu      sync.Mutex
	answers []func() (payment.Receipt, error)
	asked   []payment.Refund

	status, cancel map[string][]says // by reference
	calls          []string          // about attempts
}

func (p *provider) RequestRefund(_ context.Context, r payment.Refund) (payment.Receipt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r)
	if len(p.answers) == 0 {
		return payment.Receipt{}, payment.ErrNone
	}
	next := p.answers[0]
	if len(p.answers) > 1 {
		p.answers = p.answers[1:]
	}
	return next()
}

func takes(reference string, settled bool) func() (payment.Receipt, error) {
	return func() (payment.Receipt, error) { return payment.Receipt{Reference: reference, Settled: settled}, nil }
}

func fails(err error) func() (payment.Receipt, error) {
	return func() (payment.Receipt, error) { return payment.Receipt{}, err }
}

var silent = &payment.Error{Class: payment.Retry, Reason: "the provider does not answer", MaybeDone: true}

// says is what the provider answers about an attempt; do runs first, in the
// provider's time.
type says struct {
	status payment.Status
	err    error
	do     func()
}

var (
	openThere  = says{status: payment.Status{State: payment.Unpaid}}
	noAnswer   = says{err: silent}
	nobodyKnew = says{status: payment.Status{State: payment.Unknown, Reason: "it is under way"}}
)

func paidThere(ref string, amount int64) says {
	return says{status: payment.Status{State: payment.Paid, Ref: ref, Money: &contract.Money{Amount: amount, Currency: "EUR"}}}
}

// about answers a call of the provider and notes it; the last answer stays.
func (p *provider) about(call string, at payment.Attempt, answers map[string][]says) (payment.Status, error) {
	p.mu.Lock()
	all := answers[at.Ref]
	if len(all) == 0 {
		all = []says{openThere}
	}
	if len(all) > 1 {
		answers[at.Ref] = all[1:]
	}
	said := call + " " + at.Ref
	if at.SaleRef != "" {
		said += " beside " + at.SaleRef
	}
	p.calls = append(p.calls, said)
	p.mu.Unlock()
	if all[0].do != nil {
		all[0].do()
	}
	return all[0].status, all[0].err
}

func (p *provider) Status(_ context.Context, at payment.Attempt) (payment.Status, error) {
	return p.about("status", at, p.status)
}

func (p *provider) CancelAttempt(_ context.Context, at payment.Attempt) (payment.Status, error) {
	return p.about("cancel", at, p.cancel)
}
