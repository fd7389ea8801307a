package sms

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var longLink = "https://nordlicht.example/r/" + strings.Repeat("x", 54)

func loadWords(t require.TestingT, change func(*WordsOptions)) *Words {
	o := WordsOptions{Shop: "Nordlicht", Locale: "en", LongestLink: longLink}
	if change != nil {
		change(&o)
	}
	w, err := LoadWords(o)
	require.NoError(t, err)
	return w
}

func TestWording(t *testing.T) {
	w := loadWords(t, nil)
	v := Values{Title: "Windsor chair", Link: longLink}
	require.Equal(t, "Nordlicht: "+longLink+" holds your Windsor chair for 15 min. STOP to stop.", w.Offer(v, 15*time.Minute+59*time.Second))
	require.Equal(t, "Nordlicht: "+longLink+" holds your Windsor chair for 20 sec. STOP to stop.", w.Offer(v, 20*time.Second))
	require.Equal(t, "Nordlicht: you are no. 5 in line for Windsor chair. Your place: "+longLink+" Reply STOP to stop.", w.Joined(v, 5))
	require.Equal(t, "Nordlicht: you are in line for Windsor chair. Your place: "+longLink+" Reply STOP to stop.", w.Joined(v, 0))

	v.Locale = "de"
	require.Equal(t, "Nordlicht: "+longLink+" hält Windsor chair 15 Min. für Sie bereit. Abmelden mit STOP.", w.Offer(v, 15*time.Minute))
	require.Equal(t, "Nordlicht: Sie sind Nr. 5 auf der Warteliste für Windsor chair. Ihr Platz: "+longLink+" Abmelden mit STOP.", w.Joined(v, 5))
	require.LessOrEqual(t, Segments(w.Joined(v, 5)), 2, "the German words stay within GSM-7")
}

func TestWhoSpeaksWhat(t *testing.T) {
	for shop, asks := range map[string]map[string]string{
		"en": {"": "in line", "en": "in line", "en-GB": "in line", "de": "Warteliste", "de-AT": "Warteliste", "de_CH": "Warteliste", "DE": "Warteliste", "fr": "in line", "x!": "in line", "gsw": "Warteliste"},
		"de": {"": "Warteliste", "en-US": "in line", "fr": "Warteliste", "not a tag": "Warteliste"},
	} {
		w := loadWords(t, func(o *WordsOptions) { o.Locale = shop })
		for tag, word := range asks {
			require.Contains(t, w.Joined(Values{Locale: tag, Title: "x", Link: longLink}, 1), word, "%q in a shop that speaks %s", tag, shop)
		}
	}
}

// B74: the link is never touched; a title is cut between what people take for characters.
func TestLongTitlesAreCutAndTheLinkIsNot(t *testing.T) {
	w := loadWords(t, func(o *WordsOptions) { o.Shop = "Nord" })
	for name, title := range map[string]string{
		"latin":   strings.Repeat("Windsor chair ", 14),
		"greek":   strings.Repeat("Καρέκλα ", 15),
		"chinese": strings.Repeat("椅子", 60),
		"emoji":   strings.Repeat("👩‍👩‍👧‍👦", 20),
		"accents": strings.Repeat("e\u0301\u0323", 60),
	} {
		for _, lang := range []string{"en", "de"} {
			v := Values{Locale: lang, Title: title, Link: "https://n.example/r/" + strings.Repeat("x", 54)}
			for _, body := range []string{w.Offer(v, time.Minute), w.Joined(v, 123)} {
				require.LessOrEqual(t, Segments(body), MaxSegments, "%s: %s", name, body)
				require.Contains(t, body, v.Link+" ", name)
				require.True(t, strings.Contains(body, "...") || strings.Contains(body, " item") || strings.Contains(body, "Ihr Artikel"), body)
				require.True(t, strings.HasPrefix(body, "Nord: "))
				require.Contains(t, body, "STOP")
			}
		}
	}
	family := "👩‍👩‍👧‍👦"
	body := w.Offer(Values{Title: strings.Repeat(family, 20), Link: "https://n.example/r/" + strings.Repeat("x", 54)}, time.Minute)
	rest := body[strings.Index(body, "your ")+len("your ") : strings.Index(body, "...")]
	require.NotEmpty(t, rest)
	require.Empty(t, strings.ReplaceAll(rest, family, ""), "no family is torn apart")
}

