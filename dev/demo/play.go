package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"time"

	"holdfast/e2e/shop"
)

// play is one run of the demo.
type play struct {
	shop   *shop.Shop
	outbox *shop.Outbox
	out    io.Writer
	seen   int    // texts that were there before
	step   string // what is being played
	number int
}

// person is a shopper with a phone and what came to it.
type person struct {
	name, phone string
	page        string // their place in line
	link        string // their reserve link
	entryID     string
}

// crowd gives each name a number that belongs to nobody.
func crowd(names ...string) []*person {
	areas := []int{201, 202, 203, 205, 206, 207, 208, 209, 210, 212}
	first := rand.IntN(100 - len(names))
	area := areas[rand.IntN(len(areas))]
	out := make([]*person, len(names))
	for i, name := range names {
		out[i] = &person{name: name, phone: fmt.Sprintf("+1%d55501%02d", area, first+i)}
	}
	return out
}

func (p *play) begin(ctx context.Context, step string, do func() error) error {
	p.step = step
	p.number++
	fmt.Fprintf(p.out, "%2d. %s\n", p.number, step)
	if err := do(); err != nil {
		return err
	}
	return ctx.Err()
}

// until repeats try until it has no complaint, for ten seconds at most.
func (p *play) until(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

func want(what, got, expected string) error {
	if got != expected {
		return fmt.Errorf("%s is %q, expected %q", what, got, expected)
	}
	return nil
}

var placeLink = regexp.MustCompile(`https?://[^/\s]+/w/(entry_[a-z2-7]+)`)

// joinAll fills in the join page for each person, who then finds their place by
// the link in their text.
func (p *play) joinAll(ctx context.Context, sku string, people []*person) error {
	// A number may have had texts in an earlier story.
	before, err := p.outbox.Texts()
	if err != nil {
		return err
	}
	p.seen = len(before)
	for i, who := range people {
		page, err := p.shop.Visit(ctx, p.shop.URL+"/join/"+sku)
		if err != nil {
			return err
		}
		if len(page.Forms) != 1 {
			return fmt.Errorf("the join page has %d forms: %q", len(page.Forms), page.Text)
		}
		form := page.Forms[0]
		form.Values.Set("phone", who.phone)
		form.Values.Set("name", who.name)
		form.Values.Set("consent", "yes")
		if page, err = p.shop.Send(ctx, form); err != nil {
			return err
		}
		if page.Status != http.StatusAccepted {
			return fmt.Errorf("%s could not join: %d %q", who.name, page.Status, page.Text)
		}
		text, err := p.text(ctx, who, func(t shop.Text) bool { return placeLink.MatchString(t.Body) })
		if err != nil {
			return err
		}
		found := placeLink.FindStringSubmatch(text.Body)
		who.page, who.entryID = found[0], found[1]
		if page, err = p.shop.Visit(ctx, who.page); err != nil {
			return err
		}
		p.see(who.name, "sees", page.Text)
		if place := fmt.Sprintf("You are no. %d in line", i+1); !strings.Contains(page.Text, place) {
			return fmt.Errorf("%s's page does not say %q: %q", who.name, place, page.Text)
		}
	}
	return nil
}

// text waits for a text to a person that came since the story began.
func (p *play) text(ctx context.Context, who *person, right func(shop.Text) bool) (shop.Text, error) {
	var out shop.Text
	err := p.until(ctx, func() error {
		texts, err := p.outbox.Texts()
		if err != nil {
			return err
		}
		for _, t := range texts[p.seen:] {
			if t.To == who.phone && (who.entryID == "" || t.EntryID == who.entryID) && right(t) {
				out = t
				return nil
			}
		}
		return fmt.Errorf("no such text to %s (%s) in %s", who.name, who.phone, p.outbox.Path)
	})
	if err == nil {
		p.see(who.name, "is texted", out.Body)
	}
	return out, err
}

// toldAll waits until each person has a link and opens it, which takes nothing.
func (p *play) toldAll(ctx context.Context, people []*person) error {
	for _, who := range people {
		text, err := p.text(ctx, who, func(t shop.Text) bool { return t.Link() != "" })
		if err != nil {
			return err
		}
		who.link = text.Link()
		page, err := p.shop.Visit(ctx, who.link)
		if err != nil {
			return err
		}
		p.see(who.name, "sees", page.Text)
		if err := want("the page of "+who.name+"'s link", fmt.Sprint(page.Status), "200"); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) notTold(who *person) error {
	texts, err := p.outbox.Texts()
	for _, t := range texts[p.seen:] {
		if t.EntryID == who.entryID && t.Link() != "" {
			return fmt.Errorf("%s was told too early: %q", who.name, t.Body)
		}
	}
	p.see(who.name, "is not told", "")
	return err
}

var holdInAddress = regexp.MustCompile(`hold_[a-z2-7]{26}`)

// buy presses a person's link, as a browser does, and pays at the shop.
func (p *play) buy(ctx context.Context, who *person) error {
	page, err := p.shop.Visit(ctx, who.link)
	if err != nil {
		return err
	}
	pressed, err := p.shop.Press(ctx, page, "/r/")
	if err != nil {
		return err
	}
	if pressed.Status != http.StatusSeeOther {
		return fmt.Errorf("%s's press got %d %q", who.name, pressed.Status, pressed.Text)
	}
	p.see(who.name, "is led to", pressed.To)
	holdID := holdInAddress.FindString(pressed.To)
	if holdID == "" {
		return fmt.Errorf("%s was led to %q, which names no hold", who.name, pressed.To)
	}
	a, err := p.shop.Confirm(ctx, holdID, paymentRef(who.name))
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("%s paid, and the door says %s", who.name, a)
	}
	if page, err = p.shop.Visit(ctx, p.shop.URL+"/h/"+holdID); err != nil {
		return err
	}
	p.see(who.name, "sees", page.Text)
	if !strings.Contains(page.Text, "Bought") {
		return fmt.Errorf("%s's hold page does not say that it is bought: %q", who.name, page.Text)
	}
	return nil
}

// paymentRef has the form of every provider's references, Stripe's among them.
func paymentRef(name string) string {
	return "pi_demo_" + strings.ToLower(name) + "_" + shop.Token()[:8]
}

// leave presses the button of a person's page in the line.
func (p *play) leave(ctx context.Context, who *person) error {
	page, err := p.shop.Visit(ctx, who.page)
	if err != nil {
		return err
	}
	p.see(who.name, "sees", page.Text)
	to, err := p.shop.Press(ctx, page, "/w/"+who.entryID+"/leave")
	if err != nil {
		return err
	}
	if to.Status != http.StatusSeeOther {
		return fmt.Errorf("%s could not leave: %d %q", who.name, to.Status, to.Text)
	}
	if page, err = p.shop.Visit(ctx, to.To); err != nil {
		return err
	}
	p.see(who.name, "sees", page.Text)
	if !strings.Contains(page.Text, "left") {
		return errors.New("the page does not say that she has left")
	}
	return nil
}
