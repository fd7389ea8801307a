package contract

import "time"

// ReconcileInput starts a Reconcile of one SKU. Without Pass it is the check of a
// closed gate, after the pause in which leases end.
type ReconcileInput struct {
	SKU           string `json:"sku"`
	ReopenSeconds int64  `json:"reopen_seconds"`
	// Pass looks through an open SKU and mends what it finds; a closed one is checked.
	Pass bool `json:"pass,omitempty"`
	// DryRun changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Agree mends also when so many owners are missing that an outage is likelier.
	Agree bool `json:"agree,omitempty"`
	// Since is from when on Holds that did not end by themselves are looked at; the
	// zero time for all that Temporal still knows.
	Since time.Time `json:"since,omitzero"`
}

// ReconcileReport answers the query status of a Reconcile and is its result.
type ReconcileReport struct {
	SKU     string    `json:"sku"`
	Opened  bool      `json:"opened"` // a closed gate, by this run
	Checked time.Time `json:"checked_at"`
	DryRun  bool      `json:"dry_run,omitempty"`
	// Closed says that the gate was closed when the pass met it.
	Closed bool `json:"closed,omitempty"`
	// Rebuildable says that a closed gate has what a rebuild begins with: its stock
	// and its book.
	Rebuildable bool `json:"rebuildable,omitempty"`
	// Differences are sentences for a person, at most 50. Found is how many there
	// were, and Repaired how many of them were mended.
	Differences []string `json:"differences,omitempty"`
	Found       int      `json:"found,omitempty"`
	Repaired    int      `json:"repaired,omitempty"`
	// Alarms are what no machine mends, at most 50.
	Alarms []string `json:"alarms,omitempty"`
	// Owners is how many records need an open workflow, Missing how many have none,
	// counted only up to the brake. Braked says that for so many nothing was changed.
	Owners  int  `json:"owners,omitempty"`
	Missing int  `json:"missing,omitempty"`
	Braked  bool `json:"braked,omitempty"`
	// DriftUnits is by how many units gate and workflows, or counters and their parts,
	// were apart.
	DriftUnits int64 `json:"drift_units,omitempty"`
}

// ReconcileAllInput starts a ReconcileAll: a pass over every SKU.
type ReconcileAllInput struct {
	Since time.Time `json:"since,omitzero"`
}

// ReconcileAllReport answers its query status and is its result.
type ReconcileAllReport struct {
	// Since is where the next one has to begin: when this one began, if it got
	// through with every SKU.
	Since    time.Time `json:"since"`
	SKUs     int       `json:"skus"`
	Found    int       `json:"found,omitempty"`
	Repaired int       `json:"repaired,omitempty"`
	Alarms   int       `json:"alarms,omitempty"`
	// Failed names SKUs whose pass did not get through, or not yet, at most 50.
	Failed []string `json:"failed,omitempty"`
}

// StockAudit tells a Stock how many units had ever been sold, those included that came
// back, at an instant of the gate's clock. The workflows of all these sales have
// closed, so that nobody confirms one of them again. One of a lower epoch, or of an
// earlier instant, than the last one is ignored. The book's own epoch may be ahead of its
// gate's: a rebuild that did not come to its end has raised it.
type StockAudit struct {
	Until time.Time `json:"until,omitzero"`
	Sold  int64     `json:"sold"`
	Epoch int64     `json:"epoch"`
}

// StockEpoch tells a Stock the epoch of its gate. A lower one than it knows is
// ignored.
type StockEpoch struct {
	Epoch int64 `json:"epoch"`
}
