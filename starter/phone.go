package starter

import (
	"slices"
	"strings"
	"unicode"

	"github.com/nyaruka/phonenumbers"
)

// phone reads a required phone number and answers it as E.164.
func (d *Door) phone(f *fields, name string) string {
	s := f.text(name, 64)
	if s == "" {
		return ""
	}
	e164, ok := normalisePhone(s, d.cfg.Phone.DefaultRegion)
	if !ok {
		f.complain(name, "is not a phone number; write it with its country, as in +1 202 555 0101")
		return ""
	}
	return e164
}

const (
	otherCountry = "is of a country that we do not text"
	servicePhone = "is a service number; texts go to a mobile number"
)

// textable reads a phone number that texts will go to.
func (d *Door) textable(f *fields, name string) string {
	e164 := d.phone(f, name)
	regions := d.cfg.SMS.AllowedRegions
	if len(regions) == 0 {
		regions = []string{d.cfg.Phone.DefaultRegion}
	}
	switch {
	case e164 == "":
	case !slices.Contains(regions, regionOf(e164)):
		f.complain(name, otherCountry)
		return ""
	case isService(e164):
		f.complain(name, servicePhone)
		return ""
	}
	return e164
}

// isService tells a number of a service, which has no person and whose owner may earn by
// each text. One that no table knows is none: numbers for fiction are such, and ranges
// that are younger than the tables.
func isService(e164 string) bool {
	n, err := phonenumbers.Parse(e164, "")
	if err != nil {
		return false
	}
	switch phonenumbers.GetNumberType(n) {
	case phonenumbers.PREMIUM_RATE, phonenumbers.SHARED_COST, phonenumbers.UAN:
		return true
	default:
		return false
	}
}

// regionOf is the country of a number. One that no table knows is of the country
// that its calling code belongs to in the first place.
func regionOf(e164 string) string {
	n, err := phonenumbers.Parse(e164, "")
	if err != nil {
		return ""
	}
	if region := phonenumbers.GetRegionCodeForNumber(n); region != "" && region != phonenumbers.UNKNOWN_REGION {
		return region
	}
	return phonenumbers.GetRegionCodeForCountryCode(int(n.GetCountryCode()))
}

// plain takes every space for one and drops what is not seen, such as the marks of
// writing direction that a phone's list of contacts copies along.
func plain(c rune) rune {
	switch {
	case unicode.IsSpace(c):
		return ' '
	case unicode.Is(unicode.Cf, c):
		return -1
	}
	return c
}

// normalisePhone brings every spelling of a number to one: with or without its
// country, with spaces, brackets and digits of any script, as a tel: link, and with the
// 00 that most of the world dials for the +. It asks whether the number is possible, not
// whether it is assigned: tables of assigned ranges age faster than a shop is updated.
func normalisePhone(s, region string) (e164 string, ok bool) {
	s = strings.TrimSpace(strings.Map(plain, s))
	if scheme := "tel:"; len(s) > len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
		s = s[len(scheme):]
	}
	// A letter would be read as a digit of a vanity number.
	if strings.ContainsFunc(s, func(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }) {
		return "", false
	}
	if e164, ok = possiblePhone(s, region); ok {
		return e164, true
	}
	// Only what is no number as it is dialled here: elsewhere 00 begins other things.
	abroad, ok := strings.CutPrefix(phonenumbers.NormalizeDigitsOnly(s), "00")
	if !ok || strings.HasPrefix(s, "+") {
		return "", false
	}
	return possiblePhone("+"+abroad, region)
}

func possiblePhone(s, region string) (e164 string, ok bool) {
	n, err := phonenumbers.Parse(s, region)
	if err != nil || phonenumbers.IsPossibleNumberWithReason(n) != phonenumbers.IS_POSSIBLE {
		return "", false
	}
	return phonenumbers.Format(n, phonenumbers.E164), true
}

// spokenPhone is a number as people write it.
func spokenPhone(e164 string) string {
	n, err := phonenumbers.Parse(e164, "")
	if err != nil {
		return e164
	}
	return phonenumbers.Format(n, phonenumbers.INTERNATIONAL)
}
