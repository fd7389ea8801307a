package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// driftCounts is how long what a pass has found says something: the next pass over
// the SKU may be another worker's.
const driftCounts = 3 * time.Minute

// drift is what the last passes of this worker have found.
type drift struct {
	mu    sync.Mutex
	now   func() time.Time
	found map[string]found // by SKU
}

type found struct {
	units int64
	at    time.Time
}

func (d *drift) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "holdfast_drift_units", Help: "Units by which gate and workflows, or counters and their parts, differed in the last passes of this worker.",
	}, d.sum)
}

func (d *drift) sum() (sum float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for sku, f := range d.found {
		if d.now().Sub(f.at) > driftCounts {
			delete(d.found, sku)
			continue
		}
		sum += float64(f.units)
	}
	return sum
}

// Drift is what a pass over a SKU has found, before it mended it. After ForWorker.
func (m *Metrics) Drift(sku string, units int64) {
	m.drift.mu.Lock()
	defer m.drift.mu.Unlock()
	delete(m.drift.found, sku)
	if units != 0 {
		m.drift.found[sku] = found{units, m.drift.now()}
	}
}
