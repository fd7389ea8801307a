package sms

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSegments(t *testing.T) {
	for _, c := range []struct {
		name string
		body string
		want int
	}{
		{"nothing", "", 0},
		{"one septet", "a", 1},
		{"160 septets", strings.Repeat("a", 160), 1},
		{"161 septets", strings.Repeat("a", 161), 2},
		{"two full parts", strings.Repeat("a", 306), 2},
		{"three parts", strings.Repeat("a", 307), 3},
		{"every basic character", gsmBasic, 1},
		{"extended ones count twice", strings.Repeat("€", 80), 1},
		{"and are not split", strings.Repeat("a", 152) + "€" + strings.Repeat("a", 152), 3},
		{"70 units", strings.Repeat("ж", 70), 1},
		{"71 units", strings.Repeat("ж", 71), 2},
		{"134 units", strings.Repeat("ж", 134), 2},
		{"135 units", strings.Repeat("ж", 135), 3},
		{"one foreign character makes all of it UCS-2", strings.Repeat("a", 70) + "ж", 2},
		{"a surrogate pair is two units", strings.Repeat("🪑", 35), 1},
		{"and is not split", strings.Repeat("a", 66) + "🪑" + strings.Repeat("a", 67), 3},
	} {
		require.Equal(t, c.want, Segments(c.body), c.name)
	}
}

func TestFold(t *testing.T) {
	for from, to := range map[string]string{
		"“Ada’s” chair – new…":          `"Ada's" chair - new...`,
		"a\u00a0b\t\n c\u200b":          "a b c",
		"Stół Łódź, Şişli, Čapek":       "Stol Lodz, Sisli, Capek",
		"Größe ÄÖÜäöüß éèàùìò Ñ Å 5 €":  "Größe ÄÖÜäöüß éèàùìò Ñ Å 5 €",
		"Καρέκλα":                       "Καρέκλα",
		"Chair\x00\x07 2":               "Chair 2",
		"椅子":                            "椅子",
		"Brand™ 2×4":                    "BrandTM 2x4",
		"Chaise à bascule, façon Périé": "Chaise à bascule, facon Périé",
	} {
		require.Equal(t, to, Fold(from))
	}
	require.Equal(t, 1, Segments(Fold("Ada’s chair – “new”…")), "folding keeps a text in GSM-7")
}

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
