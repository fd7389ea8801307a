package sms

import (
	"fmt"
	"time"

	"github.com/rivo/uniseg"
)

// MaxSegments is what a text may cost; its title is cut until it fits.
const MaxSegments = 2

// JoinedBody says that a person waits, and gives them their place; position 0
// is one not known.
func JoinedBody(shop, title, link string, position int64) string {
	return fit(title, func(title string) string {
		if title != "" {
			title = " for " + title
		}
		place := "in line"
		if position > 0 {
			place = fmt.Sprintf("no. %d in line", position)
		}
		return fmt.Sprintf("%s: you are %s%s. Your place: %s Reply STOP to stop.", Fold(shop), place, title, link)
	})
}

// OfferBody says that a unit is kept, and gives the link that takes it. A
// window is told in whole minutes, rounded down, below a minute in seconds.
func OfferBody(shop, title, link string, window time.Duration) string {
	span := fmt.Sprintf("%d min", int64(window/time.Minute))
	if window < time.Minute {
		span = fmt.Sprintf("%d sec", int64(window/time.Second))
	}
	return fit(title, func(title string) string {
		if title == "" {
			title = "unit"
		}
		return fmt.Sprintf("%s: %s holds your %s for %s. STOP to stop.", Fold(shop), link, title, span)
	})
}

// fit cuts the title, on a grapheme border, until the text keeps within
// MaxSegments. The link is never touched: a text whose link is broken is worth
// nothing.
func fit(title string, body func(title string) string) string {
	title = Fold(title)
	if b := body(title); Segments(b) <= MaxSegments {
		return b
	}
	var clusters []string
	for g := uniseg.NewGraphemes(title); g.Next(); {
		clusters = append(clusters, g.Str())
	}
	for n := len(clusters) - 1; n > 0; n-- {
		cut := ""
		for _, c := range clusters[:n] {
			cut += c
		}
		if b := body(cut + "..."); Segments(b) <= MaxSegments {
			return b
		}
	}
	return body("")
}
