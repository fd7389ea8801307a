package starter

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

//go:embed pages
var pageFiles embed.FS

var pageNames = []string{"index", "join", "joined", "entry", "link", "hold", "message"}

var pageFuncs = template.FuncMap{"iso": stamp, "clock": clockTime}

func parsePages() (map[string]*template.Template, error) {
	out := map[string]*template.Template{}
	for _, name := range pageNames {
		t, err := template.New("layout.html").Funcs(pageFuncs).ParseFS(pageFiles, "pages/layout.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("page %s: %w", name, err)
		}
		out[name] = t
	}
	return out, nil
}

var (
	pageStyle  = mustFile("pages/style.css")
	pageScript = mustFile("pages/times.js")
)

func mustFile(name string) string {
	raw, err := pageFiles.ReadFile(name)
	if err != nil {
		panic(err) // embedded at build time
	}
	return string(raw)
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// view is what a page shows. To and Image are other origins that the page
// leads to or shows a picture of; nothing else is let in.
type view struct {
	Shop   string
	Title  string
	Style  template.CSS
	Script template.JS
	Body   any

	status int
	to     string
	image  string
}

// policy is the page's content security policy. form-action names the shop's
// checkout as well, because browsers hold a redirect after a form to it.
func (v *view) policy() string {
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; img-src %s; form-action 'self'%s; base-uri 'none'; frame-ancestors 'none'",
		hashOf(pageStyle), hashOf(pageScript), originOr(v.image, "'none'"), prefixed(" ", originOr(v.to, "")))
}

func originOr(raw, otherwise string) string {
	u, err := url.Parse(checkoutPlaceholder.ReplaceAllString(raw, "x"))
	if err != nil || !isWeb(u) {
		return otherwise
	}
	return u.Scheme + "://" + u.Host
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// render writes a page.
func (d *Door) render(w http.ResponseWriter, name string, v view) error {
	v.Shop, v.Style, v.Script = d.cfg.Shop.Name, template.CSS(pageStyle), template.JS(pageScript)
	if v.status == 0 {
		v.status = http.StatusOK
	}
	var out bytes.Buffer
	if err := d.templates[name].Execute(&out, v); err != nil {
		return fmt.Errorf("render page %s: %w", name, err)
	}
	h := w.Header()
	pageHeaders(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", v.policy())
	w.WriteHeader(v.status)
	_, _ = w.Write(out.Bytes()) // the client has gone: nobody left to tell
	return nil
}

// pageHeaders keep ids and tokens, which are capabilities, to the shopper.
func pageHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex, nofollow")
}

// seeOther leads a form's sender on.
func seeOther(w http.ResponseWriter, to string) error {
	pageHeaders(w.Header())
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// page serves a page; a problem becomes a page as well.
func (d *Door) page(h handlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		p := d.problemOf(r, err)
		if p.retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(p.retryAfter/time.Second)))
		}
		if err := d.render(w, "message", view{Title: p.Title, Body: wordsFor(p), status: p.Status}); err != nil {
			d.log.Error("an error page could not be written", "error", err)
			w.WriteHeader(p.Status)
		}
	})
}

const formMedia = "application/x-www-form-urlencoded"

// form serves the post of a page's form. Anything else that posts is refused:
// a script of another site can send JSON or text, but then asks first.
func (d *Door) form(h handlerFunc) http.Handler {
	return d.page(func(w http.ResponseWriter, r *http.Request) error {
		if !isMedia(r, formMedia) {
			return problem(unsupportedMediaType, "this address takes the post of a form")
		}
		raw, err := readBody(w, r)
		if err != nil {
			return err
		}
		if r.PostForm, err = url.ParseQuery(string(raw)); err != nil {
			return problem(malformedBody, "the form cannot be read")
		}
		return h(w, r)
	})
}

// wordsFor says a problem in a shopper's words.
func wordsFor(p *Problem) string {
	switch p.Code {
	case unknownSKU:
		return "We do not know this product."
	case unknownLink:
		return "We do not know this link. Please open it again from the text, to its last character."
	case unknownEntry, unknownHold:
		return "We do not know this page. Please open it again from the text."
	case tooManyRequests:
		if p.retryAfter > shedFor {
			return "This number or this connection has joined too often. Nothing was recorded; please try again later."
		}
		return "Many people are joining right now. Nothing was recorded; please try again in a moment."
	case paused:
		return "The sale is paused. Your place is kept; please try again later."
	case saleEnded:
		return "The sale has ended."
	case unavailable:
		return "We cannot answer right now. Nothing is lost; please try again in a moment."
	}
	return p.Detail
}

// clockTime is an instant for people, with its zone. The pages' script turns it
// into the reader's own time.
func clockTime(t time.Time) string { return t.UTC().Format("15:04:05 UTC on 2 January") }
