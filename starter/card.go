package starter

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"holdfast/contract"
)

// Moods of a card: something is the shopper's, something is still to come, or
// it is over.
const (
	moodGood = "good"
	moodWait = "wait"
	moodOver = "over"
)

// Seconds after which a page's script asks again, while somebody looks. A page
// also asks at the end of its countdown, and when somebody comes back to it.
const (
	againSoon  = 2  // a workflow is about to decide
	againHeld  = 20 // a payment may come
	againPlace = 60
)

// card is a page that says how something stands: what happened, what it means
// for the shopper, and what they can do.
type card struct {
	Kind    string // what the script compares, with all that is shown but the time left
	Mood    string
	Product *product // nil on the page of a problem
	Heading template.HTML
	Clock   *clock // nil when no time runs
	Lines   []template.HTML
	Says    []template.HTML
	Main    *action
	More    []action
	Sure    *sure
	Again   int // seconds; 0 when nothing will change by itself

	from string // the page that shows this again
}

type product struct {
	Title string
	Image string
	Price string
}

// action is a button. Post sends a form; else it is a link.
type action struct {
	Label template.HTML
	URL   string
	Post  bool
	Quiet bool
}

// sure is a step that asks once more before it is taken, also without JavaScript.
type sure struct {
	Label, Text, Yes template.HTML
	URL              string
}

// clock is what is left, by the clock that decides, when the page was made.
type clock struct {
	Left  int64 // ms
	Now   string
	Words template.HTML
	From  string
}

func says(texts ...template.HTML) []template.HTML { return texts }

func (c *card) say(texts ...template.HTML) { c.Says = append(c.Says, texts...) }

// clockTo adds the countdown to a deadline; none when it has passed.
func (c *card) clockTo(w *words, deadline, now time.Time) {
	left := deadline.Sub(now)
	if left <= 0 {
		return
	}
	c.Clock = &clock{Left: left.Milliseconds(), Now: stamp(now), Words: w.say("left", "span", w.span(left)), From: c.from}
}

// mark is another one when the page has something new to say.
func (c *card) mark() string {
	shown := *c
	shown.Clock, shown.Again = nil, 0
	var main string
	if c.Main != nil {
		main = fmt.Sprint(*c.Main)
	}
	sum := sha256.Sum256(fmt.Append(nil, shown.Kind, shown.Heading, shown.Lines, shown.Says, shown.More, main, c.Clock != nil))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

func productOf(w *words, sku string, about contract.About, each bool) *product {
	return &product{Title: titleOf(sku, about), Image: about.ImageURL, Price: w.price(about.Price, each)}
}

// renderCard writes a card. about is the product's: its picture and its checkout
// are let into the page.
func (d *Door) renderCard(rw http.ResponseWriter, w *words, title string, c card, about contract.About, status int) error {
	return d.render(rw, w, "card", view{
		Title: title, Body: c, Mark: c.mark(), From: c.from, Again: c.Again, image: about.ImageURL, to: about.CheckoutURL, status: status,
	})
}
