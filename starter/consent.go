package starter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"holdfast/config"
)

// consentText is what a shopper agrees to on the form.
func consentText(shop string) string {
	return fmt.Sprintf("I agree to get texts from %s about my place in this line. Message and data rates may apply. Reply STOP to stop, HELP for help.", shop)
}

// consentVersion names the words and the pages that were agreed to: other ones
// have another version, and nobody needs to think of it.
func consentVersion(shop config.Shop) string {
	sum := sha256.New()
	for _, part := range []string{consentText(shop.Name), shop.TermsURL, shop.PrivacyURL} {
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

// keepConsentText writes down once what the version of this door means.
func (d *Door) keepConsentText() {
	s := d.cfg.Shop
	d.log.Info("the form's words of consent", "version", consentVersion(s), "text", consentText(s.Name), "terms", s.TermsURL, "privacy", s.PrivacyURL)
}
