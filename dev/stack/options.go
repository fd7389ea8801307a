// Package stack starts and watches the processes of a whole Holdfast on one
// machine: Redis, the embedded Temporal, worker and door. `make dev` and the
// end-to-end tests stand on it; the product never imports it.
package stack

import (
	"fmt"

	"holdfast/config"
)

// Names of the children, in the order in which they start. They stop in the
// reverse order. A child that is not wanted or runs elsewhere has no Child.
const (
	Redis    = "redis"
	Temporal = "temporal"
	Worker   = "worker"
	Door     = "door"
)

// Supervisor is the name under which the stack itself speaks to
// Options.Output.
const Supervisor = "dev"

// Secrets of a stack, unless Options.Env says otherwise. They are published,
// so the product refuses them outside mode dev.
const (
	APIKey          = config.DevAPIKey // the bearer key
	InventorySecret = config.DevWebhookSecret
)

// Options say what to start. Addresses are host:port; an empty one becomes a
// free port of 127.0.0.1, which the stack keeps over restarts of the child.
type Options struct {
	// Dir holds all state, logs and the texts file; it is made when missing.
	// A stack started again on the same Dir finds what the last one left.
	Dir string
	// Holdfast and TemporalBin are the built binaries.
	Holdfast    string
	TemporalBin string

	RedisAddr    string
	TemporalAddr string
	DoorAddr     string
	UIAddr       string // with UI; its host is that of TemporalAddr
	UI           bool   // serve the Temporal UI

	// External names servers that run already and are used instead of
	// children. The stack never stops or empties them.
	External External
	// RedisStandIn runs an in-process stand-in in place of redis-server. It
	// forgets everything when the stack ends and has no fence. Temporal then
	// keeps its state in memory too: a book without its gate is no state.
	RedisStandIn bool
	// AppendFsync is Redis' appendfsync; "" is everysec.
	AppendFsync string

	// Env is added to the environment of worker and door and wins over what
	// the stack sets.
	Env map[string]string
	// NoWorker and NoDoor leave the child out.
	NoWorker bool
	NoDoor   bool

	// Supervise starts a child again that died by itself after it had been
	// ready, with a growing pause. One that was ended by Kill or Stop stays
	// down.
	Supervise bool
	// Output gets each line that a child writes and, from Supervisor, what the
	// stack itself has to say. It may be called from several goroutines. nil
	// drops the lines; Dir/logs has them all the same.
	Output func(child, line string)
}

// External are addresses of servers that run already.
type External struct {
	Redis    string
	Temporal string
}

// PortTakenError says that a child cannot listen where it was told to.
type PortTakenError struct {
	Child string // Redis, Temporal, Door, or UI for the Temporal UI
	Addr  string
}

// UI is the PortTakenError.Child of the Temporal UI, which is part of the
// child Temporal.
const UI = "Temporal UI"

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("%s is taken, and the %s wants it", e.Addr, e.Child)
}
