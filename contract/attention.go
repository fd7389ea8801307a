package contract

// Kinds of what a person should look at, of GET /v1/attention.
const (
	LookRedisSilent    = "redis-silent"
	LookTemporalSilent = "temporal-silent"
	LookNoWorker       = "no-worker"    // nobody asks for the tasks of a queue
	LookWorkWaits      = "work-waits"   // a task has waited for a worker for long
	LookNoPass         = "no-pass"      // no pass over any SKU has ended for long
	LookPassFailed     = "pass-failed"  // the last pass over a SKU
	LookPassAlarm      = "pass-alarm"   // an alarm of the last pass over a SKU
	LookDrift          = "drift"        // units that the last pass found and did not mend
	LookRebuilt        = "rebuilt"      // a SKU, after Redis had lost data
	LookOtherAmount    = "other-amount" // a live hold keeps money that was not announced so
)