func TestATitleThatFitsNowhereIsLeftOut(t *testing.T) {
	w := loadWords(t, nil)
	link := "https://" + strings.Repeat("a", 80) + ".example/r/x"
	require.Equal(t, "Nordlicht: "+link+" holds your item for 15 min. STOP to stop.",
		w.Offer(Values{Title: strings.Repeat("椅", 100), Link: link}, 15*time.Minute))
	require.Contains(t, w.Offer(Values{Link: link}, time.Minute), "your item for")
}

// A title may look like a placeholder; it is none.
func TestATitleIsNeverRead(t *testing.T) {
	w := loadWords(t, nil)
	body := w.Offer(Values{Title: "{link}{span}{shop}", Link: longLink}, time.Minute)
	require.Equal(t, "Nordlicht: "+longLink+" holds your {link}{span}{shop} for 1 min. STOP to stop.", body)
}

// Whatever a shop calls its things and a person calls themselves, a text costs two
// segments at most and carries its link whole.
func TestTextsFit(t *testing.T) {
	folder := t.TempDir()
	writeWords(t, folder, "nl", `{"joined":"{shop}: {name}, {place} {title} {link} STOP","joined_unplaced":"{shop}: {name} {title} {link} STOP",
		"offer":"{shop}: {link} {name} {title} {span} STOP","minutes":"{n} min","seconds":"{n} sec","no_title":"iets","no_name":"jij"}`)
	w := loadWords(t, func(o *WordsOptions) { o.Folder = folder })
	rapid.Check(t, func(t *rapid.T) {
		v := Values{
			Locale: rapid.SampledFrom([]string{"en", "de", "nl", "ja"}).Draw(t, "locale"),
			Title:  rapid.StringN(1, 200, -1).Draw(t, "title"), Link: longLink,
			Name: rapid.OneOf(rapid.StringN(0, 100, -1), rapid.Just(strings.Repeat("👩‍👩‍👧‍👦", 14))).Draw(t, "name"),
		}
		for _, body := range []string{w.Offer(v, 15*time.Minute), w.Joined(v, 1_000_000), w.Joined(v, 0)} {
			if Segments(body) > MaxSegments || !strings.Contains(" "+body+" ", " "+longLink+" ") || !utf8.ValidString(body) {
				t.Fatalf("%d segments: %q", Segments(body), body)
			}
		}
	})
}

func TestNamesAreCutOnABorder(t *testing.T) {
	folder := t.TempDir()
	writeWords(t, folder, "en", `{"joined":"{shop}: {name}: {place} {link} STOP","joined_unplaced":"{shop}: {name}: {link} STOP",
		"offer":"{shop}: {link} {name}: {span} STOP","minutes":"{n} min","seconds":"{n} sec","no_title":"item","no_name":"you"}`)
	w := loadWords(t, func(o *WordsOptions) { o.Folder = folder })
	of := func(name string) string {
		body := w.Joined(Values{Name: name, Link: "https://n.example/w/x"}, 0)
		return strings.TrimSuffix(strings.TrimPrefix(body, "Nordlicht: "), ": https://n.example/w/x STOP")
	}
	require.Equal(t, "Ada", of(" Ada\n"))
	require.Equal(t, "you", of(""))
	require.Equal(t, strings.Repeat("a", 30), of(strings.Repeat("a", 30)))
	require.Equal(t, strings.Repeat("a", 30)+"...", of(strings.Repeat("a", 31)))
	require.Equal(t, strings.Repeat("g̈", 30)+"...", of(strings.Repeat("g̈", 40)))
}

