package starter

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"

	"holdfast/contract"
	"holdfast/redis"
)

// pageLocales are the languages that pages speak; each has a file in pages/words.
// The first one is spoken to whom no other suits.
var pageLocales = []language.Tag{language.English, language.German}

// words are the pages of one language. In a word {name} stands for what the page
// puts in; words may hold markup, what is put in is escaped.
type words struct {
	tag     string
	printer *message.Printer
	all     map[string]string
	pages   map[string]*template.Template

	part bool // what is asked for is the news of a page that is shown already
}

func parseWords(tag language.Tag) (*words, error) {
	w := &words{tag: tag.String(), printer: message.NewPrinter(tag), pages: map[string]*template.Template{}}
	raw, err := pageFiles.ReadFile("pages/words/" + w.tag + ".json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &w.all); err != nil {
		return nil, fmt.Errorf("words of %s: %w", w.tag, err)
	}
	for _, name := range pageNames {
		t, err := template.New("layout.html").Funcs(template.FuncMap{"t": w.say}).ParseFS(pageFiles, "pages/layout.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("page %s: %w", name, err)
		}
		w.pages[name] = t
	}
	return w, nil
}

// languages choose among the pages' words.
type languages struct {
	all     []*words // the shop's own first
	matcher language.Matcher
}

func parsePages(shop string) (*languages, error) {
	l := &languages{}
	tags := make([]language.Tag, 0, len(pageLocales))
	_, first, _ := language.NewMatcher(pageLocales).Match(language.Make(shop))
	for i := range pageLocales {
		tag := pageLocales[(first+i)%len(pageLocales)]
		w, err := parseWords(tag)
		if err != nil {
			return nil, err
		}
		l.all, tags = append(l.all, w), append(tags, tag)
	}
	l.matcher = language.NewMatcher(tags)
	return l, nil
}

// headerPart is sent by the pages' script, which needs neither script nor style
// again: on a slow line they are most of a page.
const headerPart = "Holdfast-Part"

// of answers the words of the entry that a page is about, else those that the browser
// asks for, else the shop's.
func (l *languages) of(r *http.Request) *words {
	w := *l.all[0] // also when the header is none that a browser sends
	if own, _ := r.Context().Value(spokenKey{}).(*string); own != nil && *own != "" {
		w = *l.all[slices.IndexFunc(l.all, func(w *words) bool { return w.tag == *own })]
	} else if wanted, _, err := language.ParseAcceptLanguage(r.Header.Get("Accept-Language")); err == nil {
		_, i, _ := l.matcher.Match(wanted...)
		w = *l.all[i]
	}
	w.part = r.Header.Get(headerPart) != ""
	return &w
}

type spokenKey struct{}

// speaking lets a page learn its language while it is made: which entry it is about
// is known only then.
func speaking(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), spokenKey{}, new(string)))
}

// speak makes the page that answers r one in the language of an entry, if that has one.
func (l *languages) speak(r *http.Request, e redis.Entry) {
	own, _ := r.Context().Value(spokenKey{}).(*string)
	if own != nil && e.Language != "" {
		*own = l.named(e.Language)
	}
}

// named is the language of the pages for somebody who said which one they read; ""
// when the pages do not speak it, and when nothing was said.
func (l *languages) named(locale string) string {
	tag, err := language.Parse(locale)
	if err != nil {
		return ""
	}
	_, i, sure := l.matcher.Match(tag)
	if sure == language.No {
		return ""
	}
	return l.all[i].tag
}

// localeOf is the language that a browser asks for first, for the texts; "" when
// it names none.
func localeOf(r *http.Request) string {
	wanted, _, err := language.ParseAcceptLanguage(r.Header.Get("Accept-Language"))
	if err != nil || len(wanted) == 0 || wanted[0] == language.Und || len(wanted[0].String()) > mostLocale {
		return ""
	}
	return wanted[0].String()
}

// say answers a word with the pairs of name and value put in.
func (w *words) say(key string, pairs ...any) template.HTML {
	word, ok := w.all[key]
	if !ok {
		panic("no page has a word called " + key) // a test reads every use
	}
	var put []string
	for i := 0; i+1 < len(pairs); i += 2 {
		value, safe := pairs[i+1].(template.HTML)
		if !safe {
			value = template.HTML(template.HTMLEscapeString(w.printer.Sprint(pairs[i+1])))
		}
		put = append(put, "{"+pairs[i].(string)+"}", string(value))
	}
	return template.HTML(strings.NewReplacer(put...).Replace(word))
}

// plain is a word in a title, where markup has no meaning.
func (w *words) plain(key string, pairs ...any) string { return string(w.say(key, pairs...)) }

// count is the word for one, or that for many.
func (w *words) count(key string, n int64, pairs ...any) template.HTML {
	if n == 1 {
		return w.say(key+"_one", append(pairs, "n", n)...)
	}
	return w.say(key+"_many", append(pairs, "n", n)...)
}

// span is a duration, never more than it is.
func (w *words) span(d time.Duration) template.HTML {
	switch {
	case d >= 48*time.Hour:
		return w.say("span_days", "n", int64(d/(24*time.Hour)))
	case d >= 2*time.Hour:
		return w.say("span_hours", "n", int64(d/time.Hour))
	case d >= 2*time.Minute:
		return w.say("span_minutes", "n", int64(d/time.Minute))
	case d/time.Second == 1:
		return w.say("span_second")
	}
	return w.say("span_seconds", "n", int64(d/time.Second))
}

// until is a deadline within a sentence, with its zone; nothing for no instant. The
// pages' script turns it into the reader's own time, and takes it away when the
// reader's clock would make it wrong.
func (w *words) until(at, now time.Time) template.HTML {
	if at.IsZero() {
		return ""
	}
	shape := w.all["clock_day"]
	if at.UTC().YearDay() == now.UTC().YearDay() && at.Sub(now) < 24*time.Hour {
		shape = w.all["clock_today"]
	}
	clock := template.HTML(`<time datetime="` + stamp(at) + `">` + template.HTMLEscapeString(at.UTC().Format(shape)) + `</time>`)
	return `<span class="until">` + w.say("until", "time", clock) + `</span>`
}

// money is a sum as the reader writes one; "" in a currency that nobody knows,
// whose minor units nobody knows either.
func (w *words) money(amount int64, code string) string {
	unit, err := currency.ParseISO(code)
	if err != nil {
		return ""
	}
	scale, _ := currency.Standard.Rounding(unit)
	minor := int64(1)
	for range scale {
		minor *= 10
	}
	sum := w.printer.Sprint(number.Decimal(float64(amount)/float64(minor), number.Scale(scale)))
	symbol := w.printer.Sprint(currency.Symbol(unit))
	switch {
	case w.tag != "en":
		return sum + "\u00a0" + symbol
	case symbol == code:
		return symbol + "\u00a0" + sum
	}
	return symbol + sum
}

func (w *words) price(m *contract.Money, each bool) string {
	if m == nil {
		return ""
	}
	sum := w.money(m.Amount, m.Currency)
	if sum != "" && each {
		return w.plain("price_each", "price", sum)
	}
	return sum
}

// supportURL leads to whom the shop names as its support.
func supportURL(support string) string {
	if support == "" {
		return ""
	}
	if u, err := url.Parse(support); err == nil && isWeb(u) {
		return support
	}
	return "mailto:" + support
}
