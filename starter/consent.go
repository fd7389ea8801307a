package starter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"holdfast/config"
)

// consentText is what a shopper agrees to on the form, in the language of w.
func consentText(w *words, shop string) string {
	return strings.ReplaceAll(w.all["join_consent"], "{shop}", shop)
}

// consentVersion names the words and the pages that were agreed to: other ones
// have another version, and nobody needs to think of it.
func consentVersion(w *words, shop config.Shop) string {
	sum := sha256.New()
	for _, part := range []string{consentText(w, shop.Name), shop.TermsURL, shop.PrivacyURL} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// Sources of consent; the shop's servers are "api:" and the caller.
const (
	consentForm   = "form"   // our own page
	consentPublic = "public" // a page that called the API without a key
	consentAgain  = "again"  // "put me back in line"
	consentAPI    = "api:"
)

// consentYes is what the box of our form says. Whatever else stands there, as "no"
// of a shop's own form, is no consent.
const consentYes = "yes"

// keepConsentText writes down once what the versions of this door mean.
func (d *Door) keepConsentText() {
	s := d.cfg.Shop
	for _, w := range d.pages.all {
		d.log.Info("the form's words of consent", "version", consentVersion(w, s), "text", consentText(w, s.Name), "terms", s.TermsURL, "privacy", s.PrivacyURL)
	}
}
