package starter

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

// signedEvent is a webhook of the shop's inventory.
func (h *house) signedEvent(body string, at time.Time, secret string) *http.Request {
	h.t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	require.NoError(h.t, err)
	id := rand.Text()
	signature, err := hook.Sign(id, at, []byte(body))
	require.NoError(h.t, err)
	return h.request("POST", "/v1/webhooks/inventory", body, "Authorization", "",
		"webhook-id", id, "webhook-timestamp", fmt.Sprint(at.Unix()), "webhook-signature", signature)
}

// exact asserts the whole problem document.
func exact(t *testing.T, a answer, status int, code string, pointers ...string) Problem {
	t.Helper()
	p := a.problem(t)
	require.Equal(t, status, a.status, a.body)
	require.Equal(t, status, p.Status)
	require.Equal(t, code, p.Code)
	require.Equal(t, "urn:holdfast:problem:"+code, p.Type)
	require.Equal(t, problems[code].title, p.Title)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	got := []string{}
	for _, e := range p.Errors {
		require.NotEmpty(t, e.Detail)
		got = append(got, e.Pointer)
	}
	require.ElementsMatch(t, pointers, got, a.body)
	require.NotContains(t, a.body, "$schema")
	return p
}

func manyLines(n int) string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"sku":"sku-%d","quantity":1}`, i)
	}
	return strings.Join(lines, ",")
}

func TestBadHolds(t *testing.T) {
	h := newHouse(t, 5)
	body := func(member string) string {
		return fmt.Sprintf(`{"sku":%q,"customer":"c",%s}`, h.sku, member)
	}
	for name, c := range map[string]struct {
		body     string
		status   int
		code     string
		pointers []string
	}{
		"unknown SKU":          {`{"sku":"NOBODY","quantity":1,"customer":"c"}`, 404, unknownSKU, nil},
		"no SKU name":          {`{"sku":"a b","quantity":1,"customer":"c"}`, 422, validationFailed, []string{"/sku"}},
		"units 0":              {body(`"quantity":0`), 422, validationFailed, []string{"/quantity"}},
		"units negative":       {body(`"quantity":-1`), 422, validationFailed, []string{"/quantity"}},
		"units fractional":     {body(`"quantity":1.5`), 422, validationFailed, []string{"/quantity"}},
		"units whole fraction": {body(`"quantity":1.0`), 422, validationFailed, []string{"/quantity"}},
		"units exponent":       {body(`"quantity":1e3`), 422, validationFailed, []string{"/quantity"}},
		"units 10^12":          {body(`"quantity":1000000000000`), 422, validationFailed, []string{"/quantity"}},
		"units 10^40":          {body(`"quantity":1` + strings.Repeat("0", 40)), 422, validationFailed, []string{"/quantity"}},
		"units text":           {body(`"quantity":"2"`), 422, validationFailed, []string{"/quantity"}},
		"units missing":        {`{"sku":"` + h.sku + `","customer":"c"}`, 422, validationFailed, []string{"/quantity"}},
		"not a phone":          {body(`"quantity":1,"customer_phone":"call me"`), 422, validationFailed, []string{"/customer_phone"}},
		"unknown member":       {body(`"quantity":1,"colour":"red"`), 422, validationFailed, []string{"/colour"}},
		"odd member name":      {body(`"quantity":1,"a/b~c":1`), 422, validationFailed, []string{"/a~1b~0c"}},
		"several at once":      {`{"sku":7,"quantity":0,"customer":""}`, 422, validationFailed, []string{"/sku", "/quantity", "/customer"}},
		"unknown SKU in lines": {`{"customer":"c","lines":[{"sku":"` + h.sku + `","quantity":1},{"sku":"OTHER","quantity":1}]}`, 404, unknownSKU, nil},
		"no lines":             {`{"customer":"c","lines":[]}`, 422, validationFailed, []string{"/lines"}},
		"21 SKUs":              {`{"customer":"c","lines":[` + manyLines(21) + `]}`, 422, validationFailed, []string{"/lines"}},
		"201 lines":            {`{"customer":"c","lines":[` + strings.TrimSuffix(strings.Repeat(`{"sku":"A","quantity":1},`, 201), ",") + `]}`, 422, validationFailed, []string{"/lines"}},
		"too many together":    {`{"customer":"c","lines":[{"sku":"A","quantity":1000000000},{"sku":"B","quantity":1},{"sku":"A","quantity":1}]}`, 422, validationFailed, []string{"/lines/2/quantity"}},
		"several bad lines":    {`{"customer":"c","lines":[{"sku":"A","quantity":0},{"sku":"b c","quantity":1},7]}`, 422, validationFailed, []string{"/lines"}},
		"each bad line":        {`{"customer":"c","lines":[{"sku":"A","quantity":0},{"sku":"b c","quantity":1},{"quantity":1}]}`, 422, validationFailed, []string{"/lines/0/quantity", "/lines/1/sku", "/lines/2/sku"}},
		"lines and both":       {body(`"quantity":1,"lines":[{"sku":"` + h.sku + `","quantity":1}]`), 422, validationFailed, []string{"/sku", "/quantity"}},
		"bad line":             {`{"customer":"c","lines":[{"sku":"` + h.sku + `","quantity":0.5,"x":1}]}`, 422, validationFailed, []string{"/lines/0/quantity", "/lines/0/x"}},
		"lines and sku":        {body(`"lines":[{"sku":"` + h.sku + `","quantity":1}]`), 422, validationFailed, []string{"/sku"}},
		"amount alone":         {body(`"quantity":1,"price":{"amount":5}`), 422, validationFailed, []string{"/price/currency"}},
		"control character":    {`{"sku":"` + h.sku + `","quantity":1,"customer":"a\u0000b"}`, 422, validationFailed, []string{"/customer"}},
		"not an object":        {`[1]`, 422, validationFailed, []string{""}},
		"broken JSON":          {`{"sku":`, 400, malformedBody, nil},
		"two values":           {`{} {}`, 400, malformedBody, nil},
		"empty body":           {``, 400, malformedBody, nil},
		"member twice":         {body(`"quantity":1,"quantity":2`), 400, malformedBody, nil},
		"not UTF-8":            {"{\"sku\":\"\xff\"}", 400, malformedBody, nil},
		"byte order mark":      {"\ufeff" + body(`"quantity":1`), 400, malformedBody, nil},
		"half a character":     {`{"sku":"` + h.sku + `","quantity":1,"customer":"a\ud83d"}`, 400, malformedBody, nil},
		"its other half":       {`{"sku":"` + h.sku + `","quantity":1,"customer":"\ude00"}`, 400, malformedBody, nil},
		"two first halves":     {`{"sku":"` + h.sku + `","quantity":1,"customer":"\ud83d\ud83d"}`, 400, malformedBody, nil},
		"half in a name":       {body(`"quantity":1,"\uD83D":1`), 400, malformedBody, nil},
		"nested too deep":      {strings.Repeat("[", 60_000), 400, malformedBody, nil},
		"over 64 KiB":          {body(`"quantity":1,"order_ref":"` + strings.Repeat("x", 64<<10) + `"`), 413, bodyTooLarge, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h.untouched(func() {
				exact(t, h.call("POST", "/v1/holds", c.body, "Idempotency-Key", rand.Text()), c.status, c.code, c.pointers...)
			})
		})
	}
}

func TestBadHeaders(t *testing.T) {
	h := newHouse(t, 5)
	good := map[string]any{"sku": h.sku, "quantity": 1, "customer": "c"}
	ask := func(header ...string) answer {
		return h.call("POST", "/v1/holds", good, append([]string{"Idempotency-Key", "k"}, header...)...)
	}
	h.untouched(func() {
		for _, wrong := range []string{"", "Bearer", "Bearer  ", "Bearer nonsense", "Basic key-of-the-shop", "Bearer key-of-the-sho", "Bearer key-of-the-shop2"} {
			a := ask("Authorization", wrong)
			exact(t, a, 401, unauthorized)
			require.Contains(t, a.header.Get("WWW-Authenticate"), "Bearer")
		}
		for _, missing := range []string{"", `""`, "   "} {
			exact(t, ask("Idempotency-Key", missing), 400, idempotencyKeyMissing)
		}
		for _, odd := range []string{"two words", "ünicode", strings.Repeat("k", 256)} {
			exact(t, ask("Idempotency-Key", odd), 422, validationFailed)
		}
		twice := h.request("POST", "/v1/holds", good, "Idempotency-Key", "k")
		twice.Header.Add("Idempotency-Key", "other")
		exact(t, h.send(twice), 422, validationFailed)
		twice = h.request("POST", "/v1/holds", good, "Idempotency-Key", "k")
		twice.Header.Add("Authorization", "Bearer nonsense")
		exact(t, h.send(twice), 401, unauthorized)
		for _, coding := range []string{"gzip", "br", "gzip, identity"} {
			exact(t, ask("Content-Encoding", coding), 415, unsupportedMediaType)
		}
		for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded"} {
			exact(t, ask("Content-Type", media), 415, unsupportedMediaType)
		}
	})
	require.Equal(t, 201, ask("Content-Type", "application/json; charset=utf-8").status)
}

// A character outside the first plane is two escapes, and an escaped backslash is none.
func TestWholeCharactersAreTaken(t *testing.T) {
	h := newHouse(t, 5)
	for i, written := range []string{`\ud83d\ude00`, `\\ud83d`, `\\\ud83d\ude00\\`, `\u00e9\ufffd`} {
		a := h.call("POST", "/v1/holds", fmt.Sprintf(`{"sku":%q,"quantity":1,"customer":"%s"}`, h.sku, written), "Idempotency-Key", fmt.Sprint(i))
		require.Equal(t, 201, a.status, a.body)
	}
}

func TestBadStockEvents(t *testing.T) {
	h := newHouse(t, 5)
	event := func(members string) string { return fmt.Sprintf(`{"event_id":"e1","sku":%q,%s}`, h.sku, members) }
	returned := func(members string) string {
		return `"kind":"return","return_id":"r1","hold_id":"hold_7hlieilcmhqdripqb5bpta57ay",` + members
	}
	for name, c := range map[string]struct {
		body     string
		status   int
		code     string
		pointers []string
	}{
		"unknown SKU":          {`{"event_id":"e1","sku":"NOBODY","kind":"restock","units":1}`, 404, unknownSKU, nil},
		"restock of 0":         {event(`"kind":"restock","units":0`), 422, validationFailed, []string{"/units"}},
		"negative":             {event(`"kind":"restock","units":-3`), 422, validationFailed, []string{"/units"}},
		"fractional":           {event(`"kind":"restock","units":1.5`), 422, validationFailed, []string{"/units"}},
		"exponent":             {event(`"kind":"restock","units":1E2`), 422, validationFailed, []string{"/units"}},
		"10^12":                {event(`"kind":"restock","units":1000000000000`), 422, validationFailed, []string{"/units"}},
		"text":                 {event(`"kind":"restock","units":"2"`), 422, validationFailed, []string{"/units"}},
		"correction of 0":      {event(`"kind":"correction","delta":0,"reason":"count"`), 422, validationFailed, []string{"/delta"}},
		"correction no delta":  {event(`"kind":"correction","reason":"count"`), 422, validationFailed, []string{"/delta"}},
		"correction untold":    {event(`"kind":"correction","delta":-1`), 422, validationFailed, []string{"/reason"}},
		"return of nothing":    {event(`"kind":"return"`), 422, validationFailed, []string{"/units", "/return_id", "/hold_id", "/resell"}},
		"return of 0":          {event(returned(`"units":0,"resell":true`)), 422, validationFailed, []string{"/units"}},
		"return of -1":         {event(returned(`"units":-1,"resell":true`)), 422, validationFailed, []string{"/units"}},
		"return undecided":     {event(returned(`"units":1`)), 422, validationFailed, []string{"/resell"}},
		"return null":          {event(returned(`"units":1,"resell":null`)), 422, validationFailed, []string{"/resell"}},
		"return resell text":   {event(returned(`"units":1,"resell":"yes"`)), 422, validationFailed, []string{"/resell"}},
		"return of an entry":   {event(`"kind":"return","units":1,"resell":true,"return_id":"r","hold_id":"entry_7hlieilch25wm6nd74gjabh6uu"`), 422, validationFailed, []string{"/hold_id"}},
		"return of a number":   {event(`"kind":"return","units":1,"resell":true,"return_id":"r","hold_id":7`), 422, validationFailed, []string{"/hold_id"}},
		"return id too long":   {event(`"kind":"return","units":1,"resell":true,"hold_id":"hold_7hlieilcmhqdripqb5bpta57ay","return_id":"` + strings.Repeat("r", 129) + `"`), 422, validationFailed, []string{"/return_id"}},
		"level of nothing":     {event(`"kind":"level"`), 422, validationFailed, []string{"/units", "/version", "/counts_sold"}},
		"level below 0":        {event(`"kind":"level","units":-1,"version":1,"counts_sold":0`), 422, validationFailed, []string{"/units"}},
		"level version 0":      {event(`"kind":"level","units":1,"version":0,"counts_sold":0`), 422, validationFailed, []string{"/version"}},
		"level version 2^53":   {event(`"kind":"level","units":1,"version":9007199254740992,"counts_sold":0`), 422, validationFailed, []string{"/version"}},
		"level counts below 0": {event(`"kind":"level","units":1,"version":1,"counts_sold":-1`), 422, validationFailed, []string{"/counts_sold"}},
		"level shortfall 1":    {event(`"kind":"level","units":1,"version":1,"counts_sold":0,"allow_shortfall":1`), 422, validationFailed, []string{"/allow_shortfall"}},
		"no kind":              {event(`"units":1`), 422, validationFailed, []string{"/kind"}},
		"unknown kind":         {event(`"kind":"gift","units":1`), 422, validationFailed, []string{"/kind"}},
		"event id a number":    {`{"event_id":7,"sku":"` + h.sku + `","kind":"restock","units":1}`, 422, validationFailed, []string{"/event_id"}},
		"not an instant":       {event(`"kind":"restock","units":1,"occurred_at":"yesterday"`), 422, validationFailed, []string{"/occurred_at"}},
		"broken JSON":          {`{"event_id"`, 400, malformedBody, nil},
		"over 64 KiB":          {event(`"kind":"restock","units":1,"x":"` + strings.Repeat("x", 64<<10) + `"`), 413, bodyTooLarge, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h.untouched(func() {
				exact(t, h.send(h.signedEvent(c.body, time.Now(), webhookSecret)), c.status, c.code, c.pointers...)
			})
		})
	}
	good := event(`"kind":"restock","units":1`)
	h.untouched(func() {
		exact(t, h.send(h.signedEvent(good, time.Now(), "whsec_d3Jvbmctc2VjcmV0")), 401, signatureInvalid)
		exact(t, h.send(h.signedEvent(good, time.Now().Add(-6*time.Minute), webhookSecret)), 401, signatureInvalid)
		exact(t, h.send(h.signedEvent(good, time.Now().Add(6*time.Minute), webhookSecret)), 401, signatureInvalid)
		exact(t, h.call("POST", "/v1/webhooks/inventory", good), 401, signatureInvalid)
		edited := h.signedEvent(good, time.Now(), webhookSecret)
		other := h.request("POST", "/v1/webhooks/inventory", strings.Replace(good, `"units":1`, `"units":9`, 1))
		other.Header = edited.Header
		exact(t, h.send(other), 401, signatureInvalid)
	})
}

func TestBadJoins(t *testing.T) {
	h := newHouse(t, 0)
	join := func(members string) string { return fmt.Sprintf(`{"sku":%q,%s}`, h.sku, members) }
	for name, c := range map[string]struct {
		body     string
		status   int
		code     string
		pointers []string
	}{
		"unknown SKU":    {`{"sku":"NOBODY","phone":"+12025550101","consent":true}`, 404, unknownSKU, nil},
		"no phone":       {join(`"consent":true`), 422, validationFailed, []string{"/phone"}},
		"null phone":     {join(`"phone":null,"consent":true`), 422, validationFailed, []string{"/phone"}},
		"not a phone":    {join(`"phone":"call me","consent":true`), 422, validationFailed, []string{"/phone"}},
		"too short":      {join(`"phone":"12","consent":true`), 422, validationFailed, []string{"/phone"}},
		"vanity number":  {join(`"phone":"+1 800 FLOWERS","consent":true`), 422, validationFailed, []string{"/phone"}},
		"no consent":     {join(`"phone":"+12025550101"`), 422, validationFailed, []string{"/consent"}},
		"consent false":  {join(`"phone":"+12025550101","consent":false`), 422, validationFailed, []string{"/consent"}},
		"consent text":   {join(`"phone":"+12025550101","consent":"true"`), 422, validationFailed, []string{"/consent"}},
		"units 0":        {join(`"phone":"+12025550101","consent":true,"quantity":0`), 422, validationFailed, []string{"/quantity"}},
		"unknown member": {join(`"phone":"+12025550101","consent":true,"vip":true`), 422, validationFailed, []string{"/vip"}},
		"broken JSON":    {`{`, 400, malformedBody, nil},
	} {
		for who, key := range map[string]string{"server": "Bearer key-of-the-shop", "public": ""} {
			t.Run(name+" "+who, func(t *testing.T) {
				h.untouched(func() {
					exact(t, h.call("POST", "/v1/waitlist", c.body, "Authorization", key), c.status, c.code, c.pointers...)
				})
			})
		}
	}
	h.untouched(func() {
		exact(t, h.call("POST", "/v1/waitlist", join(`"phone":"+12025550101","consent":true`), "Authorization", "Bearer wrong"), 401, unauthorized)
		for _, name := range []string{"a\u202eb", "a\u2028b", "a\u2069b"} {
			exact(t, h.call("POST", "/v1/waitlist", join(`"phone":"+12025550101","consent":true,"name":"`+name+`"`)), 422, validationFailed, "/name")
		}
		// The first in line is offered what is free, up to what they want: nobody
		// without a key may want everything.
		exact(t, h.call("POST", "/v1/waitlist", join(`"phone":"+12025550101","consent":true,"quantity":11`), "Authorization", ""), 422, validationFailed, "/quantity")
	})
	require.Equal(t, http.StatusAccepted, h.call("POST", "/v1/waitlist", join(`"phone":"+12025550101","consent":true,"quantity":10,"name":"\u05d0\u200f Ada"`), "Authorization", "").status)
	require.Equal(t, http.StatusCreated, h.call("POST", "/v1/waitlist", join(`"phone":"+12025550102","consent":true,"quantity":11`)).status)
}
