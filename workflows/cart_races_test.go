package workflows_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"holdfast/contract"
	"holdfast/redis"
)

// seller is a Payment, one call of the gate at a time, so that anything can come in
// between two of its lines.
type seller struct {
	ref      string
	next     int
	undoing  bool
	done     bool
	sold     bool
	refunded bool
}

// step makes one call; one that the gate does not answer is made again.
func (s *seller) step(w *world) {
	ctx, lines := context.Background(), cartLines()
	if s.undoing {
		out, err := w.Unconfirm(ctx, lines[s.next-1].SKU, holdID, s.ref, "payment")
		if err != nil {
			return
		}
		require.Equal(w.t, redis.OK, out.Verdict)
		s.next--
		s.refunded = s.next == 0
		s.done = s.refunded
		return
	}
	out, err := w.Confirm(ctx, redis.ConfirmRequest{SKU: lines[s.next].SKU, HoldID: holdID, PaymentRef: s.ref, Retake: true})
	switch {
	case err != nil:
	case out.Verdict == redis.OK:
		s.next++
		s.sold = s.next == len(lines)
		s.done = s.sold
	case s.next > 0:
		s.undoing = true
	default:
		if out, err := w.Refund(ctx, lines[0].SKU, holdID, s.ref, "payment"); err == nil {
			s.done, s.sold, s.refunded = true, out.Verdict == redis.MadeSale, out.Verdict == redis.OK
		}
	}
}

// chaos is a cart to which things happen at random, mostly around its deadline.
type chaos struct {
	*world
	rng     *rand.Rand
	total   [3]int64 // units that each SKU has or sold here
	sellers map[string]*seller
	handed  int // payments of the Hold that have their seller
	log     []string
	after   bool              // the Hold has closed
	beside  int               // calls of a Payment while it was open
	heard   map[string]string // what the provider said was paid → as it was begun
	paid    map[string]bool   // payments that the Hold was told of
	updates int
}

func (c *chaos) say(format string, args ...any) {
	c.log = append(c.log, fmt.Sprintf("%8s ", c.Now().Sub(began))+fmt.Sprintf(format, args...))
}

// tick lets every Payment that runs make a call.
func (c *chaos) tick() {
	c.mu.Lock()
	handed := slices.Clone(c.payments[c.handed:])
	c.handed = len(c.payments)
	c.mu.Unlock()
	for _, in := range handed {
		if in.Cause == contract.CauseMismatched {
			_, err := c.Refund(context.Background(), in.SKU, in.HoldID, in.PaymentRef, "payment")
			require.NoError(c.t, err)
			continue
		}
		c.start(in.PaymentRef)
	}
	for _, s := range c.running() {
		if c.rng.IntN(3) > 0 {
			s.step(c.world)
			if !c.after {
				c.beside++
			}
			c.say("payment %s: %+v of %s", s.ref, *s, c.states())
		}
	}
}

// running are the Payments that have not decided, in an order that a seed repeats.
func (c *chaos) running() (out []*seller) {
	for _, ref := range []string{"P1", "P2", "IP1", "IP2"} {
		if s := c.sellers[ref]; s != nil && !s.done {
			out = append(out, s)
		}
	}
	return out
}

func (c *chaos) start(ref string) {
	if s := c.sellers[ref]; s == nil || s.done {
		c.sellers[ref] = &seller{ref: ref}
	}
}

// pays tells the Hold of money, by a signal or an update, now and then of another
// amount.
func (c *chaos) pays(ref string) {
	c.paid[ref] = true
	m := paid(ref)
	if c.rng.IntN(3) > 0 {
		m = paidAmount(ref, []int64{5, 5, 7}[c.rng.IntN(3)], "EUR")
	}
	if c.rng.IntN(2) == 0 {
		c.SignalWorkflow(contract.SignalPaymentSucceeded, m)
		return
	}
	c.updates++
	update[contract.ConfirmResult](c.world, contract.UpdateConfirm, fmt.Sprint("update-", c.updates), contract.ConfirmRequest(m))
}

// door is a confirm at the door: its Hold is asked until every line has ended.
func (c *chaos) door(ref string) {
	switch contract.CartState(c.states()...) {
	case contract.HoldHeld, contract.HoldProvisional:
		c.pays(ref)
	case contract.HoldSold:
	default:
		c.start(ref)
	}
}

