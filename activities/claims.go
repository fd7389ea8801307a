package activities

import (
	"context"
	"errors"

	"holdfast/contract"
	"holdfast/launch"
)

// EntrySignaller signals the workflow of an entry; launch.ErrNoOwner when none is open.
type EntrySignaller interface {
	Signal(ctx context.Context, workflowID, signal string, arg any) error
}

// Claims tell entries what became of their offers.
type Claims struct{ Entries EntrySignaller }

// TellClaimedInput says that the entry's offer was pressed.
type TellClaimedInput struct {
	EntryID string           `json:"entry_id"`
	Claimed contract.Claimed `json:"claimed"`
}

// TellClaimed tells an entry that it holds. One whose workflow has closed has
// nothing left to learn.
func (a *Claims) TellClaimed(ctx context.Context, in TellClaimedInput) error {
	err := a.Entries.Signal(ctx, in.EntryID, contract.SignalClaimed, in.Claimed)
	if errors.Is(err, launch.ErrNoOwner) {
		return nil
	}
	return err
}
