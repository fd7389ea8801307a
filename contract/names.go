// Package contract holds every name that crosses a process border: task
// queues, workflow types, signals, updates, queries, search attributes, error
// types, states, message structs and id builders. It imports no other package
// of the project, so that any client of Temporal can be written against it.
package contract

// Task queues. Texts have a queue of their own so that its rate limit is
// global, however many workers run.
const (
	TaskQueue    = "holdfast"
	SMSTaskQueue = "holdfast-sms"
	// EventsTaskQueue keeps a slow endpoint of the shop away from the holds.
	EventsTaskQueue = "holdfast-events"
)

// Priorities of what waits in one queue for a worker: 1 goes first. An activity has that
// of its workflow, unless it is here. Temporal gives 3 to what names none.
const (
	PriorityBook   = 1 // Stock, Reconcile, ReconcileAll
	PriorityUnit   = 2 // Hold, Payment, the text of an offer: units or money wait for it
	PriorityPerson = 3 // OptOut
	PriorityLine   = 4 // WaitlistEntry, and the text that tells of a place
	PriorityNews   = 5 // Event
)

// Workflow types.
const (
	HoldWorkflow          = "Hold"
	WaitlistEntryWorkflow = "WaitlistEntry"
	StockWorkflow         = "Stock"
	PaymentWorkflow       = "Payment"
	ReconcileWorkflow     = "Reconcile"
	ReconcileAllWorkflow  = "ReconcileAll"
	EventWorkflow         = "Event"
	OptOutWorkflow        = "OptOut"
)

// Signals of a Hold. Any Temporal client may send them; the payloads are
// PaymentStarted, PaymentSucceeded, PaymentFailed and Release.
const (
	SignalPaymentStarted   = "payment-started"
	SignalPaymentSucceeded = "payment-succeeded"
	SignalPaymentFailed    = "payment-failed"
	SignalRelease          = "release"
)

// Signals of a WaitlistEntry; the payloads are Offered, Claimed, HoldEnded,
// EntryEnded, TextStatus, TextWait and Leave.
const (
	SignalOffered    = "offered"
	SignalClaimed    = "claimed"
	SignalHoldEnded  = "hold-ended"
	SignalEnded      = "ended"
	SignalTextStatus = "text-status"
	SignalTextWaits  = "text-waits"
	SignalLeave      = "leave"
)

// Signals of a Stock: StockEvent, and Settle without content, which says that
// the outbox of the SKU has something due.
const (
	SignalStockEvent = "stock-event"
	SignalSettle     = "settle"
	// SignalEpoch stores the epoch of a gate that is about to be opened after a
	// rebuild; the payload is StockEpoch.
	SignalEpoch = "epoch"
	// SignalTripwire says that the SKU's tripwire rings, or is silent again; the
	// payload is Rung.
	SignalTripwire = "tripwire"
	// SignalAudit stores how much was sold up to an instant; the payload is StockAudit.
	SignalAudit = "audit"
)

// Signals of a Payment: RefundSettled says that the money went back, RefundFailed
// that it did not after all.
const (
	SignalRefundSettled = "refund-settled"
	SignalRefundFailed  = "refund-failed"
)

// SignalSaid is the signal of an OptOut; the payload is Said. STOP and START are one
// signal, so that they are heard in their order.
const SignalSaid = "said"

// Signals of an Event; the payload of both is EventMove. SignalRetry delivers it
// afresh, SignalDiscard ends it undelivered.
const (
	SignalRetry   = "retry"
	SignalDiscard = "discard"
)

// Updates: ConfirmRequest → ConfirmResult at a Hold, PolicyRequest →
// PolicyResult and PauseRequest → PauseResult at a Stock, PaymentInput →
// PaymentDecision and RefundRetry → PaymentStatus at a Payment.
const (
	UpdateConfirm     = "confirm"
	UpdatePolicy      = "policy"
	UpdatePause       = "pause"
	UpdateDecide      = "decide"
	UpdateRetryRefund = "retry-refund"
)

// Queries. Every workflow answers status: HoldStatus, EntryStatus, StockBook,
// PaymentStatus, ReconcileReport, ReconcileAllReport, EventStatus or OptOutStatus.
const QueryStatus = "status"

// ReconcileSchedule is the id of the Schedule that starts ReconcileAll, and of its
// runs.
const ReconcileSchedule = "reconcile"

// Search attributes. SKUAttribute is a KeywordList, StateAttribute a Keyword.
const (
	SKUAttribute   = "HoldfastSku"
	StateAttribute = "HoldfastState"
)

// Error types of activities, as ApplicationError types. ErrBadRequest,
// ErrTextNever and ErrEventNever are final, the others are retried.
const (
	ErrClosed      = "gate-closed"
	ErrUnavailable = "gate-unavailable"
	ErrBadRequest  = "bad-request"
	ErrTextNever   = "text-never"
	ErrTextLater   = "text-later"
	ErrTextStopAll = "text-stop-all"
	ErrEventNever  = "event-never"
	ErrEventLater  = "event-later"
)
