package starter

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

var (
	saidInPage = regexp.MustCompile(`{{t "([a-z0-9_]+)"`)
	placeIn    = regexp.MustCompile(`{[a-z]+}`)
)

// Every language has every word, with the same things put in, and no word is left
// that no page says.
func TestWordsOfAllLanguages(t *testing.T) {
	pages, err := parsePages("en")
	require.NoError(t, err)
	english := pages.all[0].all
	for _, w := range pages.all {
		require.Len(t, w.all, len(english), w.tag)
		for key, word := range english {
			require.NotEmpty(t, strings.TrimSpace(w.all[key]), "%s: %s", w.tag, key)
			want, got := placeIn.FindAllString(word, -1), placeIn.FindAllString(w.all[key], -1)
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, got, "%s: %s", w.tag, key)
		}
	}
	source := ""
	for _, glob := range []string{"*.go", "pages/*.html"} {
		files, err := filepath.Glob(glob)
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			source += string(raw)
		}
	}
	for _, found := range saidInPage.FindAllStringSubmatch(source, -1) {
		require.Contains(t, english, found[1], "a page says a word that no language has")
	}
	for _, found := range regexp.MustCompile(`\.(?:say|plain)\("([a-z0-9_]+[a-z0-9])"`).FindAllStringSubmatch(source, -1) {
		require.Contains(t, english, found[1], "a page says a word that no language has")
	}
	for _, found := range regexp.MustCompile(`\.count\("([a-z0-9_]+)"`).FindAllStringSubmatch(source, -1) {
		require.Contains(t, english, found[1]+"_one")
		require.Contains(t, english, found[1]+"_many")
	}
	for _, state := range []contract.EntryState{contract.EntryLeft, contract.EntryLapsed, contract.EntryExpired, contract.EntryOptedOut, contract.EntryUnreachable} {
		source += string(state)
	}
	for key := range english {
		name := key
		for _, part := range []string{"_heading", "_one", "_many"} {
			name = strings.TrimSuffix(name, part)
		}
		for _, part := range []string{"end_", "wrong_"} {
			name = strings.TrimPrefix(name, part)
		}
		require.Contains(t, source, name, "no page says %s", key)
	}
}

// A page speaks the language that the browser asks for, and so do the texts.
func TestPagesSpeakTheReadersLanguage(t *testing.T) {
	for wanted, lang := range map[string]string{
		"": "en", "de": "de", "de-AT,de;q=0.9,en;q=0.8": "de", "fr,de;q=0.5": "de", "fr": "en", "en-GB": "en", "*": "en", "%%": "en",
	} {
		h := newHouse(t, 0)
		require.Equal(t, lang, h.ask("/join/"+h.sku, wanted).header.Get("Content-Language"), "%q", wanted)
	}
	german := func(cfg *config.Config, _ *redis.Options) { cfg.Shop.Locale = "de" }
	h := newHouse(t, 0, german)
	require.Equal(t, "de", h.ask("/join/"+h.sku, "").header.Get("Content-Language"), "the shop's own to who asks for none of ours")
	require.Equal(t, "de", h.ask("/join/"+h.sku, "fr").header.Get("Content-Language"))
	require.Equal(t, "en", h.ask("/join/"+h.sku, "en-US").header.Get("Content-Language"))

	a := h.ask("/join/"+h.sku, "de-CH")
	require.Contains(t, a.body, `<html lang="de">`)
	require.Contains(t, a.text(), "Ich bin einverstanden, dass Oak & Sons mir SMS zu meinem Platz")
	r := h.request("POST", "/join/"+h.sku, url.Values{"phone": {"+12025550101"}, "quantity": {"1"}, "consent": {"yes"}}.Encode(),
		"Content-Type", formMedia, "Accept-Language", "de-CH,de;q=0.9")
	require.Equal(t, http.StatusAccepted, h.send(r).status)
	h.eventually("the workflow starts", func() bool { return h.wf.started() == 1 })
	h.wf.set(func() {
		for _, in := range h.wf.entries {
			require.Equal(t, "de-CH", in.Locale)
			require.Equal(t, consentVersion(h.door.pages.all[0], h.cfg.Shop), in.Consent.TextVersion)
			require.NotEqual(t, consentVersion(h.door.pages.all[1], h.cfg.Shop), in.Consent.TextVersion, "the words they saw were German")
		}
	})
}

// ask opens a page with a browser's wish for languages.
func (h *house) ask(path, languages string) answer {
	h.t.Helper()
	return h.send(h.request("GET", path, nil, "Accept-Language", languages))
}

func TestPrices(t *testing.T) {
	pages, err := parsePages("en")
	require.NoError(t, err)
	for want, m := range map[string]contract.Money{
		"€49.00 | 49,00\u00a0€": {Amount: 4900, Currency: "EUR"}, "$1,234.50 | 1.234,50\u00a0$": {Amount: 123450, Currency: "USD"},
		"¥4,900 | 4.900\u00a0¥": {Amount: 4900, Currency: "JPY"}, "CHF\u00a00.05 | 0,05\u00a0CHF": {Amount: 5, Currency: "CHF"},
		"KWD\u00a04.900 | 4,900\u00a0KWD": {Amount: 4900, Currency: "KWD"}, "€0.00 | 0,00\u00a0€": {Currency: "EUR"},
		" | ": {Amount: 4900, Currency: "QQQ"},
	} {
		require.Equal(t, want, pages.all[0].price(&m, false)+" | "+pages.all[1].price(&m, false))
	}
	require.Equal(t, "€49.00 each", pages.all[0].price(&contract.Money{Amount: 4900, Currency: "EUR"}, true))
	require.Empty(t, pages.all[0].price(nil, true))
}

// What is put into a word is text, whatever a shop calls its product.
func TestWordsEscapeWhatIsPutIn(t *testing.T) {
	pages, err := parsePages("en")
	require.NoError(t, err)
	w := pages.all[0]
	require.Equal(t, "1 × &lt;b&gt;Oak&lt;/b&gt;", string(w.say("line", "n", 1, "title", "<b>Oak</b>")))
	require.Equal(t, "3 × {n}", string(w.say("line", "title", "{n}", "n", 3)), "no word is put in twice")
}

func TestUntilNamesTheDayWhenItIsNotToday(t *testing.T) {
	pages, err := parsePages("en")
	require.NoError(t, err)
	now := time.Date(2026, 3, 1, 23, 50, 0, 0, time.UTC)
	require.Contains(t, pages.all[0].until(now.Add(5*time.Minute), now), ">23:55 UTC<")
	require.Contains(t, pages.all[0].until(now.Add(15*time.Minute), now), ">2 March, 00:05 UTC<")
	require.Contains(t, pages.all[1].until(now.Add(15*time.Minute), now), ">02.03., 00:05 Uhr UTC<")
	require.Empty(t, pages.all[0].until(time.Time{}, now))
}
