package starter

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/internal/twiliostub"
	"holdfast/redis"
	"holdfast/sms"
)

// proxied is a door behind a proxy that ends TLS on a port of its own and says of
// the request what proxies say. Twilio knows only the public URL.
func proxied(t *testing.T, public string) (*house, *http.Client) {
	h := newHouse(t, 0, withTwilio, func(cfg *config.Config, _ *redis.Options) { cfg.HTTP.PublicURL = public })
	door := httptest.NewServer(h.door.all())
	t.Cleanup(door.Close)
	inner, err := url.Parse(door.URL)
	require.NoError(t, err)
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = inner.Scheme, inner.Host, "door.internal:9000"
		r.SetXForwarded()
	}})
	t.Cleanup(proxy.Close)
	client := proxy.Client()
	transport := client.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: transport.TLSClientConfig.RootCAs, ServerName: "example.com"}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, proxy.Listener.Addr().String())
	}
	return h, client
}

// B82: the signature is checked over the public URL and the target as it came,
// whatever stands between.
func TestTwiliosSignatureBehindAProxy(t *testing.T) {
	for _, public := range []string{"https://shop.example", "https://shop.example:8443"} {
		h, client := proxied(t, public)
		entry := h.ring.NewEntryID(h.sku)
		form := url.Values{"MessageStatus": {"sent"}, "From": {"+12025550100"}, "To": {"it's ü & +1"}}
		texts := 0
		post := func(target, signedFor string, header ...string) int {
			texts++
			form.Set("MessageSid", fmt.Sprint("SM", texts))
			req, err := http.NewRequest(http.MethodPost, public+"/", strings.NewReader(form.Encode()))
			require.NoError(t, err)
			req.URL.Opaque = "//" + req.URL.Host + target // as it is, not tidied up
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set(sms.SignatureHeader, twiliostub.Signature(twilioToken, signedFor, form))
			for i := 0; i < len(header); i += 2 {
				req.Header.Set(header[i], header[i+1])
			}
			res, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			return res.StatusCode
		}
		base := sms.StatusPath + "?hold_id=hold_a&cause=offer&entry_id=" + entry
		for _, query := range []string{
			"", "&sku=a%27b&x=1+2", "&sku=a'b&x=1%202", "&b=2&a=1&b=1", "&u=%C3%BC&empty=&flag", "&slash=a%2fb",
		} {
			require.Equal(t, http.StatusNoContent, post(base+query, public+base+query), "%s%s", public, query)
		}
		heard := len(h.textStatuses())
		require.Positive(t, heard)
		require.Equal(t, contract.TextStatus{TextID: "SM1", HoldID: "hold_a", Status: "sent"}, h.textStatuses()[0])

		for name, refused := range map[string]int{
			"for where the proxy leads":    post(base, "http://door.internal:9000"+base),
			"for a host that a header has": post(base, "https://evil.example"+base, "X-Forwarded-Host", "evil.example", "Forwarded", "host=evil.example;proto=https"),
			"without TLS":                  post(base, "http://"+strings.TrimPrefix(public, "https://")+base),
			"sorted anew":                  post(base+"&b=1&a=2", public+base+"&a=2&b=1"),
			"decoded":                      post(base+"&sku=a%27b", public+base+"&sku=a'b"),
		} {
			require.Equal(t, http.StatusUnauthorized, refused, name)
		}
		require.Len(t, h.textStatuses(), heard, "who is not Twilio says nothing")
		require.Equal(t, http.StatusNoContent, post(base, public+base, "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "http"), "a forged header has no effect")
	}
}
