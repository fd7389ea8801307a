package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/contract"
)

// bell is one thing that must ring.
type bell struct {
	name  string
	rings func(ctx context.Context) (says string, err error) // an error: not yet
}

// listen waits for each bell and says which rang, and when.
func (r *drillRun) listen(ctx context.Context) error {
	began := time.Now()
	var silent []string
	for _, b := range []bell{
		{"tripwire of the gate", r.gateRings},
		{"alarm of the book", r.bookRings},
		{"event " + contract.EventStockShortfall, r.shopTold},
		{"/readyz", r.readyRings},
		{"metric holdfast_tripwire", r.metricRings},
		{"report of a pass", r.reportRings},
	} {
		var says string
		err := r.until(ctx, func() error {
			var err error
			if says, err = b.rings(ctx); err != nil && !errors.Is(err, errOff) {
				return passing{err}
			}
			return err
		})
		after := time.Since(began).Seconds()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errOff):
			r.heard(b.name, bellOff, says, after)
		case err != nil:
			silent = append(silent, b.name)
			r.heard(b.name, bellSilent, oneLine(err), after)
		default:
			r.heard(b.name, bellRang, says, after)
		}
	}
	r.say("The log of worker and door has a line `tripwire` of level ERROR that names %s.", drillSKU)
	if len(silent) > 0 {
		return fmt.Errorf("did not ring: %s", strings.Join(silent, ", "))
	}
	return nil
}

// What a bell did. One that is off has nobody to tell, which is no failure.
const (
	bellRang   = "rang"
	bellSilent = "silent"
	bellOff    = "off"
)

var errOff = errors.New("it is off")

// drillReport is the drill for a program.
type drillReport struct {
	SKU     string      `json:"sku"`
	Bells   []drillBell `json:"bells"`
	PutAway bool        `json:"put_away"` // and silent again
}

type drillBell struct {
	Bell    string  `json:"bell"`
	State   string  `json:"state"`
	Says    string  `json:"says"`
	Seconds float64 `json:"seconds"` // from the promise of too much on
}

func (r *drillRun) heard(bell, state, says string, after float64) {
	r.report.Bells = append(r.report.Bells, drillBell{bell, state, says, after})
	switch state {
	case bellRang:
		r.say("rang    %-26s %s (%.1f s)", bell, says, after)
	case bellSilent:
		r.say("SILENT  %-26s %s", bell, says)
	case bellOff:
		r.say("off     %-26s %s", bell, says)
	}
}

