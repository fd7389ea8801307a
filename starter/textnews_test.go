package starter

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/redis"
)

// Who calls back again and again adds a bounded number of events to an entry's
// history: three of each word, for each of its texts.
func TestRepeatedCallbacksAreBounded(t *testing.T) {
	h := newHouse(t, 0, withTwilio)
	entry := h.ring.NewEntryID(h.sku)
	call := func(hold, state string) int {
		return h.told("cause=offer&entry_id="+entry+"&hold_id="+hold, url.Values{"MessageSid": {"SM1"}, "MessageStatus": {state}})
	}
	for range 20 {
		for _, state := range []string{"sent", "delivered", "undelivered"} {
			require.Equal(t, http.StatusNoContent, call("hold_a", state))
		}
	}
	require.Len(t, h.textStatuses(), 3*textCopies)
	require.Equal(t, http.StatusNoContent, call("hold_b", "sent"))
	require.Len(t, h.textStatuses(), 3*textCopies+1, "another offer's text is another one")
}

// One that Temporal did not take comes through when it is repeated; and without
// Redis nobody counts.
func TestACallbackIsNotLostToTheBound(t *testing.T) {
	h := newHouse(t, 0, withTwilio)
	entry := h.ring.NewEntryID(h.sku)
	call := func() int {
		return h.told("cause=offer&entry_id="+entry+"&hold_id=hold_a", url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"sent"}})
	}
	h.wf.set(func() { h.wf.down = true })
	require.Equal(t, http.StatusServiceUnavailable, call())
	h.wf.set(func() { h.wf.down = false })
	require.Equal(t, http.StatusNoContent, call())
	require.Len(t, h.textStatuses(), 1)
	h.gate.break_("ClaimKey", redis.ErrUnavailable, nil)
	for range 5 {
		require.Equal(t, http.StatusNoContent, call())
	}
	require.Len(t, h.textStatuses(), 6)
}