func writeWords(t *testing.T, folder, locale, raw string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(folder, locale+".json"), []byte(raw), 0o600))
}

const goodWords = `{"joined":"{shop}: {place} {link} STOP","joined_unplaced":"{shop}: {link} STOP","offer":"{shop}: {link} {span} STOP",
	"minutes":"{n} min","seconds":"{n} sec","no_title":"item","no_name":"you"}`

func TestWrongWordsStopTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		says     []string
	}{
		"no link":            {"{place} {link}", "{place}", []string{"locale nl: joined must have {link} once"}},
		"two links":          {"{place} {link}", "{link} {link} {place}", []string{"joined must have {link} once"}},
		"no STOP":            {"{span} STOP", "{span}", []string{"offer must say that STOP ends the texts"}},
		"a misspelt value":   {"{span} STOP", "{span} {titel} STOP", []string{"offer has a brace"}},
		"a value too many":   {"{n} min", "{n} min {link}", []string{"minutes has a brace"}},
		"a sign at the link": {"{link} {span}", "{link}. {span}", []string{"a space on both sides of {link}"}},
		"a missing text":     {`,"no_name":"you"`, "", []string{"no_name is missing"}},
		"an unknown text":    {`"no_name"`, `"noname"`, []string{"noname"}},
		"too long":           {"{span} STOP", "{span} " + strings.Repeat("words ", 40) + "STOP", []string{"offer costs 3 segments", "shop.name"}},
		"two at once":        {"{shop}: ", "", []string{"joined must have {shop} once", "offer must have {shop} once"}},
		"not JSON":           {"{", "[", []string{"nl.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			broken := strings.ReplaceAll(goodWords, c.old, c.new)
			require.NotEqual(t, goodWords, broken)
			writeWords(t, folder, "nl", broken)
			_, err := LoadWords(WordsOptions{Shop: "Nordlicht", Locale: "en", Folder: folder, LongestLink: longLink})
			for _, word := range c.says {
				require.ErrorContains(t, err, word)
			}
		})
	}
	folder := t.TempDir()
	writeWords(t, folder, "nl", goodWords)
	require.Equal(t, "Nordlicht: 3 "+longLink+" STOP", loadWords(t, func(o *WordsOptions) { o.Folder, o.Locale = folder, "nl" }).Joined(Values{Link: longLink}, 3))

	writeWords(t, folder, "house style", goodWords)
	_, err := LoadWords(WordsOptions{Shop: "N", Locale: "en", Folder: folder, LongestLink: longLink})
	require.ErrorContains(t, err, "house style.json is not called after a locale")
}

func TestTheShopItselfMustFit(t *testing.T) {
	_, err := LoadWords(WordsOptions{Shop: strings.Repeat("店", 60), Locale: "en", LongestLink: longLink})
	require.ErrorContains(t, err, "locale en: offer costs")
	require.ErrorContains(t, err, "shop.name or http.public_url")
	_, err = LoadWords(WordsOptions{Shop: strings.Repeat("M", 60), Locale: "en", LongestLink: longLink})
	require.NoError(t, err, "the longest name that shop.name takes")
	_, err = LoadWords(WordsOptions{Shop: "N", Locale: "fr", LongestLink: longLink})
	require.ErrorContains(t, err, `there are no words for "fr"`)
	_, err = LoadWords(WordsOptions{Shop: "N", Locale: "en", Folder: t.TempDir(), LongestLink: longLink})
	require.ErrorContains(t, err, "no file there is called after a locale")
	_, err = LoadWords(WordsOptions{Shop: "N", Locale: "en", Folder: filepath.Join(t.TempDir(), "gone"), LongestLink: longLink})
	require.ErrorContains(t, err, "sms.words")
}