// silence waits until the alarm is over.
func (r *drillRun) silence(ctx context.Context) error {
	err := r.until(ctx, func() error {
		t, err := r.tripwire(ctx)
		if err != nil {
			return err
		}
		if t.Alarm != nil || len(t.Rings) > 0 {
			return passing{errors.New("its alarm is still on")}
		}
		ready, err := r.readyWires(ctx)
		if err == nil && len(ready) > 0 {
			err = passing{errors.New("/readyz still names it")}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("SKU %s is put away, but not silent: %w", drillSKU, err)
	}
	r.report.PutAway = true
	r.say("silent  %-26s put away, and the alarm is over", drillSKU)
	return nil
}

type drillTripwire struct {
	Rings  []contract.Ring `json:"rings"`
	Paused bool            `json:"paused"`
	Alarm  *struct {
		Rings []contract.Ring `json:"rings"`
	} `json:"alarm"`
	Event *struct {
		EventID string `json:"event_id"`
		State   string `json:"state"`
		Reason  string `json:"reason"`
	} `json:"event"`
}

func (r *drillRun) tripwire(ctx context.Context) (t drillTripwire, err error) {
	got, err := r.get(ctx, "/v1/stock/"+drillSKU+"/tripwire")
	if err == nil {
		err = json.Unmarshal(got.body, &t)
	}
	return t, err
}

var errSilent = errors.New("it is silent")

func rung(rings []contract.Ring) (string, error) {
	for _, ring := range rings {
		if ring.Wire == contract.WireShortfall {
			return ring.Says, nil
		}
	}
	return "", errSilent
}

func (r *drillRun) gateRings(ctx context.Context) (string, error) {
	t, err := r.tripwire(ctx)
	if err != nil {
		return "", err
	}
	return rung(t.Rings)
}

func (r *drillRun) bookRings(ctx context.Context) (string, error) {
	t, err := r.tripwire(ctx)
	if err != nil {
		return "", err
	}
	if t.Alarm == nil {
		return "", errSilent
	}
	if _, err := rung(t.Alarm.Rings); err != nil {
		return "", err
	}
	if t.Paused {
		return "the SKU is paused (tripwire.pause)", nil
	}
	return "the SKU sells on (tripwire.pause is off)", nil
}

// shopTold is after the alarm of the book, which has told the shop by then or has
// nobody to tell.
func (r *drillRun) shopTold(ctx context.Context) (string, error) {
	t, err := r.tripwire(ctx)
	switch {
	case err != nil:
		return "", err
	case t.Event == nil:
		return "the shop has no endpoint (events.url): nobody is told", errOff
	case t.Event.State != contract.EventDelivered:
		return "", fmt.Errorf("%s is %s and not taken by the shop's endpoint: %s", t.Event.EventID, t.Event.State, t.Event.Reason)
	}
	return t.Event.EventID + " was taken by the shop's endpoint", nil
}

func (r *drillRun) readyRings(ctx context.Context) (string, error) {
	wires, err := r.readyWires(ctx)
	if err != nil {
		return "", err
	}
	if !slices.Contains(wires, contract.WireShortfall) {
		return "", errSilent
	}
	return strings.Join(wires, ", "), nil
}

func (r *drillRun) readyWires(ctx context.Context) ([]string, error) {
	v, err := r.ready(ctx)
	return v.Tripwire[drillSKU], err
}

type drillReady struct {
	Rings    float64             `json:"tripwire_rings"`
	Tripwire map[string][]string `json:"tripwire"`
}

func (r *drillRun) ready(ctx context.Context) (v drillReady, err error) {
	body, err := r.askOps(ctx, "/readyz")
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, fmt.Errorf("%s/readyz is no answer of a door: %w", r.ops, err)
	}
	return v, nil
}

// calm notes the metric before anything rings. It is some seconds behind, and may still
// count an earlier drill; what cannot be read is found later.
func (r *drillRun) calm(ctx context.Context) {
	err := r.until(ctx, func() error {
		var err error
		if r.before, err = r.metric(ctx); err != nil {
			return err
		}
		v, err := r.ready(ctx)
		if err == nil && v.Rings != r.before {
			err = passing{fmt.Errorf("it counts %g SKUs, and /readyz %g", r.before, v.Rings)}
		}
		return err
	})
	if err != nil {
		fmt.Fprintln(r.std.Err, "the metric before the drill:", oneLine(err))
	}
}

func (r *drillRun) metricRings(ctx context.Context) (string, error) {
	now, err := r.metric(ctx)
	if err != nil {
		return "", err
	}
	if now <= r.before {
		return "", fmt.Errorf("it is %g, and was %g before", now, r.before)
	}
	return fmt.Sprintf("%g, was %g", now, r.before), nil
}

func (r *drillRun) metric(ctx context.Context) (float64, error) {
	body, err := r.askOps(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "holdfast_tripwire "); ok {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("%s/metrics has no holdfast_tripwire", r.ops)
}

func (r *drillRun) reportRings(ctx context.Context) (string, error) {
	p, err := r.door.reconcile(ctx, drillSKU, true, false, passWait{most: r.wait})
	if err != nil {
		return "", err
	}
	for _, alarm := range p.Alarms {
		if strings.HasPrefix(alarm, contract.WireShortfall+":") {
			return alarm, nil
		}
	}
	return "", errSilent
}

// askOps asks the ops listener, which wants no key.
func (r *drillRun) askOps(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.ops+path, nil)
	if err != nil {
		return nil, err
	}
	got, err := r.do(req)
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w (HOLDFAST_OPS_URL says where the door answers operators)", r.ops, path, err)
	}
	return got.body, nil
}
