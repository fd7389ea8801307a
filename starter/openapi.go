package starter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"holdfast/contract"
	"holdfast/docs"
)

// /openapi.json and /docs are made of docs/api.md, which is checked against the routes:
// the description and the problems of each call stand there. Its name, and what it takes
// and answers, are added here.

var (
	boolean = schema{"type": "boolean"}
	instant = schema{"type": "string", "format": "date-time"}
	money   = []member{may("amount", schema{"type": "integer", "format": "int64", "minimum": 0}), may("currency", schema{"type": "string", "pattern": "^[A-Z]{3}$"})}
	price   = object(must("amount", money[0].schema), must("currency", money[1].schema))
	aSKU    = schema{"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}
	units   = between(1, maxUnits)

	pageLimit = between(1, 200)
)

// summaries are what each call is called in a list of them.
var summaries = map[string]string{
	"PUT /v1/stock/{sku}":                     "Open a SKU, or change what is said of it",
	"GET /v1/stock/{sku}":                     "Read a SKU",
	"GET /v1/stock":                           "List the SKUs",
	"POST /v1/stock/{sku}/pause":              "Pause a SKU",
	"POST /v1/stock/{sku}/resume":             "Resume a SKU",
	"GET /v1/stock/{sku}/policy":              "Read the policy of a SKU",
	"PUT /v1/stock/{sku}/policy":              "Replace the policy of a SKU",
	"GET /v1/stock/{sku}/ledger":              "List what moved a SKU",
	"GET /v1/stock/{sku}/statement":           "Read the books of a SKU, and whether they add up",
	"GET /v1/stock/{sku}/line":                "List who waits for a SKU",
	"GET /v1/stock/{sku}/tripwire":            "Read what rings of a SKU",
	"GET /v1/stock/{sku}/texts":               "List the offers whose texts never arrived",
	"GET /v1/stock/{sku}/why":                 "Why nobody in line is told",
	"POST /v1/stock/{sku}/reconcile":          "Look through a SKU, and mend it",
	"GET /v1/stock/{sku}/reconcile":           "Read the report of a pass over a SKU",
	"GET /v1/stock/{sku}/public":              "Read what a product page may show",
	"POST /v1/waitlist":                       "Join a line",
	"GET /v1/waitlist/{entry_id}":             "Read an entry",
	"DELETE /v1/waitlist/{entry_id}":          "Leave a line",
	"GET /v1/waitlist/{entry_id}/why":         "Why this person is not told",
	"POST /v1/holds":                          "Hold units for a customer",
	"GET /v1/holds":                           "List holds",
	"GET /v1/holds/{hold_id}":                 "Read a hold",
	"POST /v1/holds/{hold_id}/checkout":       "Say that the shopper is paying",
	"POST /v1/holds/{hold_id}/payment-failed": "Say that a payment failed",
	"POST /v1/holds/{hold_id}/confirm":        "Say that money arrived",
	"POST /v1/holds/{hold_id}/release":        "Give a hold's units back",
	"GET /v1/attention":                       "List what a person should look at",
	"POST /v1/find":                           "Tell the story of what a person on call was told",
	"GET /v1/refunds":                         "List the money that made no sale",
	"POST /v1/refunds/{payment_id}/settle":    "Say that money went back",
	"POST /v1/refunds/{payment_id}/retry":     "Ask the payment provider once more",
	"GET /v1/events":                          "List the events that the shop has not taken",
	"POST /v1/events/test":                    "Send a test event",
	"POST /v1/events/{event_id}/retry":        "Deliver an event afresh",
	"POST /v1/webhooks/inventory":             "The shop's inventory: stock events",
	"POST /v1/webhooks/stripe":                "Stripe: payments and refunds",
	"POST /v1/webhooks/twilio/status":         "Twilio: how far a text has come",
	"POST /v1/webhooks/twilio/inbound":        "Twilio: a text that somebody sent",
	"GET /":                                   "Page: the SKUs, in development",
	"GET /join/{sku}":                         "Page: the form to join a line",
	"POST /join/{sku}":                        "Page: join a line",
	"GET /w/{entry_id}":                       "Page: a place in line",
	"POST /w/{entry_id}/leave":                "Page: leave a line",
	"POST /w/{entry_id}/again":                "Page: join once more",
	"GET /r/{token}":                          "Page: an offer",
	"POST /r/{token}":                         "Page: the press of an offer",
	"GET /h/{hold_id}":                        "Page: a hold",
	"POST /h/{hold_id}/release":               "Page: give a hold back",
	"GET /healthz":                            "Whether the process serves",
	"GET /readyz":                             "Whether it should get requests",
	"GET /metrics":                            "Metrics for Prometheus",
	"GET /docs":                               "The HTTP reference as a page",
	"GET /openapi.json":                       "This document",
	"POST /codec/encode":                      "Encrypt payloads for Temporal's UI and CLI",
	"POST /codec/decode":                      "Decrypt payloads for Temporal's UI and CLI",
}

// bodies are the JSON bodies of the calls that take one.
var bodies = map[string]schema{
	"PUT /v1/stock/{sku}":                     object(must("title", text(200)), must("checkout_url", text(2000)), may("image_url", text(2000)), may("price", price)),
	"PUT /v1/stock/{sku}/policy":              policyBodySchema(),
	"POST /v1/stock/{sku}/reconcile":          object(may("dry_run", boolean), may("agree", boolean)),
	"POST /v1/waitlist":                       object(must("sku", aSKU), must("phone", text(64)), must("consent", boolean), may("quantity", units), may("name", text(100)), may("consent_version", text(64)), may("locale", text(mostLocale))),
	"POST /v1/holds":                          object(may("sku", aSKU), may("quantity", units), may("lines", schema{"type": "array", "items": object(must("sku", aSKU), must("quantity", units))}), must("customer", text(200)), may("customer_phone", text(64)), may("order_ref", text(200)), may("price", price)),
	"POST /v1/holds/{hold_id}/checkout":       object(append(money, must("payment_ref", text(200)))...),
	"POST /v1/holds/{hold_id}/confirm":        object(append(money, must("payment_ref", text(200)))...),
	"POST /v1/holds/{hold_id}/payment-failed": object(may("payment_ref", text(200)), may("reason", text(200)), may("final", boolean)),
	"POST /v1/holds/{hold_id}/release":        object(may("reason", text(64))),
	"POST /v1/find":                           object(must("term", text(255))),
	"POST /v1/refunds/{payment_id}/settle":    object(must("reference", text(200))),
	"POST /v1/webhooks/inventory":             {"type": "object"},
	"POST /v1/webhooks/stripe":                {"type": "object"},
}

func policyBodySchema() schema {
	members := []member{may("ends_at", instant)}
	for _, n := range contract.PolicyNumbers {
		members = append(members, may(n.Name, between(n.Least, n.Most)))
	}
	return object(members...)
}

// listOf is a page of a list, with the type of its items.
type listOf[View any] struct {
	Data       []View  `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

func answerOf[View any]() reflect.Type { return reflect.TypeFor[View]() }

// answers are the JSON documents that calls answer when they succeed.
var answers = map[string]reflect.Type{
	"PUT /v1/stock/{sku}": answerOf[stockView](), "GET /v1/stock/{sku}": answerOf[stockView](), "GET /v1/stock": answerOf[listOf[stockView]](),
	"POST /v1/stock/{sku}/pause": answerOf[stockView](), "POST /v1/stock/{sku}/resume": answerOf[stockView](),
	"GET /v1/stock/{sku}/policy": answerOf[policyView](), "PUT /v1/stock/{sku}/policy": answerOf[policyView](),
	"GET /v1/stock/{sku}/ledger": answerOf[listOf[ledgerView]](), "GET /v1/stock/{sku}/statement": answerOf[statementView](),
	"GET /v1/stock/{sku}/tripwire": answerOf[tripwireView](), "GET /v1/stock/{sku}/texts": answerOf[missedTextsView](),
	"GET /v1/stock/{sku}/line": answerOf[listOf[waiterView]](), "GET /v1/stock/{sku}/why": answerOf[whyView](), "GET /v1/waitlist/{entry_id}/why": answerOf[whyView](),
	"GET /v1/stock/{sku}/reconcile": answerOf[passView](), "POST /v1/stock/{sku}/reconcile": answerOf[passView](), "GET /v1/stock/{sku}/public": answerOf[publicView](),
	"POST /v1/waitlist": answerOf[entryView](), "GET /v1/waitlist/{entry_id}": answerOf[entryView](),
	"POST /v1/holds": answerOf[holdView](), "GET /v1/holds": answerOf[listOf[holdView]](), "GET /v1/holds/{hold_id}": answerOf[holdView](),
	"POST /v1/holds/{hold_id}/checkout": answerOf[holdView](), "POST /v1/holds/{hold_id}/confirm": answerOf[holdView](),
	"POST /v1/holds/{hold_id}/payment-failed": answerOf[holdView](), "POST /v1/holds/{hold_id}/release": answerOf[holdView](),
	"GET /v1/attention": answerOf[attentionView](), "POST /v1/find": answerOf[findView](), "GET /v1/refunds": answerOf[listOf[refundView]](),
	"POST /v1/refunds/{payment_id}/settle": answerOf[refundView](), "POST /v1/refunds/{payment_id}/retry": answerOf[refundView](),
	"GET /v1/events": answerOf[listOf[tellingView]](), "POST /v1/events/test": answerOf[testView](), "POST /v1/events/{event_id}/retry": answerOf[tellingView](),
	"POST /v1/webhooks/inventory": answerOf[eventView](), "POST /v1/webhooks/stripe": answerOf[stripeView](),
}

// queries are the parameters in the query of a call, beside limit and cursor of lists.
var queries = map[string][]member{
	"GET /v1/stock/{sku}/texts":     {may("since", instant), may("limit", pageLimit)},
	"GET /v1/stock/{sku}/ledger":    {may("since", instant), may("until", instant)},
	"GET /v1/stock/{sku}/reconcile": {may("run_id", schema{"type": "string"})},
	"GET /v1/holds":                 {may("sku", aSKU), may("state", schema{"type": "string"})},
	"GET /v1/refunds":               {may("sku", aSKU), may("open", boolean)},
	"GET /v1/events":                {may("state", schema{"type": "string"})},
}

var (
	docSection  = regexp.MustCompile("(?m)^### `([A-Z]+) ([^`]+)`$")
	docEnd      = regexp.MustCompile("(?m)^##")
	docCode     = regexp.MustCompile("`([a-z-]+)`")
	docSuccess  = regexp.MustCompile(`\b(20[0-4]|303)\b`)
	docProblems = regexp.MustCompile("(?s)[Pp]roblems: (.*?)(?:\n\n|$)|(?m:^\\* [45][0-9]{2} (`[a-z-]+`))")
	pathName    = regexp.MustCompile(`\{([a-z_]+)\}`)
)

// openAPI is the document of the calls on d, made once.
func (d *Door) openAPI() []byte {
	paths := schema{}
	there := map[string]bool{}
	for _, r := range d.routes() {
		there[strings.Replace(r.pattern, "{$}", "", 1)] = true
	}
	for _, at := range docSection.FindAllStringSubmatchIndex(docs.API, -1) {
		method, path := docs.API[at[2]:at[3]], docs.API[at[4]:at[5]]
		if !there[method+" "+path] {
			continue // Stripe's, without Stripe
		}
		section := docs.API[at[1]:]
		if end := docEnd.FindStringIndex(section); end != nil {
			section = section[:end[0]]
		}
		item, _ := paths[path].(schema)
		if item == nil {
			item = schema{}
			paths[path] = item
		}
		item[strings.ToLower(method)] = operation(method+" "+path, section)
	}
	raw, err := json.MarshalIndent(schema{
		"openapi": "3.1.0",
		"info":    schema{"title": "Holdfast", "version": "1", "description": "What each call means is explained under /docs."},
		"paths":   paths,
		"components": schema{
			"securitySchemes": schema{"bearer": schema{"type": "http", "scheme": "bearer"}},
			"schemas":         schema{"Problem": schemaOf(reflect.TypeFor[Problem]())},
		},
	}, "", " ")
	if err != nil {
		panic(fmt.Sprintf("the OpenAPI document does not encode: %v", err)) // plain values
	}
	return raw
}

// operation is one call, whose section of the reference is given.
func operation(pattern, section string) schema {
	prose, _, _ := strings.Cut(section, "```")
	prose = strings.TrimSpace(prose)
	op := schema{
		"summary":     summaries[pattern],
		"description": prose,
		"operationId": strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(pattern), "-"), "-"),
	}
	responses := schema{}
	if strings.HasPrefix(prose, "Bearer") {
		op["security"] = []schema{{"bearer": []string{}}}
		responses["401"] = problemResponse(unauthorized)
	}
	byStatus := map[string][]string{"503": {unavailable}}
	for _, named := range docProblems.FindAllString(prose, -1) {
		for _, m := range docCode.FindAllStringSubmatch(named, -1) {
			p, ok := problems[m[1]]
			status := strconv.Itoa(p.status)
			if ok && !slices.Contains(byStatus[status], m[1]) {
				byStatus[status] = append(byStatus[status], m[1])
			}
		}
	}
	for status, names := range byStatus {
		responses[status] = problemResponse(names...)
	}
	successes := docSuccess.FindAllString(prose, -1)
	if len(successes) == 0 {
		successes = []string{"200"}
	}
	for _, status := range successes {
		code, _ := strconv.Atoi(status) // digits, by docSuccess
		answer := schema{"description": http.StatusText(code)}
		if t, ok := answers[pattern]; ok {
			answer["content"] = schema{"application/json": schema{"schema": schemaOf(t)}}
		}
		if pattern == "POST /v1/waitlist" && status == "202" { // whoever has no key learns nothing
			answer["content"] = schema{"application/json": schema{"schema": object(must("status", schema{"type": "string"}))}}
		}
		responses[status] = answer
	}
	op["responses"] = responses
	if body, ok := bodies[pattern]; ok {
		needed, _ := body["required"].([]string)
		op["requestBody"] = schema{"required": len(needed) > 0, "content": schema{"application/json": schema{"schema": body}}}
	}
	op["parameters"] = parameters(pattern)
	return op
}

// queryOf are the parameters that a call reads from its query.
func queryOf(pattern string) []member {
	if t := answers[pattern]; t != nil && strings.Contains(t.Name(), "listOf") {
		return append([]member{may("limit", pageLimit), may("cursor", schema{"type": "string"})}, queries[pattern]...)
	}
	return queries[pattern]
}

func problemResponse(names ...string) schema {
	return schema{
		"description": strings.Join(names, ", "),
		"content":     schema{"application/problem+json": schema{"schema": schema{"$ref": "#/components/schemas/Problem"}}},
	}
}

func parameters(pattern string) []schema {
	list := []schema{}
	add := func(in string, m member) {
		list = append(list, schema{"name": m.name, "in": in, "required": m.required, "schema": m.schema})
	}
	for _, m := range pathName.FindAllStringSubmatch(pattern, -1) {
		add("path", must(m[1], schema{"type": "string"}))
	}
	for _, m := range queryOf(pattern) {
		add("query", m)
	}
	switch pattern {
	case "POST /v1/holds":
		add("header", must("Idempotency-Key", text(255)))
	case "PUT /v1/stock/{sku}", "PUT /v1/stock/{sku}/policy", "POST /v1/stock/{sku}/pause", "POST /v1/stock/{sku}/resume":
		add("header", may("Idempotency-Key", text(255)))
	}
	if pattern == "PUT /v1/stock/{sku}/policy" {
		add("header", must("If-Match", schema{"type": "string"}))
	}
	return list
}

func (d *Door) getOpenAPI() handlerFunc {
	made := sync.OnceValue(d.openAPI)
	return func(w http.ResponseWriter, _ *http.Request) error {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(made()) // the client has gone: nobody left to tell
		return nil
	}
}

var otherPage = regexp.MustCompile(`<a href="(?:\.\./)?[a-z.]+(?:md|example)[^"]*">(.*?)</a>`)

// docsPage is the reference as a page. Links to other documents lead nowhere here.
var docsPage = sync.OnceValue(func() []byte {
	var out bytes.Buffer
	out.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Holdfast: HTTP reference</title>\n<style>" + docsStyle + "</style>\n</head>\n<body>\n<p><a href=\"openapi.json\">openapi.json</a></p>\n")
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	if err := md.Convert([]byte(docs.API), &out); err != nil {
		panic(fmt.Sprintf("the reference cannot be shown: %v", err)) // embedded, and tried by a test
	}
	out.WriteString("</body>\n</html>\n")
	return otherPage.ReplaceAll(out.Bytes(), []byte("$1"))
})

const docsStyle = "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}pre{background:#f3f3f3;padding:.8rem;overflow:auto}table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.3rem .6rem;text-align:left;vertical-align:top}h3{margin-top:2.5rem}"

func (d *Door) getDocs(w http.ResponseWriter, _ *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+hashOf(docsStyle)+"; base-uri 'none'; frame-ancestors 'none'")
	_, _ = w.Write(docsPage()) // the client has gone: nobody left to tell
	return nil
}
