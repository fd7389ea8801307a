package metrics

import (
	"maps"
	"sync"
	"time"
)

// faults are SKUs in whose ledger the last passes of this worker have found a fault,
// which no look at the counters sees.
type faults struct {
	mu    sync.Mutex
	now   func() time.Time
	found map[string]time.Time // by SKU
}

// LedgerFault says whether a pass over a SKU has found its ledger not to add up.
func (m *Metrics) LedgerFault(sku string, has bool) {
	m.faults.mu.Lock()
	defer m.faults.mu.Unlock()
	delete(m.faults.found, sku)
	if has {
		m.faults.found[sku] = m.faults.now()
	}
}

// and answers the SKUs of others together with those that have a fault.
func (f *faults) and(others map[string]bool) map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := maps.Clone(others)
	for sku, at := range f.found {
		if f.now().Sub(at) > driftCounts {
			delete(f.found, sku)
			continue
		}
		all[sku] = true
	}
	return all
}