func (c *chaos) happen() {
	i := c.rng.IntN(3)
	line := cartLines()[i]
	ref := []string{"P1", "P2"}[c.rng.IntN(2)]
	s := c.on(line.SKU)
	kind := c.rng.IntN(14)
	c.say("event %d at line %d, %s", kind, i, ref)
	if kind >= 8 && kind < 12 { // at the gate, where an attempt that was given up may still be
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	switch kind {
	case 0, 1, 2:
		c.door(ref)
	case 3:
		c.pays(ref)
	case 4:
		m := startedAmount([]int64{5, 5, 7}[c.rng.IntN(3)], "EUR")
		m.PaymentRef = ref
		c.SignalWorkflow(contract.SignalPaymentStarted, m)
	case 5:
		c.SignalWorkflow(contract.SignalRelease, contract.Release{Reason: contract.ReasonShop})
	case 6:
		c.CancelWorkflow()
	case 7: // a worker that died had given the last lines back
		c.lost(i, ref)
	case 8: // its gate reopened
		s.hold.Deadline = s.hold.Deadline.Add(time.Duration(c.rng.IntN(8)) * time.Second)
	case 9: // one is broken
		s.free--
		c.total[i]--
	case 10: // one came
		s.free++
		c.total[i]++
	case 11: // another takes what is free
		c.total[i] -= max(s.free, 0)
		s.free -= max(s.free, 0)
	case 12:
		c.SignalWorkflow(contract.SignalPaymentFailed, contract.PaymentFailed{PaymentRef: ref, Final: c.rng.IntN(3) == 0, AttemptOnly: c.rng.IntN(2) == 0})
	case 13:
		c.SignalWorkflow(contract.SignalRelease, contract.Release{Reason: contract.ReasonShopper})
	}
}

// lost gives the lines from i on back as a worker that died before it could say so.
// A payment may come before the next worker runs.
func (c *chaos) lost(i int, ref string) {
	if c.Now().Before(c.hold.Deadline) {
		return
	}
	c.mu.Lock()
	for j := 2; j >= i; j-- {
		if s := c.on(cartLines()[j].SKU); s.hold.State == contract.HoldHeld && !c.Now().Before(s.hold.Deadline) {
			s.end(c.Now(), contract.HoldExpired, contract.ReasonExpired)
		}
	}
	c.mu.Unlock()
	if c.rng.IntN(4) > 0 {
		c.door(ref)
	}
}

// asks lets the provider say anything about the payments, also at the slowest moment.
func (c *chaos) asks() {
	word := func(ref string) says {
		say := []says{openThere, noAnswer, nobodyKnew, paidThere(ref, 5), paidThere("I"+ref, 5)}[c.rng.IntN(5)]
		if said := say.status.Ref; said != "" {
			say.do = func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.heard[said] = ref
			}
		}
		return say
	}
	c.provider.status, c.provider.cancel = map[string][]says{}, map[string][]says{}
	for _, ref := range []string{"P1", "P2"} {
		if c.rng.IntN(4) == 0 {
			c.begin(time.Duration(c.rng.IntN(600))*time.Second, ref)
		}
		c.provider.status[ref] = []says{word(ref), word(ref)}
		c.provider.cancel[ref] = []says{word(ref), word(ref)}
	}
}

func play(t *testing.T, seed uint64, asks bool) (*chaos, contract.HoldState) {
	c := &chaos{world: cart(t), rng: rand.New(rand.NewPCG(seed, 1)), total: [3]int64{2, 1, 1}, sellers: map[string]*seller{}, heard: map[string]string{}, paid: map[string]bool{}}
	for range 2 + c.rng.IntN(7) {
		at := 10*time.Minute + time.Duration(c.rng.IntN(6000)-2000)*time.Millisecond
		if c.rng.IntN(4) == 0 {
			at = time.Duration(c.rng.IntN(600)) * time.Second
		}
		c.at(at, c.happen)
	}
	// The worker is slow around the deadline, or one call of its is.
	slow := []string{"", "release expired TABLE", "release expired LAMP", "confirm LAMP", "confirm TABLE", "release expired CHAIR"}[c.rng.IntN(6)]
	if c.rng.IntN(3) == 0 {
		slow = "release expired TABLE"
		c.at(10*time.Minute+time.Duration(c.rng.IntN(3000))*time.Millisecond, func() { c.lost(0, "P1") })
	}
	until := began.Add(10*time.Minute + time.Duration(c.rng.IntN(9000))*time.Millisecond)
	// Or the gate of a line is closed, from any time on.
	shut, from := "", began.Add(time.Duration(c.rng.IntN(610))*time.Second)
	if c.rng.IntN(3) == 0 {
		shut = cartLines()[c.rng.IntN(3)].SKU
	}
	open := from.Add(time.Duration(c.rng.IntN(60)) * time.Second)
	c.down = func(verb string) error {
		if at := c.Now(); shut != "" && strings.HasSuffix(verb, " "+shut) && at.After(from) && at.Before(open) {
			return &redis.ClosedError{SKU: shut}
		}
		if verb == slow && c.Now().After(began.Add(10*time.Minute-2*time.Second)) && c.Now().Before(until) {
			return redis.ErrUnavailable
		}
		return nil
	}
	for second := range 30 {
		c.at(10*time.Minute+time.Duration(second)*time.Second/2-2*time.Second, c.tick)
	}
	for step := range 400 {
		c.at(time.Duration(step)*7*time.Second, c.tick)
	}
	in := cartInput()
	if in.Settings.AsksProvider = asks; asks {
		c.asks()
	}
	c.ExecuteWorkflow(contract.HoldWorkflow, in)
	require.True(t, c.IsWorkflowCompleted(), "seed %d", seed)
	var out contract.HoldResult
	if err := c.GetWorkflowError(); err == nil {
		require.NoError(t, c.GetWorkflowResult(&out))
	} else {
		require.True(t, temporal.IsCanceledError(err), "seed %d: %v", seed, err)
		out.State = contract.HoldReleased
	}
	c.mu.Lock()
	c.after, c.down = true, nil
	c.mu.Unlock()
	if s := contract.CartState(c.states()...); s != contract.HoldSold && c.rng.IntN(2) == 0 {
		c.start("P1")
	}
	for range 100 { // the Payments outlive it
		c.tick()
	}
	return c, out.State
}

