package workflows_test

import (
	"context"
	"slices"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"holdfast/contract"
	"holdfast/events"
)

// Event takes an event over once by its id.
func (w *world) Event(_ context.Context, in contract.EventInput) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts++
	if w.noOwners != nil {
		if err := w.noOwners(); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(w.told, func(e contract.EventInput) bool { return e.EventID == in.EventID }) {
		w.told = append(w.told, in)
	}
	return nil
}

// toldOf are the types of the told events, by sequence.
func (w *world) toldOf() (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sorted := slices.SortedFunc(slices.Values(w.told), func(a, b contract.EventInput) int { return int(a.Sequence - b.Sequence) })
	for _, e := range sorted {
		out = append(out, e.Type)
	}
	return out
}

// endpoint is the shop's, and answers in turn, the last answer for ever; without
// any it takes everything.
type endpoint struct {
	mu      sync.Mutex
	answers []error
	got     []events.Event
}

func (e *endpoint) Send(_ context.Context, ev events.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got = append(e.got, ev)
	if len(e.answers) == 0 {
		return nil
	}
	next := e.answers[0]
	if len(e.answers) > 1 {
		e.answers = e.answers[1:]
	}
	return next
}

func (e *endpoint) answer(answers ...error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers = answers
}

func (e *endpoint) calls() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.got)
}

// onActivity calls told with the name of each activity that starts, local or
// remote.
func (w *world) onActivity(told func(name string)) {
	w.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) { told(info.ActivityType.Name) })
	w.SetOnLocalActivityStartedListener(func(info *activity.Info, _ context.Context, _ []any) { told(info.ActivityType.Name) })
}
