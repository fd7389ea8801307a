package starter

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// What is quick is seen quickly, and what does not come costs few looks.
func TestWatchLooksLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var looks []time.Duration
		require.NoError(t, watch(t.Context(), began.Add(moveWait), func() (bool, error) {
			looks = append(looks, time.Since(began))
			return false, nil
		}))
		require.Equal(t, []time.Duration{0, 25 * time.Millisecond}, looks[:2])
		require.Less(t, looks[4], 250*time.Millisecond)
		require.Equal(t, moveWait, looks[len(looks)-1], "it looks once more at the end")
		require.Less(t, len(looks), 45)
	})
}

func TestWatchEnds(t *testing.T) {
	looks := 0
	look := func(done bool, err error) func() (bool, error) {
		return func() (bool, error) { looks++; return done, err }
	}
	later := time.Now().Add(time.Hour)
	require.NoError(t, watch(t.Context(), later, look(true, nil)))
	broken := errors.New("broken")
	require.ErrorIs(t, watch(t.Context(), later, look(false, broken)), broken)
	require.NoError(t, watch(t.Context(), time.Now(), look(false, nil)))
	require.Equal(t, 3, looks, "each looked once")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, watch(gone, later, look(false, nil)), context.Canceled)
}

// With every worker away each request that moves a hold waits. Beyond moveMost they
// leave their word with the workflow and are answered at once.
func TestOnlySoManyWaitForAHold(t *testing.T) {
	h := newHouse(t, 2)
	hold, other := h.hold(), h.askHold("key-other").hold(t)
	h.wf.set(func() { h.wf.inert = true })
	for range moveMost {
		h.door.moving <- struct{}{}
	}
	began := time.Now()
	p := h.call("POST", "/v1/holds/"+hold.HoldID+"/release", nil).problem(t)
	require.Equal(t, [2]any{unavailable, http.StatusServiceUnavailable}, [2]any{p.Code, p.Status})
	require.Contains(t, p.Detail, "repeat")
	a := h.call("POST", "/v1/holds/"+other.HoldID+"/checkout", map[string]any{"payment_ref": "pay-1"})
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Less(t, time.Since(began), moveWait, "neither waited")
	sent := h.wf.sent()
	require.Equal(t, [2]string{contract.SignalRelease, contract.SignalPaymentStarted}, [2]string{sent[0].Name, sent[1].Name})
	for range moveMost {
		<-h.door.moving
	}
	h.wf.set(func() { h.wf.inert = false })
	require.Equal(t, http.StatusOK, h.call("POST", "/v1/holds/"+hold.HoldID+"/release", nil).status)
	require.Empty(t, h.door.moving, "the place is free again")
}
