package shop

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

func TestAPageIsReadAndItsFormSentAsABrowserDoes(t *testing.T) {
	var posted url.Values
	mux := http.NewServeMux()
	mux.HandleFunc("GET /r/abc", func(w http.ResponseWriter, r *http.Request) {
		require.Empty(t, r.Header.Get("Authorization"), "a browser has no key")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<html><head><title>x</title><style>p{}</style></head><body><p>One is
			<b>kept</b>.</p><form action="/search"><input name="q"></form>
			<form method="post" action="/r/abc"><input type="hidden" name="k" value="v"><button>Reserve</button></form>
			<script>1</script></body></html>`)
	})
	mux.HandleFunc("POST /r/abc", func(w http.ResponseWriter, r *http.Request) {
		require.NoError(t, r.ParseForm())
		posted = r.PostForm
		http.Redirect(w, r, "/h/hold", http.StatusSeeOther)
	})
	door := httptest.NewServer(mux)
	defer door.Close()

	s := New(door.URL, "key", "whsec_")
	page, err := s.Visit(t.Context(), door.URL+"/r/abc")
	require.NoError(t, err)
	require.Equal(t, "One is kept. Reserve", page.Text)
	require.Len(t, page.Forms, 2)
	require.Equal(t, "Reserve", page.Forms[1].Button)
	to, err := s.Press(t.Context(), page, "/r/")
	require.NoError(t, err)
	require.Equal(t, url.Values{"k": {"v"}}, posted)
	require.Equal(t, http.StatusSeeOther, to.Status)
	require.Equal(t, door.URL+"/h/hold", to.To)
	_, err = s.Press(t.Context(), page, "/w/")
	require.ErrorContains(t, err, "no form that posts to /w/")
}

func TestSignaturesAreThoseOfStandardWebhooks(t *testing.T) {
	const secret = "whsec_aG9sZGZhc3QtZGV2LXdlYmhvb2s="
	body := []byte(`{"sku":"CHAIR"}`)
	header := http.Header{}
	pairs := Sign(secret, "msg_1", time.Now(), body)
	for i := 0; i < len(pairs); i += 2 {
		header.Set(pairs[i], pairs[i+1])
	}
	hook, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	require.NoError(t, hook.Verify(body, header))
	require.Error(t, hook.Verify([]byte(`{"sku":"TEE"}`), header))
}

func TestHalfALineIsLeftForTheNextReading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "texts.jsonl")
	o := &Outbox{Path: path}
	none, err := o.Texts()
	require.NoError(t, err)
	require.Empty(t, none, "no text was sent yet")

	write := func(s string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(s)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	write(`{"entry_id":"entry_a","body":"no. 1: http://shop.example/w/entry_a"}` + "\n" + `{"entry_id":"entry_a",`)
	texts, err := o.Texts()
	require.NoError(t, err)
	require.Len(t, texts, 1)
	require.Empty(t, texts[0].Link())
	write(`"body":"Shop: http://shop.example/r/AbC-_9 holds it"}` + "\n")
	text, ok, err := o.OfferTo("entry_a")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "http://shop.example/r/AbC-_9", text.Link())
}
