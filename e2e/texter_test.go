package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/e2e/shop"
)

// texter stands in for Twilio: it takes every text but those to one number, whose
// refusal quotes it, as Twilio's do.
type texter struct {
	*httptest.Server
	mu    sync.Mutex
	texts []shop.Text
}

func newTexter(t *testing.T, unreachable string) *texter {
	s := &texter{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := shop.Text{To: r.FormValue("To"), Body: r.FormValue("Body")}
		w.Header().Set("Content-Type", "application/json")
		if text.To == unreachable {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"code":21211,"status":400,"message":"The 'To' number %s is not a valid phone number."}`, text.To)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.texts = append(s.texts, text)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"sid":"SM%032d","status":"queued"}`, len(s.texts))
	}))
	t.Cleanup(s.Close)
	return s
}

// env makes a house send its texts here.
func (s *texter) env() map[string]string {
	return map[string]string{
		"HOLDFAST_SMS_PROVIDER":           "twilio",
		"HOLDFAST_SMS_TWILIO_ACCOUNT_SID": "AC" + strings.Repeat("0", 32),
		"HOLDFAST_SMS_TWILIO_AUTH_TOKEN":  strings.Repeat("0", 32),
		"HOLDFAST_SMS_TWILIO_FROM":        "+15005550006",
		"HOLDFAST_SMS_TWILIO_BASE_URL":    s.URL,
	}
}

// link waits for the reserve link that was texted to a number.
func (s *texter) link(t *testing.T, number string) string {
	t.Helper()
	var link string
	require.NoError(t, until(t.Context(), "a link is texted", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, text := range s.texts {
			if text.To == number && text.Link() != "" {
				link = text.Link()
				return nil
			}
		}
		return errors.New("no text with a link yet")
	}))
	return link
}
