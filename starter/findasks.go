package starter

import (
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/redis"
)

// lacks notes who did not tell what they know, and what to answer when nobody else
// knows of the term either.
func (f *finding) lacks(who string, answer error) {
	if !slices.Contains(f.missing, who) {
		f.missing = append(f.missing, who)
	}
	if f.unasked == nil {
		f.unasked = answer
	}
}

// isClosed notes a SKU whose gate tells nothing while it is checked.
func (f *finding) isClosed(err error) bool {
	var closed *redis.ClosedError
	if !errors.As(err, &closed) {
		return false
	}
	f.d.metClosed(closed)
	f.lacks("SKU "+closed.SKU+" is closed while it is checked after a restart of its store: what it knows is missing",
		tryLater(retryClosed, "SKU %s is closed while it is checked after a restart of its store: it cannot be told yet whether anything is known of this; ask again", closed.SKU))
	return true
}

// onlyLedger has the lines of a thing told whose gate is closed: they can be read.
func (f *finding) onlyLedger(err error, spans map[string]time.Time) bool {
	var closed *redis.ClosedError
	if errors.As(err, &closed) {
		spans[closed.SKU] = time.Time{}
	}
	return f.isClosed(err)
}

// Who may give no answer. Asked once, they are not waited for again.
const (
	silentTemporal = "Temporal does not answer: payments that met no live hold, and what workflows say, are missing"
	silentWorker   = "no worker answers: what workflows say of themselves is missing"
)

// asks puts a question to Temporal, or to a workflow, and says whether it was answered.
// The gate's story must not wait for one that is silent.
func (f *finding) asks(ctx context.Context, silent string, question func(ctx context.Context) error) bool {
	if slices.Contains(f.missing, silentTemporal) || slices.Contains(f.missing, silent) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	err := question(ctx)
	if err != nil {
		f.d.log.Warn("a story is told without what could not be asked", "missing", silent, "error", err)
		f.lacks(silent, tryLater(retrySoon, "%s, so it cannot be told whether anything is known of this; ask again", silent))
	}
	return err == nil
}
