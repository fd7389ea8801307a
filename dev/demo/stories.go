package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"holdfast/e2e/shop"
)

// fourChairs: four chairs come, five people wait. The fifth is told only when
// one of the four gives up her turn.
func (p *play) fourChairs(ctx context.Context) error {
	sku := "CHAIR-" + shop.Token()[:6]
	p.title("Four chairs, five people (SKU " + sku + ")")
	if err := p.begin(ctx, "the shop opens the SKU without a unit", func() error { return p.shop.Open(ctx, sku, "Oak chair") }); err != nil {
		return err
	}
	people := crowd("Ada", "Ben", "Cleo", "Dora", "Marcus")
	if err := p.begin(ctx, "five people join the line", func() error { return p.joinAll(ctx, sku, people) }); err != nil {
		return err
	}
	steps := []struct {
		name string
		do   func() error
	}{
		{"four chairs come in: four people are told, Marcus is not", func() error {
			if err := p.shop.Restock(ctx, sku, 4); err != nil {
				return err
			}
			if err := p.toldAll(ctx, people[:4]); err != nil {
				return err
			}
			return p.notTold(people[4])
		}},
		{"a walk-in asks for a chair: they are reserved for the line", func() error {
			a, err := p.shop.AskHold(ctx, sku, "walk-in", shop.Token())
			if err != nil {
				return err
			}
			p.see("a walk-in", "gets", a.Problem().Detail)
			return want("the walk-in's answer", fmt.Sprint(a.Status, " ", a.Code()), "409 reserved-for-line")
		}},
		{"Ada, Ben and Cleo press their links and pay", func() error {
			for _, who := range people[:3] {
				if err := p.buy(ctx, who); err != nil {
					return err
				}
			}
			return nil
		}},
		{"Dora leaves her turn on her page (else it would lapse with the offer's window)", func() error {
			return p.leave(ctx, people[3])
		}},
		{"now Marcus is told; he presses and pays", func() error {
			if err := p.toldAll(ctx, people[4:]); err != nil {
				return err
			}
			return p.buy(ctx, people[4])
		}},
		{"Dora's link is dead, and her page says so", func() error {
			page, err := p.shop.Visit(ctx, people[3].link)
			if err != nil {
				return err
			}
			p.see(people[3].name, "sees", page.Text)
			if page.Status == http.StatusOK && len(page.Forms) > 0 {
				return errors.New("her link can still be pressed")
			}
			return nil
		}},
	}
	for _, s := range steps {
		if err := p.begin(ctx, s.name, s.do); err != nil {
			return err
		}
	}
	return p.books(ctx, sku, shop.Stock{Sold: 4})
}

// declinedCard: the last unit is held by a customer whose card is declined; it
// goes to the next in line.
func (p *play) declinedCard(ctx context.Context) error {
	sku := "LAMP-" + shop.Token()[:6]
	p.title("Declined card (SKU " + sku + ")")
	var hold shop.Hold
	ben := crowd("Ben")
	steps := []struct {
		name string
		do   func() error
	}{
		{"the shop has one lamp", func() error {
			if err := p.shop.Open(ctx, sku, "Brass lamp"); err != nil {
				return err
			}
			return p.shop.Restock(ctx, sku, 1)
		}},
		{"Ada's checkout holds it", func() (err error) {
			if hold, err = p.shop.Hold(ctx, sku, "Ada"); err != nil {
				return err
			}
			page, err := p.shop.Visit(ctx, hold.Links.Page)
			p.see("Ada", "sees", page.Text)
			return err
		}},
		{"Ben joins the line", func() error { return p.joinAll(ctx, sku, ben) }},
		{"Ada's card is declined for good", func() error {
			a, err := p.shop.Declined(ctx, hold.HoldID, paymentRef("Ada"))
			if err != nil {
				return err
			}
			if a.Status >= http.StatusMultipleChoices {
				return fmt.Errorf("the door says %s", a)
			}
			return p.until(ctx, func() error {
				ended, err := p.shop.ReadHold(ctx, hold.HoldID)
				if err != nil {
					return err
				}
				return want("Ada's hold", ended.State+", "+ended.EndReason, "released, payment-failed")
			})
		}},
		{"Ada's page says so", func() error {
			page, err := p.shop.Visit(ctx, hold.Links.Page)
			p.see("Ada", "sees", page.Text)
			return err
		}},
		{"Ben is told, presses and pays", func() error {
			if err := p.toldAll(ctx, ben); err != nil {
				return err
			}
			return p.buy(ctx, ben[0])
		}},
	}
	for _, s := range steps {
		if err := p.begin(ctx, s.name, s.do); err != nil {
			return err
		}
	}
	return p.books(ctx, sku, shop.Stock{Sold: 1})
}
