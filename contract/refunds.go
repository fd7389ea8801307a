package contract

// RefundFailed says that a refund which the provider had taken did not go
// through: the money is with the shop again.
type RefundFailed struct {
	Reference string `json:"reference,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// RefundRetry is the payload of the update retry-refund.
type RefundRetry struct {
	Actor string `json:"actor,omitempty"`
}
