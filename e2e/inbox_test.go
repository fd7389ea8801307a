package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

const inboxSecret = "whsec_dGhlLWV2ZW50cy1vZi10aGUtc2hvcC1vZi10aGUtc3Rvcnk="

// told is an event as the shop reads it.
type told struct {
	ID       string
	Type     string          `json:"type"`
	Sequence int64           `json:"sequence"`
	Data     json.RawMessage `json:"data"`
}

// inbox is the shop's endpoint for events.
type inbox struct {
	*httptest.Server
	verify *standardwebhooks.Webhook

	mu     sync.Mutex
	status int               // of every answer; 0: 204
	calls  int               // with any answer
	taken  []told            // each once, in the order of their arrival
	bodies map[string]string // by id, of every call
	wrong  []error
	parrot bool          // refuses each event once, with its own words
	mute   chan struct{} // while it is there and open, nobody gets an answer
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	verify, err := standardwebhooks.NewWebhook(inboxSecret)
	require.NoError(t, err)
	b := &inbox{verify: verify, bodies: map[string]string{}}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

// env is what makes a house tell this inbox.
func (b *inbox) env(pairs ...string) map[string]string {
	return with(nil, append(pairs, "HOLDFAST_EVENTS_URL", b.URL, "HOLDFAST_EVENTS_SECRETS", inboxSecret)...)
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = b.verify.Verify(body, r.Header)
	}
	if b.mute != nil {
		select {
		case <-b.mute:
		case <-r.Context().Done():
			return
		}
	}
	e := told{ID: r.Header.Get("webhook-id")}
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	before, again := b.bodies[e.ID]
	if again && before != string(body) {
		err = fmt.Errorf("event %s was %s and is now %s", e.ID, before, body)
	}
	if err != nil {
		b.wrong = append(b.wrong, err)
	}
	b.bodies[e.ID] = string(body)
	if b.parrot && !again {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(body[max(0, len(body)-190):])
		return
	}
	if b.status != 0 {
		w.WriteHeader(b.status)
		return
	}
	if !slices.ContainsFunc(b.taken, func(t told) bool { return t.ID == e.ID }) {
		b.taken = append(b.taken, e)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (b *inbox) answers(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
}

func (b *inbox) called() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// story is what the shop has read, by sequence; of one instant by type.
func (b *inbox) story(t *testing.T) []told {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NoError(t, errors.Join(b.wrong...))
	return slices.SortedStableFunc(slices.Values(b.taken), func(x, y told) int {
		return cmp.Or(cmp.Compare(x.Sequence, y.Sequence), cmp.Compare(x.Type, y.Type))
	})
}

// has waits until a number of events have come.
func (b *inbox) has(ctx context.Context, n int) error {
	return until(ctx, fmt.Sprintf("the shop was told %d times", n), func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.taken) < n {
			return fmt.Errorf("%d times, last of %+v", len(b.taken), b.taken[max(0, len(b.taken)-3):])
		}
		return nil
	})
}

func typesOf(story []told) (out []string) {
	for _, e := range story {
		out = append(out, e.Type)
	}
	return out
}
