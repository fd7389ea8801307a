package starter

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

func withPages(cfg *config.Config, _ *redis.Options) {
	cfg.Shop.TermsURL, cfg.Shop.PrivacyURL, cfg.Shop.Support = "https://oak.example/terms", "https://oak.example/privacy", "help@oak.example"
}

// consents are what the entries' workflows were told, by phone.
func (h *house) consents(n int) map[string]contract.Consent {
	h.t.Helper()
	h.eventually("the workflows start", func() bool { return h.wf.started() == n })
	out := map[string]contract.Consent{}
	h.wf.set(func() {
		for _, in := range h.wf.entries {
			require.NotNil(h.t, in.Consent)
			require.WithinDuration(h.t, in.JoinedAt, in.Consent.At, time.Minute)
			c := *in.Consent
			c.At = in.JoinedAt
			out[in.Phone] = c
		}
	})
	return out
}

func TestConsentIsKept(t *testing.T) {
	h := newHouse(t, 0, withPages)
	caller, _, _ := strings.Cut(h.cfg.Secrets.APIKeys[0], ":")
	first := h.browse("GET", "/join/"+h.sku, nil)
	page := first.body
	require.Contains(t, first.text(), "I agree to get texts from Oak & Sons about my place in this line. Message and data rates may apply. Reply STOP to stop, HELP for help.")
	require.Contains(t, page, `href="https://oak.example/terms"`)
	require.Contains(t, page, `href="https://oak.example/privacy"`)
	a := h.browse("POST", "/join/"+h.sku, url.Values{"phone": {"+12025550101"}, "consent": {"yes"}, "quantity": {"1"}})
	require.Equal(t, http.StatusAccepted, a.status, a.body)
	join := func(phone, version string, header ...string) {
		body := map[string]any{"sku": h.sku, "phone": phone, "consent": true, "locale": "de"}
		if version != "" {
			body["consent_version"] = version
		}
		a := h.call("POST", "/v1/waitlist", body, header...)
		require.Less(t, a.status, 300, a.body)
	}
	join("+12025550102", "popup 7")
	join("+12025550103", "", "Authorization", "")
	got := h.consents(3)
	for phone, want := range map[string]contract.Consent{
		"+12025550101": {TextVersion: consentVersion(h.door.pages.all[0], h.cfg.Shop), Source: "form"},
		"+12025550102": {TextVersion: "popup 7", Source: "api:" + caller},
		"+12025550103": {Source: "public"},
	} {
		want.At = got[phone].At
		require.Equal(t, want, got[phone])
	}
	require.Equal(t, http.StatusUnprocessableEntity, h.call("POST", "/v1/waitlist", map[string]any{
		"sku": h.sku, "phone": "+12025550104", "consent": true, "consent_version": strings.Repeat("x", 65),
	}).status)
}

func TestOnlyYesIsConsent(t *testing.T) {
	h := newHouse(t, 0)
	for _, said := range []string{"", "no", "false", "off", "0", "YES "} {
		a := h.browse("POST", "/join/"+h.sku, url.Values{"phone": {"+12025550101"}, "consent": {said}, "quantity": {"1"}})
		require.Equal(t, http.StatusUnprocessableEntity, a.status, "%q", said)
		require.Contains(t, a.text(), "We need your consent")
	}
	require.Zero(t, h.waiting(), "nobody stands in line against their word")
	require.Contains(t, h.browse("GET", "/join/"+h.sku, nil).body, `name="consent" value="`+consentYes+`"`)
}

func TestBackInLineIsConsentOnceMore(t *testing.T) {
	h := newHouse(t, 0)
	v := h.join("+12025550101")
	h.eventually("the workflow starts", func() bool { return h.wf.started() == 1 })
	require.Equal(t, http.StatusSeeOther, h.browse("POST", "/w/"+v.EntryID+"/leave", nil).status)
	h.wf.set(func() {
		h.wf.statuses[v.EntryID] = contract.EntryStatus{Phone: "+12025550101", Locale: "de", Consent: &contract.Consent{TextVersion: "popup 7", Source: "api:shop"}}
	})
	again := h.browse("POST", "/w/"+v.EntryID+"/again", nil)
	require.Equal(t, http.StatusSeeOther, again.status)
	id := strings.TrimPrefix(again.header.Get("Location"), "/w/")
	h.eventually("the workflow starts", func() bool { return h.wf.started() == 2 })
	in, ok := h.wf.entry(id)
	require.True(t, ok)
	require.Equal(t, "popup 7", in.Consent.TextVersion)
	require.Equal(t, "again", in.Consent.Source)
	require.Equal(t, "de", in.Locale)
}

func TestOtherWordsAreAnotherVersion(t *testing.T) {
	pages, err := parsePages("en")
	require.NoError(t, err)
	english := pages.all[0]
	shop := config.Shop{Name: "Oak", TermsURL: "https://oak.example/terms", PrivacyURL: "https://oak.example/privacy"}
	seen := map[string]bool{consentVersion(english, shop): true, consentVersion(pages.all[1], shop): true}
	require.Len(t, seen, 2, "one for each language")
	for _, change := range []func(s *config.Shop){
		func(s *config.Shop) { s.Name = "Ash" },
		func(s *config.Shop) { s.TermsURL += "/2" },
		func(s *config.Shop) { s.PrivacyURL += "/2" },
		func(s *config.Shop) { s.TermsURL, s.PrivacyURL = s.PrivacyURL, s.TermsURL },
	} {
		s := shop
		change(&s)
		require.False(t, seen[consentVersion(english, s)])
		seen[consentVersion(english, s)] = true
	}
	require.True(t, seen[consentVersion(english, shop)], "and the same words the same one")
}
