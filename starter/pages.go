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
	"slices"
	"unicode/utf8"

	"holdfast/config"
	"holdfast/contract"
)

//go:embed pages
var pageFiles embed.FS

var pageNames = []string{"card", "index", "join"}

var (
	pageStyle  = mustFile("pages/style.css")
	pageScript = mustFile("pages/page.js")
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

// view is what a page shows. to and image are other origins that the page
// leads to or shows a picture of; nothing else is let in.
type view struct {
	Lang    string
	Shop    config.Shop
	Support string // where a shopper finds a person
	Title   string
	Style   template.CSS
	Script  template.JS
	Mark    string // another one when there is news
	From    string // where the script asks for news
	Again   int    // seconds until it does; 0: it does not
	Body    any

	status int
	to     string
	image  string
}

// policy is the page's content security policy. form-action names the shop's
// checkout as well, because browsers hold a redirect after a form to it.
func (v *view) policy() string {
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; connect-src 'self'; img-src %s; form-action 'self'%s; base-uri 'none'; frame-ancestors 'none'",
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
func (d *Door) render(rw http.ResponseWriter, w *words, name string, v view) error {
	v.Lang, v.Shop, v.Support = w.tag, d.cfg.Shop, supportURL(d.cfg.Shop.Support)
	if !w.part {
		v.Style, v.Script = template.CSS(pageStyle), template.JS(pageScript)
	}
	if v.status == 0 {
		v.status = http.StatusOK
	}
	var out bytes.Buffer
	if err := w.pages[name].Execute(&out, v); err != nil {
		return fmt.Errorf("render page %s: %w", name, err)
	}
	h := rw.Header()
	pageHeaders(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", w.tag)
	h.Set("Content-Security-Policy", v.policy())
	rw.WriteHeader(v.status)
	_, _ = rw.Write(out.Bytes()) // the client has gone: nobody left to tell
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
		r = speaking(r)
		err := h(w, r)
		if err == nil {
			return
		}
		p := d.problemOf(r, err)
		if p.retryAfter > 0 {
			w.Header().Set("Retry-After", p.retrySeconds())
		}
		words := d.pages.of(r)
		c := words.problemCard(p, pageOf(r))
		if err := d.renderCard(w, words, string(c.Heading), c, contract.About{}, p.Status); err != nil {
			d.log.Error("an error page could not be written", "error", err)
			w.WriteHeader(p.Status)
		}
	})
}

// pageOf is the page that a request came from: a form of it may post to another
// address, which shows nothing.
func pageOf(r *http.Request) string {
	if id := r.PathValue("entry_id"); id != "" {
		return "/w/" + url.PathEscape(id)
	}
	if id := r.PathValue("hold_id"); id != "" {
		return "/h/" + url.PathEscape(id)
	}
	return r.URL.EscapedPath()
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
		for _, values := range r.PostForm {
			if slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
				return problem(malformedBody, "the form is not UTF-8")
			}
		}
		return h(w, r)
	})
}