// Whatever happens to a cart between any two calls, it ends sold whole by one payment
// or not at all, no unit is lost or doubled, and every payment is that sale or marked.
func TestCartsAreNeverSoldByHalves(t *testing.T) {
	for name, asks := range map[string]bool{"": false, "with a provider": true} {
		t.Run(name, func(t *testing.T) { neverSoldByHalves(t, asks) })
	}
}

func neverSoldByHalves(t *testing.T, asks bool) {
	ends := map[contract.HoldState]int{}
	seeds := uint64(400)
	if os.Getenv("HOLDFAST_LONG") != "" {
		seeds = 20_000
	}
	for seed := range seeds {
		c, closed := play(t, seed, asks)
		first := c.hold
		about := func() string { return fmt.Sprintf("seed %d\n%v\n%v", seed, c.log, c.since(0)) }
		for i, l := range cartLines() {
			s := c.on(l.SKU)
			require.False(t, s.hold.State.Live(), "a line lives on: %s", about())
			require.Equal(t, first.State == contract.HoldSold, s.hold.State == contract.HoldSold, "sold by halves: %s", about())
			require.Equal(t, first.PaymentRef, s.hold.PaymentRef, "sold by two: %s", about())
			units := s.free
			if s.hold.State == contract.HoldSold {
				units += l.Quantity
			}
			require.Equal(t, c.total[i], units, "units of %s: %s", l.SKU, about())
		}
		if closed == contract.HoldSold {
			require.Equal(t, contract.HoldSold, first.State, "closed as sold: %s", about())
		}
		for _, in := range c.payments {
			sale := first.State == contract.HoldSold && first.PaymentRef == in.PaymentRef
			require.NotEqual(t, sale, slices.Contains(first.Refunded, in.PaymentRef), "payment %s has one outcome: %s", in.PaymentRef, about())
		}
		for ref := range c.paid {
			owned := slices.ContainsFunc(c.payments, func(in contract.PaymentInput) bool { return in.PaymentRef == ref })
			require.True(t, owned || first.PaymentRef == ref || c.sellers[ref] != nil, "money %s has no owner: %s", ref, about())
		}
		for said, ref := range c.heard {
			owned := slices.ContainsFunc(c.payments, func(in contract.PaymentInput) bool { return in.PaymentRef == said || in.PaymentRef == ref })
			require.True(t, owned || first.PaymentRef == said || first.PaymentRef == ref, "money %s of %s has no owner: %s", said, ref, about())
		}
		if len(c.heard) > 0 {
			ends["heard"]++
		}
		for ref, s := range c.sellers {
			require.True(t, s.done && (s.sold || s.refunded), "payment %s is undecided: %s", ref, about())
		}
		if first.State == contract.HoldSold && closed != contract.HoldSold {
			ends["retaken"]++
		}
		if c.beside > 1 {
			ends["beside"]++
		}
		ends[closed]++
	}
	t.Log(ends)
	require.Equal(t, asks, ends["heard"] > 50)
	for _, end := range []contract.HoldState{contract.HoldSold, contract.HoldExpired, contract.HoldReleased, "retaken", "beside"} {
		require.Greater(t, ends[end], 5, "%s is reached too seldom to prove anything", end)
	}
}
