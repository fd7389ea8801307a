package sms

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rivo/uniseg"
	"golang.org/x/text/language"
)

// MaxSegments is what a text may cost; its title is cut until it fits.
const MaxSegments = 2

// mostName is how many characters of a person's name a text gives room to.
const mostName = 30

// Values are what a text is made of. Empty ones have words of their own.
type Values struct {
	Locale string // a BCP 47 tag; one that nobody speaks is the shop's
	Title  string
	Name   string // of the person
	Link   string
}

// Words writes the texts of one shop in every locale that it has words for. It is
// safe for concurrent use.
type Words struct {
	shop    string
	locales []locale // the shop's own first
	matcher language.Matcher
}

// Joined says that a person waits, and gives them their place; position 0 is one
// not known.
func (w *Words) Joined(v Values, position int64) string {
	l := w.locale(v.Locale)
	if position <= 0 {
		return w.fit(l, l.words.JoinedUnplaced, v)
	}
	return w.fit(l, l.words.Joined, v, "{place}", strconv.FormatInt(position, 10))
}

// Offer says that a unit is kept, and gives the link that takes it. A window is
// told in whole minutes, rounded down, below a minute in seconds.
func (w *Words) Offer(v Values, window time.Duration) string {
	l := w.locale(v.Locale)
	return w.fit(l, l.words.Offer, v, "{span}", l.words.span(window))
}

func (w *Words) locale(tag string) locale {
	t, err := language.Parse(strings.ReplaceAll(tag, "_", "-"))
	if err != nil {
		return w.locales[0]
	}
	_, i, confidence := w.matcher.Match(t)
	if confidence == language.No {
		return w.locales[0]
	}
	return w.locales[i]
}

func (w words) span(window time.Duration) string {
	unit, n := w.Minutes, int64(window/time.Minute)
	if window < time.Minute {
		unit, n = w.Seconds, int64(window/time.Second)
	}
	return strings.ReplaceAll(unit, "{n}", strconv.FormatInt(n, 10))
}

// fit writes a text and cuts its title, on a grapheme border, until the text
// keeps within MaxSegments; if it never does, the name goes. The link is not
// touched: a text whose link is broken is worth nothing.
func (w *Words) fit(l locale, template string, v Values, more ...string) string {
	name := cut(Fold(v.Name), mostName)
	if name == "" {
		name = l.words.NoName
	}
	// One pass: a brace in a title is no placeholder.
	body := func(title, name string) string {
		return strings.NewReplacer(append([]string{
			"{shop}", w.shop, "{title}", title, "{name}", name, "{link}", v.Link,
		}, more...)...).Replace(template)
	}
	title := Fold(v.Title)
	for _, name := range []string{name, l.words.NoName} {
		for n := uniseg.GraphemeClusterCount(title); n > 0; n-- {
			if b := body(cut(title, n), name); Segments(b) <= MaxSegments {
				return b
			}
		}
		if b := body(l.words.NoTitle, name); Segments(b) <= MaxSegments {
			return b
		}
	}
	return body(l.words.NoTitle, l.words.NoName)
}

// cut keeps the first n characters, as people count them, and marks what is gone.
func cut(s string, n int) string {
	left := s
	for range n {
		if left == "" {
			break
		}
		_, left, _, _ = uniseg.FirstGraphemeClusterInString(left, -1)
	}
	if left == "" {
		return s
	}
	return strings.TrimRight(strings.TrimSuffix(s, left), " ") + "..."
}

// words are the texts of one locale. In them {shop}, {title}, {name}, {link},
// {place} and {span} stand for values, in Minutes and Seconds {n} for a number.
type words struct {
	Joined         string `json:"joined"`
	JoinedUnplaced string `json:"joined_unplaced"`
	Offer          string `json:"offer"`
	Minutes        string `json:"minutes"`
	Seconds        string `json:"seconds"`
	NoTitle        string `json:"no_title"` // in place of a title that is missing or has no room
	NoName         string `json:"no_name"`
}

type locale struct {
	tag   language.Tag
	words words
}

// check says what is wrong with the words of a locale, for texts of this shop with
// the longest link. Titles and names are not tried: they are cut, and go.
func (w *Words) check(l locale, longestLink string) []string {
	var wrong []string
	complain := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("locale %s: ", l.tag)+fmt.Sprintf(format, args...))
	}
	for _, t := range []struct {
		name, text string
		needs      []string
		may        []string
	}{
		{"joined", l.words.Joined, []string{"{shop}", "{link}", "{place}"}, []string{"{title}", "{name}"}},
		{"joined_unplaced", l.words.JoinedUnplaced, []string{"{shop}", "{link}"}, []string{"{title}", "{name}"}},
		{"offer", l.words.Offer, []string{"{shop}", "{link}", "{span}"}, []string{"{title}", "{name}"}},
		{"minutes", l.words.Minutes, []string{"{n}"}, nil},
		{"seconds", l.words.Seconds, []string{"{n}"}, nil},
		{"no_title", l.words.NoTitle, nil, nil},
		{"no_name", l.words.NoName, nil, nil},
	} {
		rest := t.text
		for _, p := range t.needs {
			if strings.Count(rest, p) != 1 {
				complain("%s must have %s once", t.name, p)
			}
			rest = strings.ReplaceAll(rest, p, "")
		}
		for _, p := range t.may {
			rest = strings.ReplaceAll(rest, p, "")
		}
		switch {
		case strings.TrimSpace(t.text) == "":
			complain("%s is missing", t.name)
		case strings.ContainsAny(rest, "{}"):
			complain("%s has a brace that is none of %s", t.name, strings.Join(append(t.needs, t.may...), " "))
		}
		if len(t.needs) < 2 {
			continue
		}
		if !strings.Contains(strings.ToUpper(t.text), "STOP") {
			complain("%s must say that STOP ends the texts", t.name)
		}
		// Phones take a sign that touches a link for part of it.
		if !strings.Contains(" "+t.text+" ", " {link} ") {
			complain("%s must have a space on both sides of {link}", t.name)
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	longest := Values{Link: longestLink}
	for name, text := range map[string]string{
		"joined": w.fit(l, l.words.Joined, longest, "{place}", longestPlace), "joined_unplaced": w.fit(l, l.words.JoinedUnplaced, longest),
		"offer": w.fit(l, l.words.Offer, longest, "{span}", l.words.span(longestWindow)),
	} {
		if n := Segments(text); n > MaxSegments {
			complain("%s costs %d segments without any title, more than %d: shorten it, shop.name or http.public_url: %q", name, n, MaxSegments, text)
		}
	}
	return wrong
}

const (
	longestPlace  = "1000000000"
	longestWindow = 7 * 24 * time.Hour
)
