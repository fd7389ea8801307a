package starter

import (
	"strings"

	"golang.org/x/net/html"
)

// text is what a reader without JavaScript sees, words parted by one space.
func (a answer) text() string {
	doc, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.TextNode && !strings.Contains(" head script style title ", " "+n.Parent.Data+" "):
			b.WriteString(n.Data)
		case n.Type == html.ElementNode && !strings.Contains(" a b span time ", " "+n.Data+" "):
			b.WriteString(" ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
