package workflows

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast/activities"
	"holdfast/contract"
)

// The book owns the alarm of its SKU: whoever sees a wire ring says so, the book looks
// for itself, and each alarm is logged, told and acted on once, however many see it
// and however long it lasts.

// heard notes what somebody has seen, unless the book has looked since.
func (s *stock) heard(m contract.Rung) {
	if !m.At.After(s.book.LookedAt) {
		return
	}
	s.book.Rung = append(s.book.Rung, contract.FreshRings(m.Rings, s.book.Rung)...)
	s.look = true
}

// watch looks at the tripwire whenever somebody says that it has changed.
func (s *stock) watch(ctx workflow.Context) {
	defer func() { s.loops-- }()
	for {
		if workflow.Await(ctx, func() bool { return s.book.Opened && s.look }) != nil {
			return
		}
		s.look = false
		var found activities.TripwireLook
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, lookOptions()), stockActivities.ReadTripwire,
			activities.SKURef{SKU: s.sku}).Get(ctx, &found)
		switch {
		case ctx.Err() != nil:
			s.look = true // for the next run
			return
		case err != nil:
			workflow.GetLogger(ctx).Error("tripwire not looked at", "sku", s.sku, "error", err)
			s.look = true
			if workflow.Sleep(ctx, afterBug) != nil {
				return
			}
			continue
		}
		s.looked(ctx, found)
	}
}

// lookOptions: a closed gate is asked on, which has an alarm of its own.
func lookOptions() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute,
		HeartbeatTimeout:    10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 15 * time.Second},
		Summary:             "look at the tripwire",
	}
}

// looked makes of what rings, or has been seen ringing since the last look, an alarm,
// and ends it when all is silent. What came to a wire that rang already is no news.
func (s *stock) looked(ctx workflow.Context, found activities.TripwireLook) {
	s.events.on = found.Tell
	rings := append(slices.Clone(found.Rings), contract.FreshRings(s.book.Rung, found.Rings)...)
	s.book.Rung, s.book.LookedAt = nil, found.Stock.At
	var before []contract.Ring
	since := found.Stock.At
	if s.book.Alarm != nil {
		before, since = s.book.Alarm.Rings, s.book.Alarm.Since
	}
	if fresh := contract.FreshRings(rings, before); len(fresh) > 0 {
		workflow.GetLogger(ctx).Error("tripwire", "sku", s.sku, "rings", rings, "since", since, "counters", found.Stock.StockCounts)
		s.book.Alarm = &contract.StockAlarm{Rings: rings, Since: since}
		if found.Pause {
			s.pauseForAlarm(ctx)
		}
		s.tellAlarm(contract.TripwireRinging, rings, found)
	}
	switch {
	case s.book.Alarm == nil:
	case len(found.Rings) > 0:
		s.book.Alarm.Rings = found.Rings
	default:
		workflow.GetLogger(ctx).Warn("tripwire silent again", "sku", s.sku, "since", since)
		s.tellAlarm(contract.TripwireOver, nil, found)
		s.book.Alarm = nil
	}
	s.show()
}

// pauseForAlarm pauses the SKU. Only a person resumes it: an alarm that is over does
// not, and one that goes on does not pause again.
func (s *stock) pauseForAlarm(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a turn that was asked for is taken
	done, err := s.inTurn(ctx)
	if err != nil {
		return
	}
	defer done()
	if s.book.Paused {
		return
	}
	yes := true
	_, err = gateStep[activities.Woken](ctx, "pause: the tripwire rings", stockActivities.StoreSettings,
		activities.SettingsInput{SKU: s.sku, Paused: &yes, Actor: "tripwire"})
	if err != nil {
		workflow.GetLogger(ctx).Error("not paused", "sku", s.sku, "error", err)
		return
	}
	s.book.Paused = true
}

func (s *stock) tellAlarm(state string, rings []contract.Ring, found activities.TripwireLook) {
	if !s.events.on {
		s.book.AlarmEvent = ""
		return
	}
	at := found.Stock.At
	about := occasion{subject: s.sku, nth: state + " " + strconv.FormatInt(at.UnixMicro(), 10), at: at, skus: []string{s.sku}}
	s.events.emit(contract.EventStockShortfall, about, contract.TripwireEvent{
		SKU: s.sku, State: state, Rings: append([]contract.Ring{}, rings...), Since: contract.Instant(s.book.Alarm.Since),
		Paused: s.book.Paused, Stock: found.Stock.StockCounts,
	})
	s.book.AlarmEvent = contract.EventID(s.sku, contract.EventStockShortfall, about.nth)
	s.book.Told = s.events.last
}

// alarmed says for a person what rings.
func (s *stock) alarmed() string {
	if s.book.Alarm == nil {
		return ""
	}
	says := make([]string, len(s.book.Alarm.Rings))
	for i, r := range s.book.Alarm.Rings {
		says[i] = "**" + r.Wire + "**: " + verbatim(r.Says)
	}
	return strings.Join(says, "; ") + " (since " + instant(s.book.Alarm.Since) + ")"
}
