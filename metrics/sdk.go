package metrics

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
)

// sdkTags are the tags of Temporal's SDK that become labels. It gives one
// metric now these, now those, and Prometheus wants them to be always the same:
// one that is not given is empty, which is the same to Prometheus as none.
var sdkTags = []string{
	"namespace", "operation", "status_code", "cause", "failure_reason",
	"task_queue", "worker_type", "poller_type", "workflow_type", "activity_type",
}

// sdkBuckets reach from a local call to a workflow of an hour.
var sdkBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}

// sdkMetrics are metrics that are made when the SDK first names them. The names
// are its own with the endings of Prometheus: _total, _seconds.
type sdkMetrics struct {
	registry *prometheus.Registry
	mu       sync.Mutex
	counters map[string]*prometheus.CounterVec
	gauges   map[string]*prometheus.GaugeVec
	timers   map[string]*prometheus.HistogramVec
}

func newSDKMetrics(registry *prometheus.Registry) *sdkMetrics {
	return &sdkMetrics{
		registry: registry,
		counters: map[string]*prometheus.CounterVec{}, gauges: map[string]*prometheus.GaugeVec{}, timers: map[string]*prometheus.HistogramVec{},
	}
}

func (s *sdkMetrics) handler() client.MetricsHandler { return sdkHandler{s: s} }

// vector answers the metric of a name and makes it when it is new.
func vector[V prometheus.Collector](s *sdkMetrics, known map[string]V, name string, make func() V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := known[name]
	if !ok {
		v = make()
		known[name] = v
		s.registry.MustRegister(v)
	}
	return v
}

const sdkHelp = "Of Temporal's SDK; see its documentation."

// sdkHandler is the SDK's view: the metrics under some tags.
type sdkHandler struct {
	s    *sdkMetrics
	tags map[string]string
}

func (h sdkHandler) WithTags(tags map[string]string) client.MetricsHandler {
	all := maps.Clone(h.tags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, tags)
	return sdkHandler{s: h.s, tags: all}
}

func (h sdkHandler) labels() []string {
	values := make([]string, len(sdkTags))
	for i, tag := range sdkTags {
		if v := h.tags[tag]; v != "none" { // the SDK's word for no value
			values[i] = v
		}
	}
	return values
}

func (h sdkHandler) Counter(name string) client.MetricsCounter {
	v := vector(h.s, h.s.counters, name, func() *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: strings.TrimSuffix(name, "_total") + "_total", Help: sdkHelp}, sdkTags)
	})
	return sdkCounter{v.WithLabelValues(h.labels()...)}
}

func (h sdkHandler) Gauge(name string) client.MetricsGauge {
	v := vector(h.s, h.s.gauges, name, func() *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: sdkHelp}, sdkTags)
	})
	return sdkGauge{v.WithLabelValues(h.labels()...)}
}

func (h sdkHandler) Timer(name string) client.MetricsTimer {
	v := vector(h.s, h.s.timers, name, func() *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name + "_seconds", Help: sdkHelp, Buckets: sdkBuckets}, sdkTags)
	})
	return sdkTimer{v.WithLabelValues(h.labels()...)}
}

type sdkCounter struct{ c prometheus.Counter }

func (c sdkCounter) Inc(n int64) { c.c.Add(float64(n)) }

type sdkGauge struct{ g prometheus.Gauge }

func (g sdkGauge) Update(v float64) { g.g.Set(v) }

type sdkTimer struct{ t prometheus.Observer }

func (t sdkTimer) Record(d time.Duration) { t.t.Observe(d.Seconds()) }
