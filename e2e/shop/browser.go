package shop

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// Page is what a shopper's browser shows. A redirect is not followed: To is
// where it leads.
type Page struct {
	URL    string
	Status int
	To     string
	Text   string // what a reader sees, words separated by one space
	Forms  []Form
}

// Form is one form of a page with the values that it comes with.
type Form struct {
	Action string // absolute
	Method string // GET or POST
	Values url.Values
	Button string // the text of its button
}

// Visit opens an address as a browser does: without any key.
func (s *Shop) Visit(ctx context.Context, address string) (Page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return Page{}, err
	}
	return s.show(req)
}

// Press sends the page's first form that posts to a path beginning with one of
// prefixes, as a click on its button does.
func (s *Shop) Press(ctx context.Context, p Page, prefix string) (Page, error) {
	for _, f := range p.Forms {
		u, err := url.Parse(f.Action)
		if err != nil {
			return Page{}, err
		}
		if f.Method == http.MethodPost && strings.HasPrefix(u.Path, prefix) {
			return s.Send(ctx, f)
		}
	}
	return Page{}, fmt.Errorf("%s has no form that posts to %s…: %q", p.URL, prefix, p.Text)
}

// Send sends a form.
func (s *Shop) Send(ctx context.Context, f Form) (Page, error) {
	req, err := http.NewRequestWithContext(ctx, f.Method, f.Action, strings.NewReader(f.Values.Encode()))
	if err != nil {
		return Page{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.show(req)
}

func (s *Shop) show(req *http.Request) (Page, error) {
	req.Header.Set("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")
	a, err := s.do(req)
	if err != nil {
		return Page{}, err
	}
	p := Page{URL: req.URL.String(), Status: a.Status}
	if to := a.Header.Get("Location"); to != "" {
		u, err := req.URL.Parse(to)
		if err != nil {
			return p, fmt.Errorf("%s leads to %q: %w", p.URL, to, err)
		}
		p.To = u.String()
	}
	if mediaType(a.Header) != "text/html" {
		return p, nil
	}
	doc, err := html.Parse(bytes.NewReader(a.Body))
	if err != nil {
		return p, fmt.Errorf("%s: %w", p.URL, err)
	}
	p.read(doc, req.URL)
	return p, nil
}

func (p *Page) read(doc *html.Node, base *url.URL) {
	p.Text = text(doc)
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "form" {
			p.Forms = append(p.Forms, readForm(n, base))
		}
	}
}

// text is what a reader sees in n, words separated by one space.
func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		switch {
		case d.Type == html.TextNode && !hidden(d.Parent):
			b.WriteString(d.Data)
		case d.Type == html.ElementNode && !inline[d.Data]:
			b.WriteString(" ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// inline elements do not part words.
var inline = map[string]bool{"a": true, "b": true, "em": true, "i": true, "span": true, "strong": true, "time": true}

func hidden(n *html.Node) bool {
	return n != nil && (n.Data == "script" || n.Data == "style" || n.Data == "head" || n.Data == "title")
}

func readForm(form *html.Node, base *url.URL) Form {
	out := Form{Action: base.String(), Method: http.MethodGet, Values: url.Values{}}
	if u, err := base.Parse(attr(form, "action")); err == nil {
		out.Action = u.String()
	}
	if m := attr(form, "method"); m != "" {
		out.Method = strings.ToUpper(m)
	}
	for n := range form.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch name := attr(n, "name"); {
		case n.Data == "button":
			out.Button = text(n)
			if name != "" {
				out.Values.Add(name, attr(n, "value"))
			}
		case n.Data == "input" && name != "" && attr(n, "type") != "checkbox":
			out.Values.Add(name, attr(n, "value"))
		}
	}
	return out
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
