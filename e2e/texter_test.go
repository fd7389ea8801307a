package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/twiliostub"
)

// texter stands in for Twilio: it takes every text but those to one number, whose
// refusal quotes it, as Twilio's do.
type texter struct {
	*twiliostub.Server
	mu     sync.Mutex
	linked map[string]bool // who was sent a reserve link
}

func newTexter(t *testing.T, unreachable string) *texter {
	s := &texter{linked: map[string]bool{}}
	var err error
	s.Server, err = twiliostub.Start(twiliostub.Options{AccountSID: "AC" + strings.Repeat("0", 32), AuthToken: strings.Repeat("0", 32), OnMessage: s.taken})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.Refuse(unreachable, 21211)
	return s
}

func (s *texter) taken(m twiliostub.Message) {
	if m.Link("/r/") == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.linked[m.To] = true
}

// told is how many people were sent a reserve link.
func (s *texter) told() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.linked)
}

// links complains until so many people have a link.
func (s *texter) links(n int) func() error {
	return func() error {
		if told := s.told(); told < n {
			return fmt.Errorf("%d are", told)
		}
		return nil
	}
}

// env makes a house send its texts here.
func (s *texter) env() map[string]string {
	return map[string]string{
		"HOLDFAST_SMS_PROVIDER":           "twilio",
		"HOLDFAST_SMS_TWILIO_ACCOUNT_SID": "AC" + strings.Repeat("0", 32),
		"HOLDFAST_SMS_TWILIO_AUTH_TOKEN":  strings.Repeat("0", 32),
		"HOLDFAST_SMS_TWILIO_FROM":        "+15005550006",
		"HOLDFAST_SMS_TWILIO_BASE_URL":    s.URL,
		"HOLDFAST_SHOP_TERMS_URL":         "https://shop.example/terms",
		"HOLDFAST_SHOP_PRIVACY_URL":       "https://shop.example/privacy",
		"HOLDFAST_SHOP_SUPPORT":           "help@shop.example",
	}
}

// link waits for the reserve link that was texted to a number.
func (s *texter) link(t *testing.T, number string) string {
	t.Helper()
	var link string
	require.NoError(t, until(t.Context(), "a link is texted", func() error {
		for _, m := range s.MessagesTo(number) {
			if link = m.Link("/r/"); link != "" {
				return nil
			}
		}
		return errors.New("no text with a link yet")
	}))
	return link
}
