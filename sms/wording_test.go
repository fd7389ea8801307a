package sms

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWording(t *testing.T) {
	link := "https://nordlicht.example/r/" + strings.Repeat("x", 54)
	require.Equal(t, "Nordlicht: "+link+" holds your Windsor chair for 15 min. STOP to stop.", OfferBody("Nordlicht", "Windsor chair", link, 15*time.Minute+59*time.Second))
	require.Equal(t, "Nordlicht: "+link+" holds your Windsor chair for 20 sec. STOP to stop.", OfferBody("Nordlicht", "Windsor chair", link, 20*time.Second))
	require.Equal(t, "Nordlicht: you are no. 5 in line for Windsor chair. Your place: "+link+" Reply STOP to stop.", JoinedBody("Nordlicht", "Windsor chair", link, 5))
}

func TestLongTitlesAreCutAndTheLinkIsNot(t *testing.T) {
	link := "https://n.example/r/" + strings.Repeat("x", 54)
	for name, title := range map[string]string{
		"latin":   strings.Repeat("Windsor chair ", 14),
		"greek":   strings.Repeat("Καρέκλα ", 15),
		"chinese": strings.Repeat("椅子", 60),
		"emoji":   strings.Repeat("👩‍👩‍👧‍👦", 20),
		"accents": strings.Repeat("e\u0301\u0323", 60),
	} {
		for _, body := range []string{OfferBody("Nord", title, link, time.Minute), JoinedBody("Nord", title, link, 123)} {
			require.LessOrEqual(t, Segments(body), MaxSegments, "%s: %s", name, body)
			require.Contains(t, body, link+" ", name)
			if !strings.HasPrefix(body, "Nord: you are no. 123 in line. ") { // no room for one in UCS-2
				require.Contains(t, body, "...", name)
			}
			require.True(t, strings.HasPrefix(body, "Nord: "))
			require.True(t, strings.HasSuffix(body, "STOP to stop."))
		}
	}
	family := "👩‍👩‍👧‍👦"
	body := OfferBody("Nord", strings.Repeat(family, 20), link, time.Minute)
	cut := body[strings.Index(body, "your ")+len("your ") : strings.Index(body, "...")]
	require.Empty(t, strings.ReplaceAll(cut, family, ""), "no family is torn apart")
}

func TestATitleThatFitsNowhereIsLeftOut(t *testing.T) {
	link := "https://" + strings.Repeat("a", 100) + ".example/r/x"
	require.Equal(t, "Nordlicht: "+link+" holds your unit for 15 min. STOP to stop.", OfferBody("Nordlicht", strings.Repeat("椅", 100), link, 15*time.Minute))
}

// Whatever a shop calls its things, a text costs two segments at most.
func TestTextsFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		title := rapid.StringN(1, 200, -1).Draw(t, "title")
		link := "https://nordlicht.example/r/" + strings.Repeat("x", 54)
		body := OfferBody("Nordlicht", title, link, 15*time.Minute)
		if Segments(body) > MaxSegments || !strings.Contains(body, " "+link+" ") || !utf8.ValidString(body) {
			t.Fatalf("%d segments: %q", Segments(body), body)
		}
	})
}
