// Package metrics counts what the worker and the door do, for Prometheus.
// docs/runbook.md lists every metric; labels have few values, known beforehand.
package metrics

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.temporal.io/sdk/client"

	"holdfast/redis"
	"holdfast/sms"
)

// TextOutcomes are those of an attempt to send a text: it was accepted, or it
// failed by one of the classes of package sms, or otherwise.
var TextOutcomes = []string{"accepted", string(sms.Never), string(sms.Later), string(sms.StopAll), "failed"}

// Metrics are those of one process. It is a redis.Observer and safe for
// concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	temporal *sdkMetrics
	verbs    *prometheus.CounterVec
	seconds  prometheus.Histogram
	paid     prometheus.Histogram
	texts    *prometheus.CounterVec
	states   *prometheus.CounterVec
	drift    *drift
	faults   *faults
}

var _ redis.Observer = (*Metrics)(nil)

// New makes the metrics that every process has: the gate's, those of Temporal's
// client, and those of Go and of the process.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		faults:   &faults{now: time.Now, found: map[string]time.Time{}},
		verbs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_gate_verbs_total", Help: "Calls of the gate by verb and outcome.",
		}, []string{"verb", "outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "holdfast_gate_seconds", Help: "How long calls of the gate took, as their callers saw it.",
			Buckets: []float64{.0002, .0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5},
		}),
	}
	for _, verb := range redis.Verbs() {
		for _, trouble := range redis.Troubles() {
			m.verbs.WithLabelValues(verb, trouble) // an increase wants to see the step from 0 to 1
		}
	}
	m.registry.MustRegister(m.verbs, m.seconds, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.temporal = newSDKMetrics(m.registry)
	return m
}

// ForWorker adds what only the worker knows: texts and payments.
func (m *Metrics) ForWorker() {
	m.paid = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "holdfast_hold_to_payment_seconds", Help: "From a walk-in's hold to its sale, once for each line.",
		Buckets: []float64{10, 20, 30, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1800, 3600, 7200},
	})
	m.texts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_texts_total", Help: "Attempts to hand a text to its provider, by outcome.",
	}, []string{"outcome"})
	m.drift = &drift{now: time.Now, found: map[string]found{}}
	m.registry.MustRegister(m.paid, m.texts, m.drift.gauge())
	for _, outcome := range TextOutcomes {
		m.texts.WithLabelValues(outcome) // a rate wants to see the step from 0 to 1
	}
}

// TextStates are those that a provider's callback can tell of a text.
var TextStates = []sms.State{
	sms.StateAccepted, sms.StateScheduled, sms.StateQueued, sms.StateSending, sms.StateSent, sms.StateDelivered,
	sms.StateRead, sms.StateUndelivered, sms.StateFailed, sms.StateCanceled,
}

// ForDoor adds what only the door knows: how far texts have come.
func (m *Metrics) ForDoor() {
	m.states = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_text_states_total", Help: "What the provider told of texts on their way, by state.",
	}, []string{"state"})
	m.registry.MustRegister(m.states)
	for _, state := range TextStates {
		m.states.WithLabelValues(string(state))
	}
}

// TextState is one callback, of a state that sms knows. After ForDoor.
func (m *Metrics) TextState(state sms.State) { m.states.WithLabelValues(string(state)).Inc() }

// Handler answers a scrape.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Temporal takes the metrics of Temporal's client and worker.
func (m *Metrics) Temporal() client.MetricsHandler { return m.temporal.handler() }

// Verb is one call of the gate.
func (m *Metrics) Verb(verb, outcome string, took time.Duration) {
	m.verbs.WithLabelValues(verb, outcome).Inc()
	m.seconds.Observe(took.Seconds())
}

// Paid is one hold that became a sale. Only the worker confirms.
func (m *Metrics) Paid(after time.Duration) {
	if m.paid != nil {
		m.paid.Observe(after.Seconds())
	}
}

// Sender counts what next does. After ForWorker.
func (m *Metrics) Sender(next sms.Sender) sms.Sender {
	return countedSender{Sender: next, texts: m.texts}
}

type countedSender struct {
	sms.Sender
	texts *prometheus.CounterVec
}

func (s countedSender) Send(ctx context.Context, t sms.Text) (sms.Receipt, error) {
	receipt, err := s.Sender.Send(ctx, t)
	outcome := "accepted"
	if err != nil {
		outcome = "failed"
		var refusal *sms.Error
		if errors.As(err, &refusal) && slices.Contains(TextOutcomes, string(refusal.Class)) {
			outcome = string(refusal.Class)
		}
	}
	s.texts.WithLabelValues(outcome).Inc()
	return receipt, err
}
