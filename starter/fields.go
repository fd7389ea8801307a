package starter

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"holdfast/contract"
)

const maxUnits = 1_000_000_000

// fields reads the members of a JSON object one by one and collects every
// complaint with its pointer. A member that is null counts as missing.
type fields struct {
	at      string // pointer of the object itself
	members map[string]any
	known   map[string]bool
	errs    *[]FieldError
}

func newFields(members map[string]any) *fields {
	return &fields{members: members, known: map[string]bool{}, errs: new([]FieldError)}
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

func (f *fields) pointer(name string) string { return f.at + "/" + pointerEscape.Replace(name) }

// complain notes what is wrong with a member; the first complaint counts.
func (f *fields) complain(name, format string, args ...any) {
	at := f.pointer(name)
	if slices.ContainsFunc(*f.errs, func(e FieldError) bool { return e.Pointer == at }) {
		return
	}
	*f.errs = append(*f.errs, FieldError{Pointer: at, Detail: fmt.Sprintf(format, args...)})
}

func (f *fields) take(name string) (any, bool) {
	f.known[name] = true
	v := f.members[name]
	return v, v != nil
}

func (f *fields) has(name string) bool {
	_, ok := f.take(name)
	return ok
}

// text is a required text of 1 to most characters without control characters.
func (f *fields) text(name string, most int) string {
	if !f.has(name) {
		f.complain(name, "is missing")
		return ""
	}
	s, given := f.optionalText(name, most)
	if given && s == "" {
		f.complain(name, "must not be empty")
	}
	return s
}

func (f *fields) optionalText(name string, most int) (s string, given bool) {
	v, ok := f.take(name)
	if !ok {
		return "", false
	}
	s, ok = v.(string)
	switch {
	case !ok:
		f.complain(name, "must be a text")
		return "", false
	case utf8.RuneCountInString(s) > most:
		f.complain(name, "must have at most %d characters", most)
		return "", false
	case strings.ContainsFunc(s, unseen):
		f.complain(name, "must not contain control characters, line breaks or marks that turn the direction of writing")
		return "", false
	}
	return strings.TrimSpace(s), true
}

// unseen is what makes a text look like another one, or like two: control characters,
// breaks of lines and paragraphs, and what overrides the direction of all that follows.
func unseen(c rune) bool {
	return unicode.IsControl(c) || c >= '\u2028' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069'
}

var wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// integer is a required whole number from least to most, written without
// fraction or exponent.
func (f *fields) integer(name string, least, most int64) int64 {
	n := f.optionalInteger(name, least, most)
	if n == nil {
		if !f.has(name) {
			f.complain(name, "is missing")
		}
		return 0
	}
	return *n
}

func (f *fields) optionalInteger(name string, least, most int64) *int64 {
	v, ok := f.take(name)
	if !ok {
		return nil
	}
	number, ok := v.(json.Number)
	if !ok {
		f.complain(name, "must be a number, not a text or anything else")
		return nil
	}
	if !wholeNumber.MatchString(number.String()) {
		f.complain(name, "must be a whole number without fraction or exponent, not %s", number)
		return nil
	}
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n < least || n > most {
		f.complain(name, "must be from %d to %d", least, most)
		return nil
	}
	return &n
}

// quantity is a required number of units, or when it is optional 1 if missing.
func (f *fields) quantity(name string, optional bool) int64 {
	if optional && !f.has(name) {
		return 1
	}
	return f.integer(name, 1, maxUnits)
}

func (f *fields) boolean(name string) bool {
	v, ok := f.take(name)
	if !ok {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		f.complain(name, "must be true or false")
	}
	return b
}

func (f *fields) instant(name string) *time.Time {
	s, given := f.optionalText(name, 40)
	if !given {
		return nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		f.complain(name, "must be an instant as RFC 3339 writes it, such as 2026-01-31T12:00:00Z")
		return nil
	}
	t = t.UTC()
	return &t
}

// sku is a required SKU.
func (f *fields) sku(name string) string {
	s := f.text(name, 64)
	if s != "" && !contract.ValidSKU(s) {
		f.complain(name, "must be 1 to 64 of A-Z, a-z, 0-9, \".\", \"_\" and \"-\"")
		return ""
	}
	return s
}

// object is an optional member that is an object, nil when missing.
func (f *fields) object(name string) *fields {
	v, ok := f.take(name)
	if !ok {
		return nil
	}
	members, ok := v.(map[string]any)
	if !ok {
		f.complain(name, "must be an object")
		return nil
	}
	return f.child(f.pointer(name), members)
}

func (f *fields) child(at string, members map[string]any) *fields {
	return &fields{at: at, members: members, known: map[string]bool{}, errs: f.errs}
}

// objects is an optional member that is a list of objects.
func (f *fields) objects(name string, most int) []*fields {
	v, ok := f.take(name)
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > most {
		f.complain(name, "must be a list of 1 to %d objects", most)
		return nil
	}
	var out []*fields
	for i, item := range list {
		members, ok := item.(map[string]any)
		if !ok {
			f.complain(name, "must be a list of 1 to %d objects; item %d is none", most, i)
			return nil
		}
		out = append(out, f.child(fmt.Sprintf("%s/%d", f.pointer(name), i), members))
	}
	return out
}

var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

// amount is the pair amount and currency: both or neither.
func (f *fields) amount() *contract.Money {
	hasAmount, hasCurrency := f.has("amount"), f.has("currency")
	n := f.optionalInteger("amount", 0, math.MaxInt64)
	currency, _ := f.optionalText("currency", 3)
	if hasCurrency && !currencyCode.MatchString(currency) {
		f.complain("currency", "must be an ISO 4217 code of three capital letters")
	}
	switch {
	case hasAmount && !hasCurrency:
		f.complain("currency", "is missing: amount and currency come together")
	case hasCurrency && !hasAmount:
		f.complain("amount", "is missing: amount and currency come together")
	case n != nil && currency != "":
		return &contract.Money{Amount: *n, Currency: currency}
	}
	return nil
}

// price is an optional object of amount and currency.
func (f *fields) price(name string) *contract.Money {
	p := f.object(name)
	if p == nil {
		return nil
	}
	m := p.amount()
	if m == nil && !p.has("amount") && !p.has("currency") {
		f.complain(name, "must have amount and currency")
	}
	p.unknown()
	return m
}

// unknown complains of every member that nobody asked for.
func (f *fields) unknown() {
	var names []string
	for name := range f.members {
		if !f.known[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		f.complain(name, "is not known here")
	}
}

// done ends a strict reading: unknown members are complaints.
func (f *fields) done() error {
	f.unknown()
	return f.lenient()
}

// lenient ends a reading that ignores unknown members.
func (f *fields) lenient() error {
	if len(*f.errs) > 0 {
		return invalid(*f.errs...)
	}
	return nil
}
